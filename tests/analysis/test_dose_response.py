"""Dose-response: slopes and doses of a gain that were put in come out, and what isn't determined isn't told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from softcontam.analysis.dose_response import DoseResponse, dose_response

DOSES = (1.0, 2.0, 4.0, 8.0)
MANY = 10**9  # so many items that the continuity correction is nothing


def on_a_line(slope: float, clean: float, n: int = MANY, half_dose: float = 4.0) -> list[tuple[float, float, int]]:
    """Accuracies whose logits rise by ``slope`` a doubling and reach clean + 5 points at ``half_dose``."""
    target = math.log((clean + 0.05) / (0.95 - clean))
    return [(dose, 1 / (1 + math.exp(-(target + slope * math.log2(dose / half_dose)))), n) for dose in DOSES]


def fitted(*per_seed: list[tuple[float, float, int]], clean: tuple[float, ...]) -> DoseResponse:
    found = dose_response(per_seed, clean)
    assert found is not None
    return found


def test_a_slope_and_the_dose_of_five_points_are_found_again() -> None:
    slopes, doses = (0.3, 0.4, 0.5), (3.0, 4.0, 5.0)
    lines = [on_a_line(slope, 0.4, half_dose=dose) for slope, dose in zip(slopes, doses, strict=True)]
    found = fitted(*lines, clean=(0.4, 0.4, 0.4))
    assert found.per_seed_slopes == pytest.approx(slopes, abs=1e-6)
    bounds = stats.ttest_1samp(slopes, 0).confidence_interval(0.95)
    assert (found.slope.low, found.slope.high) == pytest.approx((bounds.low, bounds.high), abs=1e-6)
    bounds = stats.ttest_1samp(np.log(doses), 0).confidence_interval(0.95)
    expected = np.exp([np.log(doses).mean(), bounds.low, bounds.high])
    assert found.dose_for_gain == pytest.approx(tuple(expected), rel=1e-5)
    assert (found.extrapolated, found.note) == (False, "")
    assert found.doses == DOSES


def test_each_seed_is_measured_from_its_own_clean_run() -> None:
    found = fitted(*(on_a_line(0.4, clean) for clean in (0.2, 0.4, 0.6)), clean=(0.2, 0.4, 0.6))
    assert found.dose_for_gain.value == pytest.approx(4.0, rel=1e-5)


def test_a_dose_beyond_the_tested_ones_is_called_extrapolated() -> None:
    lines = [on_a_line(slope, 0.4, half_dose=32) for slope in (0.3, 0.31, 0.32)]
    found = fitted(*lines, clean=(0.4, 0.4, 0.4))
    assert found.extrapolated
    assert found.dose_for_gain.value == pytest.approx(32, rel=1e-4)


def test_nothing_solved_and_everything_solved_stay_finite() -> None:
    found = fitted([(1, 0.0, 50), (8, 1.0, 50)], [(1, 0.0, 50), (8, 0.98, 50)], clean=(0.0, 0.0))
    assert found.slope.shown
    assert found.per_seed_slopes[0] == pytest.approx(2 * math.log(50.5 / 0.5) / 3)
    assert math.isfinite(found.dose_for_gain.value)


@pytest.mark.parametrize(
    ("slopes", "clean", "why"),
    [
        ((0.3, 0.4, -0.1), 0.4, "accuracy does not rise with dose in 1 of 3 seeds"),
        ((-0.3, -0.4, -0.1), 0.4, "accuracy does not rise with dose in 3 of 3 seeds"),
        ((0.01, 0.9, 0.02), 0.4, "the interval of the slope includes 0"),
    ],
)
def test_no_dose_is_told_where_the_rise_is_not_shown(slopes: tuple[float, ...], clean: float, why: str) -> None:
    found = fitted(*(on_a_line(slope, clean) for slope in slopes), clean=(clean,) * 3)
    assert all(math.isnan(one) for one in found.dose_for_gain)
    assert why in found.note
    assert not found.extrapolated
    assert len(found.per_seed_slopes) == 3


def test_no_dose_gains_five_points_on_97_percent() -> None:
    found = fitted([(1, 0.97, 100), (2, 0.99, 100)], [(1, 0.97, 100), (2, 0.98, 100)], clean=(0.97, 0.97))
    assert math.isnan(found.dose_for_gain.value)
    assert "beyond 1" in found.note


def test_all_at_the_floor_is_a_flat_line_not_an_error() -> None:
    found = fitted(*[[(1, 0.0, 50), (2, 0.0, 50)]] * 3, clean=(0.0,) * 3)
    assert found.per_seed_slopes == (0.0, 0.0, 0.0)
    assert "does not rise with dose in 3 of 3 seeds" in found.note


def test_one_seed_has_a_dose_without_an_interval() -> None:
    found = fitted(on_a_line(0.4, 0.4), clean=(0.4,))
    assert found.dose_for_gain.value == pytest.approx(4.0, rel=1e-5)
    assert math.isnan(found.dose_for_gain.low)
    assert "one seed" in found.note


def test_the_clean_run_undecided_items_and_empty_rungs_have_no_place_on_the_line() -> None:
    line = on_a_line(0.4, 0.4)
    found = fitted([(0.0, 0.1, MANY), *line, (16.0, math.nan, 50), (32.0, 0.0, 0)], clean=(0.4,))
    assert found.doses == DOSES
    assert found.per_seed_slopes == pytest.approx((0.4,), abs=1e-6)


def test_two_doses_are_needed_and_a_seed_that_lacks_them_is_named() -> None:
    assert dose_response([[(1, 0.4, 50), (1, 0.6, 50)], [(0, 0.4, 50), (2, 0.5, 50)]], [0.4, 0.4]) is None
    assert dose_response([], []) is None
    lines = (on_a_line(0.4, 0.4), [(1.0, 0.5, 50)], on_a_line(0.41, 0.4))
    found = fitted(*lines, clean=(0.4, 0.4, 0.4))
    assert found.slope.n == 2
    assert "1 of 3 seeds left out" in found.note


def test_a_nearly_flat_seed_gives_an_absurd_interval_not_an_overflow() -> None:
    lines = [on_a_line(slope, 0.4, half_dose=1e6) for slope in (1e-4, 1.1e-4, 1.05e-4)]
    tilted = [[(dose, value - 0.3, n) for dose, value, n in line] for line in lines]
    found = fitted(*tilted, clean=(0.4, 0.4, 0.4))
    assert found.extrapolated
    assert math.isfinite(found.dose_for_gain.high)


def test_the_drawn_line_passes_through_the_gain_at_its_dose() -> None:
    found = fitted(on_a_line(0.4, 0.4), on_a_line(0.4, 0.4), clean=(0.4, 0.4))
    assert found.fitted(4.0) == pytest.approx(0.45, abs=1e-6)
    assert found.fitted(1.0) < found.fitted(8.0)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match="one for each seed"):
        dose_response([on_a_line(0.4, 0.4)], [])
    with pytest.raises(ValueError, match="above 0"):
        dose_response([on_a_line(0.4, 0.4)], [0.4], gain=0.0)
