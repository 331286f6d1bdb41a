"""Effects as the tables of ``effects.csv``, ``effects_logprob.csv``, ``contrasts.csv`` and the like."""

from __future__ import annotations

import math

import pandas as pd

from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.estimates import Estimate
from softcontam.analysis.intervals import Interval
from softcontam.analysis.items import ACCURACY, LOGPROB
from softcontam.analysis.pairing import Arm

_ARM = ("condition", "level", "rate", "copies")
_KEYS = ("experiment", "benchmark", "role", *_ARM, "n_items", "n_families", "n_seeds")
_INTERVAL = ("ci_low", "ci_high", "p_value")

EFFECT_COLUMNS = (*_KEYS, "chance", "parse_rate", "accuracy", "baseline_accuracy", "delta", *_INTERVAL)
"""Columns of ``effects.csv``; ``delta`` and its interval are fractions."""

LOGPROB_COLUMNS = (*_KEYS, "logprob_per_token", "baseline_logprob_per_token", "delta", *_INTERVAL)
"""Columns of ``effects_logprob.csv``; log-probabilities are in nats per token."""

CONTRAST_COLUMNS = (
    *("experiment", "outcome", "contrast", "benchmark", "minus_benchmark"),
    *(*_ARM, "n_seeds", "estimate", *_INTERVAL),
    *("role", "minus_condition", "minus_level"),
)
"""Columns of ``contrasts.csv``; the last three are of contrasts between arms."""

_BESIDE = ("family_low", "family_high", "bootstrap_low", "bootstrap_high")

INTERVAL_COLUMNS = (
    *("experiment", "outcome", "benchmark", "role", *_ARM, "n_seeds", "delta", *_INTERVAL, *_BESIDE),
    *("holm", "equivalence_p", "margin", "detectable", "mcnemar_p"),
)
"""Columns of ``intervals.csv``: every effect with the three intervals, in the outcome's unit. ``mcnemar_p`` holds one
exact p for each pair of runs, separated by spaces."""

DECLARED_COLUMNS = (
    *(
        "experiment",
        "test",
        "outcome",
        "benchmark",
        "role",
        *_ARM,
        "against",
        "n_seeds",
        "estimate",
        "ci_low",
        "ci_high",
    ),
    *("p_value", "holm", *_BESIDE, "detectable", "note"),
)
"""Columns of ``declared.csv``: the contrasts that the experiment declares, in their order."""

ARM_COLUMNS = (
    *("experiment", "outcome", "benchmark", "role", "condition", "level", "rate", "seed", "value", "family_error"),
    *("n_items", "n_families", "parse_rate"),
)
"""Columns of ``arms.csv``: every cell's own result on all items, with its standard error over families."""

DOSE_COLUMNS = (
    *(
        "experiment",
        "benchmark",
        "role",
        "condition",
        "level",
        "dose",
        "doses",
        "n_seeds",
        "slope",
        "ci_low",
        "ci_high",
    ),
    *("p_value", "gain", "dose_for_gain", "dose_low", "dose_high", "extrapolated", "note"),
)
"""Columns of ``dose_response.csv``; slopes are logits per doubling of dose."""


def effect_columns(outcome: str) -> tuple[str, ...]:
    """The columns of an outcome's table of effects, in order.

    Partial accuracy and pass@k, both fractions, have columns like those of the log-probability and the parse rate.
    """
    if outcome == ACCURACY:
        return EFFECT_COLUMNS
    if outcome == LOGPROB:
        return LOGPROB_COLUMNS
    return (*_KEYS, "parse_rate", outcome, f"baseline_{outcome}", "delta", *_INTERVAL)


def effects_frame(measured: SweepEffects, outcome: str) -> pd.DataFrame:
    """The table of an outcome's effects, columns in the order of :func:`effect_columns`."""
    rows = []
    for one in measured.of(outcome):
        rows.append(
            {
                **_arm_columns(measured, one.arm, one.copies),
                "benchmark": one.benchmark,
                "role": one.role,
                "n_items": one.n_items,
                "n_families": one.n_families,
                "n_seeds": one.estimate.n,
                "chance": one.chance,
                "parse_rate": one.parse_rate,
                outcome: one.value,
                f"baseline_{outcome}": one.baseline,
                "delta": one.estimate.mean,
                "ci_low": one.estimate.low,
                "ci_high": one.estimate.high,
                "p_value": one.estimate.p,
            }
        )
    return pd.DataFrame(rows, columns=list(effect_columns(outcome)))


def contrasts_frame(measured: SweepEffects) -> pd.DataFrame:
    """The table of ``contrasts.csv``: differences in differences and gaps."""
    rows = [
        {
            **_arm_columns(measured, one.arm, one.copies),
            "outcome": one.outcome,
            "contrast": one.kind,
            "benchmark": one.benchmark,
            "minus_benchmark": one.minus_benchmark,
            "n_seeds": one.estimate.n,
            "estimate": one.estimate.mean,
            "ci_low": one.estimate.low,
            "ci_high": one.estimate.high,
            "p_value": one.estimate.p,
            "role": one.role,
            "minus_condition": one.minus_arm.condition if one.minus_arm else None,
            "minus_level": one.minus_arm.level if one.minus_arm else None,
        }
        for one in measured.contrasts
    ]
    return pd.DataFrame(rows, columns=list(CONTRAST_COLUMNS))


def intervals_frame(measured: SweepEffects) -> pd.DataFrame:
    """The table of ``intervals.csv``."""
    rows = [
        {
            **_arm_columns(measured, one.arm, one.copies),
            **{"outcome": one.outcome, "benchmark": one.benchmark, "role": one.role},
            **_estimate_columns(one.estimate, "delta"),
            **_beside_columns(one.family, one.hierarchical),
            "holm": one.holm,
            "equivalence_p": one.equivalence,
            "margin": measured.margins.get(one.outcome),
            "detectable": one.estimate.detectable,
            "mcnemar_p": " ".join(f"{p:.6g}" for p in one.mcnemar),
        }
        for one in measured.effects
    ]
    return pd.DataFrame(rows, columns=list(INTERVAL_COLUMNS))


def declared_frame(measured: SweepEffects) -> pd.DataFrame:
    """The table of ``declared.csv``."""
    rows = []
    for one in measured.declared:
        arm = one.effect.arm if one.effect else one.line.arm if one.line else None
        place = one.effect or one.line
        copies = one.effect.copies if one.effect else math.nan
        rows.append(
            {
                **(_arm_columns(measured, arm, copies) if arm else {"condition": one.stated.condition}),
                "test": one.stated.test,
                "outcome": one.effect.outcome if one.effect else one.stated.outcome or measured.primary,
                "benchmark": place.benchmark if place else one.stated.benchmark,
                "role": place.role if place else one.stated.role,
                "against": f"{one.minus.arm.condition}/{one.minus.role}/{one.minus.benchmark}" if one.minus else None,
                **_estimate_columns(one.estimate, "estimate"),
                "p_value": one.p,
                "holm": one.holm,
                **_beside_columns(one.family, one.hierarchical),
                "detectable": one.estimate.detectable,
                "note": one.missing or one.estimate.note,
            }
        )
    return pd.DataFrame(rows, columns=list(DECLARED_COLUMNS))


def arms_frame(measured: SweepEffects) -> pd.DataFrame:
    """The table of ``arms.csv``."""
    rows = [
        {
            **_arm_columns(measured, one.arm, math.nan),
            **{"outcome": one.outcome, "benchmark": one.benchmark, "role": one.role, "seed": one.seed},
            **{"value": one.value, "family_error": one.error, "n_items": one.n_items, "n_families": one.n_families},
            "parse_rate": one.parse_rate,
        }
        for one in measured.accuracies
    ]
    return pd.DataFrame(rows, columns=list(ARM_COLUMNS))


def doses_frame(measured: SweepEffects) -> pd.DataFrame:
    """The table of ``dose_response.csv``."""
    rows = []
    for one in measured.lines:
        response = one.response
        found = response.dose_for_gain
        rows.append(
            {
                **_arm_columns(measured, one.arm, math.nan),
                **{"benchmark": one.benchmark, "role": one.role, "dose": one.dose},
                "doses": " ".join(f"{dose:g}" for dose in response.doses),
                **_estimate_columns(response.slope, "slope"),
                "gain": response.gain,
                **{"dose_for_gain": found.value, "dose_low": found.low, "dose_high": found.high},
                **{"extrapolated": response.extrapolated, "note": response.note},
            }
        )
    return pd.DataFrame(rows, columns=list(DOSE_COLUMNS))


def _estimate_columns(estimate: Estimate, name: str) -> dict[str, object]:
    bounds = {"ci_low": estimate.low, "ci_high": estimate.high, "p_value": estimate.p}
    return {"n_seeds": estimate.n, name: estimate.mean, **bounds}


def _beside_columns(family: Interval, bootstrap: Interval) -> dict[str, object]:
    return dict(zip(_BESIDE, (family.low, family.high, bootstrap.low, bootstrap.high), strict=True))


def _arm_columns(measured: SweepEffects, arm: Arm, copies: float) -> dict[str, object]:
    name = f"{measured.experiment} [{arm.setup}]" if arm.setup else measured.experiment
    return {"experiment": name, "condition": arm.condition, "level": arm.level, "rate": arm.rate, "copies": copies}
