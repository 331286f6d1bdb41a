"""How often each interval covers the truth and each test errs, on simulated runs: the tables of docs/statistics.md.

    OMP_NUM_THREADS=1 python tests/statistics/coverage_table.py --out coverage.md

About ten minutes on one core. The intervals and tests are the package's own functions, called once per repetition.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import logit
from simulated_runs import Floats, Runs, World, population_effect, simulate

from softcontam.analysis.dose_response import GAIN, dose_response
from softcontam.analysis.estimates import equivalence_p, holm, over_seeds, standardized_detectable
from softcontam.analysis.intervals import Group, Seed, exact_mcnemar, family_clustered, hierarchical_bootstrap

SEEDS = (3, 5, 10)
SPREADS = (0.0, 0.15)
SIZES = (1, 2, 4)
BASES = {"mid": 0.5, "floor": 0.05, "ceiling": 0.95}
SEED = 20261201
DOSES, RISE = (1.0, 2.0, 4.0, 8.0), 0.3
"""The doses of the dose-response cases, and by how many logits an item gets easier with each doubling."""
NO_EFFECT = World(effect=0.0, effect_sd=0.0)


@dataclass(frozen=True)
class Share:
    """How many of ``of`` cases; a percentage with its Monte-Carlo standard error in points."""

    count: int
    of: int

    @property
    def percent(self) -> float:
        return 100 * self.count / self.of if self.of else math.nan

    @property
    def error(self) -> float:
        part = self.percent / 100
        return 100 * math.sqrt(part * (1 - part) / self.of) if self.of else math.nan


def share(hits: Iterable[bool]) -> Share:
    found = np.fromiter(hits, dtype=bool)
    return Share(int(found.sum()), len(found))


@dataclass(frozen=True)
class Bounds:
    """Intervals of many repetitions: ``low`` and ``high`` of shape (R,), NaN where there is none."""

    low: Floats
    high: Floats

    @property
    def missing(self) -> Share:
        return share(np.isnan(self.low))

    @property
    def width(self) -> float:
        """The median width, as a fraction."""
        return float(np.nanmedian(self.high - self.low))

    def covers(self, truth: Floats | float) -> Share:
        """Of the repetitions with an interval, those whose interval holds the truth."""
        there = ~np.isnan(self.low)
        target = np.broadcast_to(truth, self.low.shape)
        return share(((self.low <= target) & (target <= self.high))[there])


def bounds(found: Iterable[tuple[float, float]]) -> Bounds:
    low, high = np.array(list(found), dtype=float).reshape(-1, 2).T
    return Bounds(low, high)


def held_out(world: World, runs: Runs) -> list[list[Seed]]:
    """For every repetition its seeds: one group of held-out families each."""
    n, names = world.families, runs.families.astype(str)
    values = runs.family_differences()
    return [
        [(Group(1.0, names[r, s, :n], values[r, s, :n]),) for s in range(values.shape[1])] for r in range(len(values))
    ]


def seen_minus_held_out(world: World, runs: Runs) -> list[list[Seed]]:
    """For every repetition its seeds: the seen families and, subtracted, the held-out ones."""
    n, names = world.families, runs.families.astype(str)
    values = runs.family_differences()
    return [
        [
            (Group(1.0, names[r, s, n:], values[r, s, n:]), Group(-1.0, names[r, s, :n], values[r, s, :n]))
            for s in range(values.shape[1])
        ]
        for r in range(len(values))
    ]


def seed_differences(world: World, runs: Runs, arm: int = 0) -> Floats:
    """The effect on the held-out half, shape (R, S)."""
    return np.asarray(runs.family_differences(arm)[..., : world.families].mean(axis=-1), dtype=np.float64)


def t_bounds(values: Floats) -> Bounds:
    return bounds((found.low, found.high) for found in map(over_seeds, values))


def clustered_bounds(cases: Sequence[Sequence[Seed]]) -> Bounds:
    return bounds((found.low, found.high) for found in map(family_clustered, cases))


def bootstrap_bounds(cases: Sequence[Sequence[Seed]]) -> Bounds:
    found = [hierarchical_bootstrap(case, seed=place) for place, case in enumerate(cases)]
    return bounds((one.low, one.high) for one in found)


def item_bounds(world: World, runs: Runs) -> Bounds:
    """The interval a study with one run per arm would report: 1.96 standard errors of the items' differences."""
    change = runs.treated[:, 0, 0].astype(float) - runs.clean[:, 0].astype(float)
    items = change[:, : world.families].reshape(len(change), -1)
    half = float(stats.norm.ppf(0.975)) * items.std(axis=1, ddof=1) / math.sqrt(items.shape[1])
    half = np.where(half > 0, half, np.nan)
    return Bounds(items.mean(axis=1) - half, items.mean(axis=1) + half)


@dataclass(frozen=True)
class Coverage:
    """One case: an interval of each method, and the truths to cover."""

    world: World
    seeds: int
    primary: Bounds
    clustered: Bounds
    bootstrap: Bounds
    on_benchmark: Floats
    on_new_items: float
    on_these_runs: Floats

    def primary_covers(self) -> Share:
        return self.primary.covers(self.on_benchmark)


def coverage(world: World, repetitions: int, bootstraps: int, did: bool = False) -> list[Coverage]:
    """The intervals of one world for each number of seeds; the fewer seeds are the first of the most."""
    runs = simulate(world, repetitions, max(SEEDS), _generator(world))
    cases = seen_minus_held_out(world, runs) if did else held_out(world, runs)
    held = seed_differences(world, runs)
    values = runs.family_differences()[..., world.families :].mean(axis=-1) - held if did else held
    these = np.full_like(runs.effect_of_runs, np.nan) if did else runs.effect_of_runs
    return [
        Coverage(
            world,
            n,
            t_bounds(values[:, :n]),
            clustered_bounds([case[:n] for case in cases]),
            bootstrap_bounds([case[:n] for case in cases[:bootstraps]]),
            runs.benchmark_did if did else runs.benchmark_effect,
            runs.population_did if did else runs.population_effect,
            these[:, :n].mean(axis=1),
        )
        for n in SEEDS
    ]


@dataclass(frozen=True)
class DoseCoverage:
    """One number of seeds: intervals of the slope and of the dose for a gain (log2), and the benchmark's true ones."""

    seeds: int
    slope: Bounds
    dose: Bounds
    true_slope: Floats
    true_dose: Floats


def dose_coverage(world: World, repetitions: int) -> list[DoseCoverage]:
    """The intervals of the dose-response line for each number of seeds.

    The truth is the least-squares line through the benchmark's own accuracies over new runs, on the logit scale.
    """
    doublings = np.log2(DOSES)
    runs = simulate(world, repetitions, max(SEEDS), _generator(world), len(DOSES), [RISE * one for one in doublings])
    slopes, starts = np.polyfit(doublings, logit(runs.treated_accuracy).T, 1)
    clean = runs.clean[:, :, : world.families].mean(axis=(-2, -1))
    treated = runs.treated[:, :, :, : world.families].mean(axis=(-2, -1))
    found = []
    for n in SEEDS:
        lines = [
            dose_response(
                [[(dose, treated[r, arm, s], world.held_out) for arm, dose in enumerate(DOSES)] for s in range(n)],
                clean[r, :n].tolist(),
            )
            for r in range(repetitions)
        ]
        fitted = [one for one in lines if one is not None]
        doses = [(math.log2(one.dose_for_gain.low), math.log2(one.dose_for_gain.high)) for one in fitted]
        found.append(
            DoseCoverage(
                n,
                bounds((one.slope.low, one.slope.high) for one in fitted),
                bounds(doses),
                slopes,
                (logit(runs.clean_accuracy + GAIN) - starts) / slopes,
            )
        )
    return found


def t_size(world: World, repetitions: int) -> dict[int, Share]:
    """By seeds, how often the t test rejects where there is no effect; seeds without spread don't reject."""
    values = seed_differences(world, simulate(world, repetitions, max(SEEDS), _generator(world)))
    return {n: share(over_seeds(row).p < 0.05 for row in values[:, :n]) for n in SEEDS}


def mcnemar_size(world: World, repetitions: int) -> Share:
    """How often the exact McNemar test of one pair of runs rejects where there is no effect."""
    runs = simulate(world, repetitions, 1, _generator(world))
    n = world.families
    pairs = zip(runs.treated[:, 0, 0, :n], runs.clean[:, 0, :n], strict=True)
    return share(exact_mcnemar(treated.ravel(), clean.ravel()) < 0.05 for treated, clean in pairs)


def tost_size(world: World, repetitions: int, margin: float = 0.05) -> dict[int, Share]:
    """How often equivalence is claimed where a benchmark's true effect equals the margin, on average ``margin``."""
    wanted = -margin if world.base > 0.5 else margin
    world = replace(world, effect=_effect_for(world, wanted))
    runs = simulate(world, repetitions, max(SEEDS), _generator(world))
    values, margins = seed_differences(world, runs), np.abs(runs.benchmark_effect)
    return {
        n: share(equivalence_p(row, float(own)) < 0.05 for row, own in zip(values[:, :n], margins, strict=True))
        for n in SEEDS
    }


def family_wise_error(world: World, repetitions: int, arms: int = 4) -> tuple[dict[int, Share], dict[int, Share]]:
    """How often any of ``arms`` arms without effect rejects, with Holm's p and with the plain one."""
    runs = simulate(world, repetitions, max(SEEDS), _generator(world), arms)
    values = np.stack([seed_differences(world, runs, arm) for arm in range(arms)], axis=1)
    adjusted, plain = {}, {}
    for n in SEEDS:
        p_values = [[over_seeds(row).p for row in arms_of[:, :n]] for arms_of in values]
        adjusted[n] = share(any(p < 0.05 for p in holm(row)) for row in p_values)
        plain[n] = share(any(p < 0.05 for p in row) for row in p_values)
    return adjusted, plain


def detectable_power(world: World, seeds: int, repetitions: int) -> tuple[float, Share]:
    """The smallest detectable effect at this world's true spread, and how often it is found.

    The effect in logits is adjusted by fixed-point iteration, as the spread itself depends on it a little.
    """
    rng = _generator(world)
    for _ in range(4):
        pilot = seed_differences(world, simulate(world, 20_000, 1, rng))
        wanted = standardized_detectable(seeds) * float(pilot.std(ddof=1)) / math.sqrt(seeds)
        world = replace(world, effect=_effect_for(world, wanted))
    values = seed_differences(world, simulate(world, repetitions, seeds, rng))
    return wanted, share(over_seeds(row).p < 0.05 for row in values)


def _effect_for(world: World, wanted: float) -> float:
    """The effect in logits whose mean effect on accuracy is ``wanted``, by bisection."""
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if population_effect(world, middle) < wanted else (low, middle)
    return low


def _generator(world: World) -> np.random.Generator:
    return np.random.default_rng([SEED, *(round(1000 * abs(value)) for value in vars(world).values())])


def coverage_tables(repetitions: int, bootstraps: int) -> list[str]:
    cases = {
        (name, spread, size): coverage(World(base, spread, size), repetitions, bootstraps)
        for name, base in BASES.items()
        for spread in SPREADS
        for size in SIZES
    }
    lines = ["### This benchmark, new runs and splits (a)", ""]
    lines += _header(
        "base", "spread", "seeds", "t over seeds", "family-clustered", "bootstrap", "no interval (t)", "width (t)"
    )
    after = ["", "### New items as well (b), and new items for these very runs (c)", ""]
    after += _header("base", "spread", "seeds", "t, b", "clustered, b", "bootstrap, b", "clustered, c")
    for name in BASES:
        for spread in SPREADS:
            for place, n in enumerate(SEEDS):
                found = [cases[name, spread, size][place] for size in SIZES]
                lines.append(
                    _row(
                        name,
                        spread,
                        n,
                        _each(one.primary.covers(one.on_benchmark) for one in found),
                        _each(one.clustered.covers(one.on_benchmark) for one in found),
                        _each(one.bootstrap.covers(one.on_benchmark[:bootstraps]) for one in found),
                        _each(one.primary.missing for one in found),
                        " / ".join(f"{100 * one.primary.width:.1f}" for one in found),
                    )
                )
                after.append(
                    _row(
                        name,
                        spread,
                        n,
                        _each(one.primary.covers(one.on_new_items) for one in found),
                        _each(one.clustered.covers(one.on_new_items) for one in found),
                        _each(one.bootstrap.covers(one.on_new_items) for one in found),
                        _each(one.clustered.covers(one.on_these_runs) for one in found),
                    )
                )
    return lines + after


def variant_tables(repetitions: int, bootstraps: int) -> list[str]:
    """Seen - held-out, a benchmark that every seed evaluates whole, and halves so large that runs matter most."""
    columns = ("t, a", "clustered, a", "bootstrap, a", "t, b", "clustered, b", "bootstrap, b")
    lines = ["", "### Seen - held-out (difference in differences), families of 2, mid accuracy", ""]
    lines += _header("spread", "seeds", *columns)
    for spread in SPREADS:
        found = coverage(World(run_sd=spread, family_size=2), repetitions, bootstraps, did=True)
        lines += [_row(spread, one.seeds, *_methods(one)) for one in found]
    lines += ["", "### The same 100 items in every seed (a related benchmark), families of 2, mid accuracy", ""]
    lines += _header("spread", "seeds", *columns)
    for spread in SPREADS:
        found = coverage(World(run_sd=spread, family_size=2, fixed=True), repetitions, bootstraps)
        lines += [_row(spread, one.seeds, *_methods(one)) for one in found]
    fewer, few = max(1, repetitions // 4), max(1, bootstraps // 2)
    lines += ["", f"### Larger halves, spread 0.15, families of 1, mid accuracy ({fewer} and {few} repetitions)", ""]
    lines += _header("items", "seeds", *columns)
    for items in (300, 1000):
        found = coverage(World(held_out=items), fewer, few)
        lines += [_row(items, one.seeds, *_methods(one)) for one in found]
    return lines


def dose_table(repetitions: int) -> list[str]:
    lines = ["", "### Dose-response: doses 1, 2, 4, 8, families of 1", ""]
    lines += _header("base", "spread", "seeds", "slope covered", "dose given in", "dose covered", "width, doublings")
    for name in ("mid", "floor"):
        for spread in SPREADS:
            for one in dose_coverage(World(BASES[name], spread, effect=0.0), repetitions):
                given = Share(one.dose.missing.of - one.dose.missing.count, one.dose.missing.of)
                covered = (one.slope.covers(one.true_slope), given, one.dose.covers(one.true_dose))
                lines.append(
                    _row(name, spread, one.seeds, *(_each([found]) for found in covered), f"{one.dose.width:.1f}")
                )
    return lines


def _methods(one: Coverage) -> list[str]:
    """The coverage of the three methods: of (a), then of (b)."""
    methods = (one.primary, one.clustered, one.bootstrap)
    a = [method.covers(one.on_benchmark[: len(method.low)]) for method in methods]
    b = [method.covers(one.on_new_items) for method in methods]
    return [_each([found]) for found in (*a, *b)]


def item_table(repetitions: int) -> list[str]:
    lines = ["", "### One run per arm: item-only interval and McNemar's test, mid accuracy, families of 1", ""]
    lines += _header("spread", "items", "item-only interval covers (a)", "McNemar rejects without an effect")
    for spread in SPREADS:
        for items in (100, 300, 1000):
            world = World(run_sd=spread, held_out=items)
            runs = simulate(world, repetitions, 1, _generator(world))
            covered = item_bounds(world, runs).covers(runs.benchmark_effect)
            size = mcnemar_size(replace(NO_EFFECT, run_sd=spread, held_out=items), repetitions)
            lines.append(_row(spread, items, _each([covered]), _each([size])))
    return lines


def error_tables(repetitions: int) -> list[str]:
    lines = ["", "### Rejections where there is nothing to find, %", ""]
    lines += _header(
        "base", "spread", "seeds", "t test", "TOST at a margin of 5 points", "any of 4, plain", "any of 4, Holm"
    )
    for name, base in BASES.items():
        for spread in SPREADS:
            null = replace(NO_EFFECT, base=base, run_sd=spread)
            plain, margin = t_size(null, repetitions), tost_size(World(base, spread), repetitions)
            adjusted, unadjusted = family_wise_error(null, repetitions)
            lines += [
                _row(name, spread, n, *(_each([one[n]]) for one in (plain, margin, unadjusted, adjusted)))
                for n in SEEDS
            ]
    lines += ["", "### The smallest detectable effect is found in % of cases (planned: 80)", ""]
    lines += _header("spread", "seeds", "smallest detectable effect, points", "found")
    for spread in SPREADS:
        for n in SEEDS:
            wanted, found = detectable_power(World(run_sd=spread, effect_sd=0.0), n, repetitions)
            lines.append(_row(spread, n, f"{100 * wanted:.1f}", _each([found])))
    return lines


def _each(shares: Iterable[Share]) -> str:
    return " / ".join("-" if math.isnan(one.percent) else f"{one.percent:.1f}" for one in shares)


def _header(*names: str) -> list[str]:
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="markdown file to write")
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--bootstraps", type=int, default=1000, help="repetitions of the bootstrap")
    arguments = parser.parse_args()
    start = time.monotonic()
    n, few = arguments.repetitions, min(arguments.bootstraps, arguments.repetitions)
    lines = [
        *(*coverage_tables(n, few), *variant_tables(n, few), *dose_table(n)),
        *(*item_table(n), *error_tables(n)),
    ]
    errors = [Share(round(0.95 * of), of).error for of in (n, few)]
    lines += ["", f"{n} repetitions (bootstrap {few}); Monte-Carlo error at 95 %: {errors[0]:.1f} and {errors[1]:.1f}."]
    arguments.out.write_text("\n".join(lines) + "\n")
    print(f"{arguments.out}: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
