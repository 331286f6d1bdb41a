"""What an analysis finds, as records: effects, contrasts of effects, the clean arm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from softcontam.analysis.estimates import Estimate
from softcontam.analysis.intervals import Interval
from softcontam.analysis.items import SeedDifference
from softcontam.analysis.pairing import Arm

NO_INTERVAL = Interval(math.nan, math.nan)

DID, GAP, AGAINST = "difference_in_differences", "gap", "against_exact"


@dataclass(frozen=True)
class Effect:
    """The difference of one arm from the clean arm on one benchmark in one role.

    ``value``, ``baseline`` and ``deltas`` are in the unit of ``outcome``: fractions, or nats per token. ``copies`` is
    the mean number of inserted rows per covered item; ``n_items`` and ``n_families`` are means over seeds, rounded.
    ``equivalence`` is the TOST p value against the margin (NaN where none is set), ``holm`` the adjusted p value of a
    declared effect. ``differences`` holds each seed's difference by cell, ``family`` and ``hierarchical`` the intervals
    beside the primary one (:mod:`softcontam.analysis.intervals`), ``mcnemar`` the exact p of each pair of runs, in
    their order.
    """

    arm: Arm
    role: str
    benchmark: str
    outcome: str
    copies: float
    n_items: int
    n_families: int
    chance: float
    parse_rate: float
    baseline_parse_rate: float
    value: float
    baseline: float
    deltas: dict[str, float] = field(repr=False)
    estimate: Estimate
    equivalence: float
    holm: float = math.nan
    differences: Mapping[str, SeedDifference] = field(default_factory=dict, repr=False)
    family: Interval = NO_INTERVAL
    hierarchical: Interval = NO_INTERVAL
    mcnemar: tuple[float, ...] = ()


@dataclass(frozen=True)
class Contrast:
    """A difference of two effects, seed by seed.

    ``kind``: ``DID`` (seen - held-out) and ``GAP`` (held-out - related) are of one arm, ``AGAINST`` is the arm minus
    another one, by default that of exact duplicates (``minus_arm``), in one ``role`` and on the items that both have;
    ``left_out`` is the most items of a seed that only one of them has.
    """

    kind: str
    arm: Arm
    outcome: str
    copies: float
    benchmark: str
    minus_benchmark: str
    estimate: Estimate
    role: str = ""
    minus_arm: Arm | None = None
    family: Interval = NO_INTERVAL
    hierarchical: Interval = NO_INTERVAL
    left_out: int = 0


@dataclass(frozen=True)
class Baseline:
    """The clean arm on one benchmark in one role; ``per_seed`` holds (seed, value) pairs, ``n_items`` is per seed."""

    setup: str
    split_benchmark: str
    role: str
    benchmark: str
    outcome: str
    per_seed: tuple[tuple[int, float], ...]
    parse_rate: float
    chance: float
    n_items: int

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return sum(value for _, value in self.per_seed) / len(self.per_seed)
