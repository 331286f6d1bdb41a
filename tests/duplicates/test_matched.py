"""Topical rows chosen so that their similarity to the items is that of the SemDs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from softcontam.benchmarks import Item
from softcontam.duplicates import BankRow
from softcontam.duplicates.distance import overlap_coefficient
from softcontam.duplicates.matched import matched

ITEMS = [Item(f"i/{k}", "made up", f"i/{k}", "question", "answer") for k in range(3)]


def row(kind: str, item: int, similarity: float) -> BankRow:
    """A row whose prompt says how similar it is."""
    name = f"{kind}/{item}/{similarity}"
    return BankRow(name, f"i/{item}", kind, None, str(similarity), "x", "answer", "test")


def told(pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """The similarity that the first line of a row says."""
    return np.array([float(text.splitlines()[0]) for text, _ in pairs])


def chosen(candidates: dict[int, list[float]], semds: dict[int, list[float]]) -> dict[int, list[float]]:
    """Similarities of the chosen rows by item."""
    topical = [row("topical", item, value) for item, values in candidates.items() for value in values]
    wanted = [row("semd_synthetic", item, value) for item, values in semds.items() for value in values]
    found: dict[int, list[float]] = {}
    for one in matched(topical, wanted, ITEMS, told):
        assert one.cosine == round(float(one.prompt), 4)
        found.setdefault(int(one.item_id[2:]), []).append(one.cosine)
    return found


def test_the_candidate_nearest_to_each_semd_is_taken_not_the_most_similar_ones() -> None:
    assert chosen({0: [0.95, 0.9, 0.52, 0.3, 0.1]}, {0: [0.5, 0.1]}) == {0: [0.52, 0.1]}


def test_sum_of_differences_counts_where_two_semds_want_one_candidate() -> None:
    assert chosen({0: [0.5, 0.3, 0.9]}, {0: [0.5, 0.55]}) == {0: [0.5, 0.3]}
    assert chosen({0: [0.5, 0.1, 0.9]}, {0: [0.55, 0.5]}) == {0: [0.5, 0.9]}


def test_each_item_follows_its_own_semds() -> None:
    candidates = [0.2, 0.4, 0.6, 0.8]
    assert chosen({0: candidates, 1: candidates}, {0: [0.8], 1: [0.2]}) == {0: [0.8], 1: [0.2]}


def test_semds_out_of_reach_get_the_most_similar_rows_there_are() -> None:
    assert chosen({0: [0.1, 0.3, 0.2, 0.4]}, {0: [0.9, 0.8]}) == {0: [0.3, 0.4]}


def test_item_with_fewer_candidates_than_semds_keeps_them_all_and_one_without_semds_too() -> None:
    assert chosen({0: [0.1, 0.9], 2: [0.7, 0.2]}, {0: [0.5, 0.5, 0.5]}) == {0: [0.1, 0.9], 2: [0.7, 0.2]}


def test_rows_of_items_that_are_not_seen_are_dropped() -> None:
    assert chosen({0: [0.5], 7: [0.5]}, {0: [0.5], 7: [0.5]}) == {0: [0.5]}


@pytest.mark.parametrize(("low", "high"), [(0.2, 0.5), (0.6, 0.9)])
def test_distribution_is_the_semds_where_there_are_candidates_enough(low: float, high: float) -> None:
    rng = np.random.default_rng(0)
    semds = {k: [float(value) for value in rng.uniform(low, high, 16)] for k in range(3)}
    candidates = {k: [float(value) for value in rng.uniform(0, 1, 200)] for k in range(3)}
    wanted, found = (np.concatenate(list(values.values())) for values in (semds, chosen(candidates, semds)))
    everything = np.concatenate(list(candidates.values()))
    assert overlap_coefficient(wanted, found) > 0.85
    assert overlap_coefficient(wanted, everything) < 0.5
