"""Effects as the tables of ``effects.csv``, ``effects_logprob.csv``, ``contrasts.csv`` and the like."""

from __future__ import annotations

import pandas as pd

from softcontam.analysis.effects import SweepEffects
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
)
"""Columns of ``contrasts.csv``."""


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
        }
        for one in measured.contrasts
    ]
    return pd.DataFrame(rows, columns=list(CONTRAST_COLUMNS))


def _arm_columns(measured: SweepEffects, arm: Arm, copies: float) -> dict[str, object]:
    name = f"{measured.experiment} [{arm.setup}]" if arm.setup else measured.experiment
    return {"experiment": name, "condition": arm.condition, "level": arm.level, "rate": arm.rate, "copies": copies}
