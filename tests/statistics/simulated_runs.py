"""Runs with known effects: a benchmark of families for each repetition, split anew by seed; runs that deviate.

On the logit scale an item's difficulty is base + family part + item part (standard deviation 1.5, half of the variance
each), its effect ``effect`` + family part + item part (standard deviation ``effect_sd``, halved likewise), and each
training run adds its own deviation N(0, ``run_sd``) to all items. Outcomes are then independent coin throws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit

Floats = NDArray[np.float64]

DIFFICULTY_SD = 1.5
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_RUN_NODES, _RUN_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_RUN_WEIGHTS = _RUN_WEIGHTS / _RUN_WEIGHTS.sum()


@dataclass(frozen=True)
class World:
    """What is true; ``base`` is the clean accuracy, ``held_out`` the items of a half, the effects are in logits.

    ``fixed`` gives every seed the same held-out half, as a related benchmark is evaluated whole in every seed.
    """

    base: float = 0.5
    run_sd: float = 0.15
    family_size: int = 1
    effect: float = 0.3
    effect_sd: float = 0.5
    seen_effect: float = 1.0
    held_out: int = 100
    fixed: bool = False

    @property
    def families(self) -> int:
        """Families of one half."""
        return self.held_out // self.family_size


@dataclass(frozen=True)
class Runs:
    """R repetitions of S seeds with A arms; F families of m items in each half.

    ``families`` (R, S, 2F) numbers the families of a seed, the held-out half first; ``clean`` (R, S, 2F, m) and
    ``treated`` (R, A, S, 2F, m) are outcomes. The truths are for the held-out half and, ``did``, for seen - held-out:
    (a) of the benchmark over new runs and splits, shape (R,); (b) over new items as well; (c) over new items for these
    very runs, shape (R, S). ``clean_accuracy`` (R,) and ``treated_accuracy`` (R, A) are the benchmark's over new runs.
    """

    families: NDArray[np.int64]
    clean: NDArray[np.bool_]
    treated: NDArray[np.bool_]
    benchmark_effect: Floats
    benchmark_did: Floats
    population_effect: float
    population_did: float
    effect_of_runs: Floats
    clean_accuracy: Floats
    treated_accuracy: Floats

    def family_differences(self, arm: int = 0) -> Floats:
        """The mean difference treated - clean of every family, shape (R, S, 2F)."""
        change = self.treated[:, arm].astype(np.int8) - self.clean.astype(np.int8)
        return np.asarray(change.mean(axis=-1), dtype=np.float64)


def simulate(
    world: World, repetitions: int, seeds: int, rng: np.random.Generator, arms: int = 1, more: Sequence[float] = ()
) -> Runs:
    """Simulate ``repetitions`` benchmarks with ``seeds`` clean runs and as many of each of ``arms`` treated arms.

    Args:
        more: what each arm's effect is larger than the world's, in logits; by default all arms are alike.
    """
    families, size = 2 * world.families, world.family_size
    shifts = np.asarray(more or [0.0] * arms)
    center = difficulty_center(world.base)

    def parts(sd: float) -> Floats:
        family, item = rng.normal(0, sd / math.sqrt(2), (2, repetitions, families, size))
        return np.asarray(family[..., :1] + item, dtype=np.float64)

    easiness, change = center + parts(DIFFICULTY_SD), world.effect + parts(world.effect_sd)
    order = rng.random((repetitions, 1 if world.fixed else seeds, families)).argsort(axis=-1)
    order = np.broadcast_to(order, (repetitions, seeds, families))
    clean_runs = rng.normal(0, world.run_sd, (repetitions, seeds))
    treated_runs = rng.normal(0, world.run_sd, (repetitions, arms, seeds))
    extra = np.where(np.arange(families) < world.families, 0.0, world.seen_effect)[:, None]
    easiness_of, change_of = (
        np.take_along_axis(of[:, None], order[..., None], axis=2) for of in (easiness, change)
    )  # (R, S, 2F, m)
    clean = rng.random(easiness_of.shape) < expit(easiness_of + clean_runs[..., None, None])
    treated = np.stack(
        [
            rng.random(easiness_of.shape)
            < expit(easiness_of + change_of + shifts[arm] + extra + treated_runs[:, arm, :, None, None])
            for arm in range(arms)
        ],
        axis=1,
    )
    if world.fixed:  # what is evaluated is the benchmark
        easiness, change = easiness_of[:, 0, : world.families], change_of[:, 0, : world.families]
    solved, seen, *treated_accuracy = (
        _over_runs(one, world.run_sd)
        for one in (
            easiness,
            easiness + change + shifts[0] + world.seen_effect,
            *(easiness + change + shift for shift in shifts),
        )
    )
    held_out = treated_accuracy[0]
    treated_spread = math.hypot(DIFFICULTY_SD, world.effect_sd)
    of_treated = _over_items(center + world.effect + shifts[0] + treated_runs[:, 0], treated_spread)
    return Runs(
        families=order,
        clean=clean,
        treated=treated,
        benchmark_effect=held_out - solved,
        benchmark_did=seen - held_out,
        population_effect=population_effect(world),
        population_did=population_effect(world, world.effect + world.seen_effect) - population_effect(world),
        effect_of_runs=of_treated - _over_items(center + clean_runs, DIFFICULTY_SD),
        clean_accuracy=solved,
        treated_accuracy=np.stack(treated_accuracy, axis=1),
    )


def difficulty_center(base: float) -> float:
    """The mean logit at which items have the mean accuracy ``base``."""
    return float(optimize.brentq(lambda center: float(_over_items(np.array(center), DIFFICULTY_SD)) - base, -15, 15))


def population_effect(world: World, effect: float | None = None) -> float:
    """The mean effect on accuracy over new items and new runs, as a fraction."""
    center, shift = difficulty_center(world.base), world.effect if effect is None else effect
    spread = math.hypot(DIFFICULTY_SD, world.run_sd)
    treated = float(_over_items(np.array(center + shift), math.hypot(spread, world.effect_sd)))
    return treated - float(_over_items(np.array(center), spread))


def _over_items(center: Floats, sd: float) -> Floats:
    """The mean accuracy where logits are normal with this center and spread."""
    return np.asarray(expit(center[..., None] + sd * _NODES) @ _WEIGHTS, dtype=np.float64)


def _over_runs(logits: Floats, sd: float) -> Floats:
    """The mean accuracy on one benchmark's items, (R, 2F, m), over runs: shape (R,)."""
    total = sum(
        weight * expit(logits + sd * node).mean(axis=(1, 2))
        for node, weight in zip(_RUN_NODES, _RUN_WEIGHTS, strict=True)
    )
    return np.asarray(total, dtype=np.float64)
