"""Differences of effects: seen - held-out, held-out - related, one arm - another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from softcontam.analysis.estimates import over_seeds
from softcontam.analysis.intervals import Group, Seed, family_clustered, hierarchical_bootstrap, seed_values
from softcontam.analysis.items import HELD_OUT, RELATED, SEEN, SeedDifference
from softcontam.analysis.pairing import Arm
from softcontam.analysis.records import AGAINST, DID, GAP, Contrast, Effect

EXACT = "exact"
SEMD = ("semd_synthetic", "semd_natural")
"""Conditions that are set against exact duplicates of the same dose."""


def contrasts(effects: Sequence[Effect]) -> list[Contrast]:
    """Differences in differences and gaps of every arm, and SemDs against exact duplicates, over their shared seeds."""
    by_arm: dict[tuple[Arm, str], dict[str, list[Effect]]] = defaultdict(lambda: defaultdict(list))
    for effect in effects:
        by_arm[effect.arm, effect.outcome][effect.role].append(effect)
    found: list[Contrast | None] = []
    for (arm, outcome), roles in by_arm.items():
        for kind, first, second in ((DID, SEEN, HELD_OUT), (GAP, HELD_OUT, RELATED)):
            found += [between_roles(kind, left, right) for left, right in product(roles[first], roles[second])]
        exact = _exact_of_same_dose(arm)
        if arm.condition in SEMD and (exact, outcome) in by_arm:
            found += [
                between_arms(effect, other)
                for role in (SEEN, HELD_OUT, RELATED)
                for effect in roles[role]
                for other in by_arm[exact, outcome].get(role, [])
                if other.benchmark == effect.benchmark
            ]
    return [one for one in found if one is not None]


def between_roles(kind: str, left: Effect, right: Effect) -> Contrast | None:
    """The effect ``left`` of an arm minus its effect ``right`` on other items; None where no seed has both."""
    seeds = [
        (_group(left, cell, 1.0), _group(right, cell, -1.0)) for cell in left.differences if cell in right.differences
    ]
    return _contrast(kind, left, right, seeds) if seeds else None


def between_arms(left: Effect, right: Effect) -> Contrast | None:
    """An arm's effect minus another arm's on the items that both have in the same seeds; None where there are none."""
    others = {one.clean_id: one for one in right.differences.values()}
    seeds: list[Seed] = []
    left_out = 0
    for one in left.differences.values():
        if (other := others.get(one.clean_id)) is None:
            continue
        shared, ours, theirs = np.intersect1d(one.item_ids, other.item_ids, return_indices=True)
        left_out = max(left_out, len(one.item_ids) + len(other.item_ids) - 2 * len(shared))
        if len(shared):
            deltas = (one.items - one.clean_items)[ours] - (other.items - other.clean_items)[theirs]
            families, places, sizes = np.unique(one.item_families[ours], return_inverse=True, return_counts=True)
            seeds.append([Group(1.0, families, np.bincount(places, weights=deltas) / sizes)])
    if not seeds:
        return None
    return replace(_contrast(AGAINST, left, right, seeds), role=left.role, minus_arm=right.arm, left_out=left_out)


def _contrast(kind: str, left: Effect, right: Effect, seeds: Sequence[Seed]) -> Contrast:
    return Contrast(
        kind,
        left.arm,
        left.outcome,
        left.copies,
        left.benchmark,
        right.benchmark,
        over_seeds(seed_values(seeds).tolist()),
        family=family_clustered(seeds),
        hierarchical=hierarchical_bootstrap(seeds),
    )


def _group(effect: Effect, cell: str, sign: float) -> Group:
    return group_of(effect.differences[cell], sign)


def group_of(one: SeedDifference, sign: float = 1.0) -> Group:
    """A seed's families in the order of their names, so that what is drawn of them doesn't depend on a table's rows."""
    order = np.argsort(one.families)
    return Group(sign, one.families[order], one.family_deltas[order])


def _exact_of_same_dose(arm: Arm) -> Arm:
    return replace(arm, condition=EXACT, level=None)


def highest_doses(effects: Iterable[Effect]) -> list[Effect]:
    """The effects of each arm, by condition and level, at its own highest dose; in the order given."""
    found = list(effects)
    groups: dict[tuple[str, str, str, str | None], list[Effect]] = defaultdict(list)
    for one in found:
        groups[one.arm.setup, one.arm.split_benchmark, one.arm.condition, one.arm.level].append(one)
    kept = {id(one) for members in groups.values() for one in highest_dose(members)}
    return [one for one in found if id(one) in kept]


def highest_dose(effects: Iterable[Effect]) -> list[Effect]:
    """The effects at the highest rate, and of those at the most copies."""
    found = list(effects)
    top_rate = max((one.arm.rate for one in found), default=0.0)
    at_rate = [one for one in found if one.arm.rate == top_rate]
    top_copies = max((one.arm.copies_setting or 0 for one in at_rate), default=0)
    return [one for one in at_rate if (one.arm.copies_setting or 0) == top_copies]
