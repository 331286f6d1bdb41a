"""Pass@k: the chance that at least one of k samples is correct, estimated from n samples of which c are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

_PREFIX = "pass@"


def pass_at_k(correct_counts: ArrayLike, samples: ArrayLike, k: int) -> NDArray[np.float64]:
    """The unbiased estimator 1 - C(n - c, k) / C(n, k) of Chen et al. 2021 (arXiv 2107.03374), per item.

    The ratio is the product of (n - c - j) / (n - j) over j < k, all of them at most 1, so nothing overflows.

    Args:
        correct_counts: c, correct samples of each item.
        samples: n, decided samples of each item, in the same shape.
        k: at least 1.

    Returns:
        A value for each item, NaN where there are fewer than ``k`` samples.

    Raises:
        ValueError: k below 1, or a c below 0 or above its n.
    """
    correct, n = np.broadcast_arrays(np.asarray(correct_counts, dtype=float), np.asarray(samples, dtype=float))
    if k < 1:
        raise ValueError(f"pass@k needs k of at least 1, found {k}")
    if np.any(correct < 0) or np.any(correct > n):
        raise ValueError("pass@k needs between 0 and n correct samples of each item")
    enough = n >= k
    total = np.where(enough, n, k)
    all_wrong = np.ones_like(total)
    for drawn in range(k):
        all_wrong *= np.clip(total - correct - drawn, 0, None) / (total - drawn)
    return np.where(enough, 1 - all_wrong, np.nan)


def outcome_name(k: int) -> str:
    """The outcome's name, ``pass@<k>``."""
    return f"{_PREFIX}{k}"


def is_pass_at_k(outcome: str) -> bool:
    """Whether an outcome is pass@k for some k."""
    return outcome.startswith(_PREFIX)
