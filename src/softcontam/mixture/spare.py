"""Rows of the clean pool that no mixture of a seed contains."""

from __future__ import annotations

import random

from softcontam.errors import ConfigError
from softcontam.mixture.pool import Pool, PoolRow


def spare_rows(pool: Pool, n_rows: int, seed: int, most: int, least: int) -> list[PoolRow]:
    """Up to ``most`` rows from the end of the order that clean rows are drawn in, which a mixture never reaches.

    Raises:
        ConfigError: fewer than ``least`` rows are left beside the ``n_rows`` of the mixture.
    """
    left = len(pool) - n_rows
    if left < least:
        raise ConfigError(
            f"the clean pool has {len(pool)} rows, of which mixture.n_rows={n_rows} are drawn; {left} are left for an "
            f"arm that inserts {least} others. Lower n_rows or the rate, or add files to mixture.pool."
        )
    order = random.Random(seed).sample(range(len(pool)), len(pool))
    return pool.take(order[::-1][: min(most, left)])
