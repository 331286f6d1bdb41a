"""Distances between texts, and how much two samples of similarities overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from softcontam.duplicates.distance import LONG, Similarity, bigram_overlap, difflib_ratio, overlap_coefficient


@pytest.mark.parametrize(
    ("text", "original", "share"),
    [
        ("Sum the two numbers", "sum THE two, numbers!", 1.0),
        ("sum the two numbers", "the numbers sum two", 0.0),
        ("sum the two", "please sum the list", 0.5),
        ("a b a b", "a b", 2 / 3),  # repeated pairs count each time
        ("sum", "sum", 0.0),
        ("", "sum the two", 0.0),
    ],
)
def test_word_pairs_are_a_share_of_the_texts_own(text: str, original: str, share: float) -> None:
    assert bigram_overlap(text, original) == pytest.approx(share)


def test_difflib_ratio_ignores_no_frequent_characters() -> None:
    """difflib's own heuristic drops characters that make up more than 1 % of 200 or more: here, all of them."""
    text = "ab" * 300
    assert difflib_ratio(text, text + "b") > 0.99
    assert difflib_ratio(text, "xyz") == 0.0


def test_long_texts_are_compared_by_words() -> None:
    words = [f"word{number}" for number in range(LONG)]
    changed = ["other" if number % 4 == 0 else word for number, word in enumerate(words)]
    assert difflib_ratio(" ".join(words), " ".join(changed)) == pytest.approx(0.75)


def test_tfidf_cosines_rise_with_shared_rare_words() -> None:
    texts = ["the number of cats in the house", "the price of tea in the shop", "the height of the tower"]
    similarity = Similarity(texts)
    same, rare, frequent, none = similarity.cosines(
        [
            (texts[0], texts[0].upper()),
            ("cats in a house", texts[0]),
            ("the in of", texts[0]),
            ("entirely unseen", texts[0]),
        ]
    )
    assert same == pytest.approx(1.0)
    assert same > rare > frequent > none == 0.0
    assert similarity.name == "tfidf"


def test_an_embedder_takes_the_place_of_tfidf() -> None:
    class Lengths:
        spec = name = "lengths"

        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            angles = np.array([len(text) for text in texts], dtype=np.float32)
            return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    similarity = Similarity([], Lengths())  # type: ignore[arg-type]
    assert similarity.name == "lengths"
    assert similarity.cosines([("ab", "cd"), ("ab", "c")]).tolist() == pytest.approx([1.0, np.cos(1)])
    assert similarity.cosines([]).shape == (0,)


def test_overlap_of_equal_apart_and_half_shared_samples() -> None:
    low, high = [0.11, 0.12, 0.13], [0.81, 0.82, 0.83]
    assert overlap_coefficient(low, low[::-1] * 4) == pytest.approx(1.0)
    assert overlap_coefficient(low, high) == 0.0
    assert overlap_coefficient(low, [*low, *high]) == pytest.approx(0.5)
    assert overlap_coefficient([-0.2, 0.0], [0.01]) == 1.0  # negative cosines count in the lowest bin
    assert overlap_coefficient([1.0], [0.999]) == 1.0
    assert np.isnan(overlap_coefficient([], low))


def test_overlap_is_that_of_the_densities_for_large_samples() -> None:
    """Two normal distributions two standard deviations apart share 2 * Phi(-1) of their area."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.4, 0.1, 20_000), rng.normal(0.6, 0.1, 20_000)
    assert overlap_coefficient(first, second) == pytest.approx(0.3173, abs=0.02)
    assert overlap_coefficient(first, second) == overlap_coefficient(second, first)
