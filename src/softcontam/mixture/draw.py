"""Draws the clean rows of a mixture from a pool of any size, in memory that does not grow with it.

The order that rows are drawn in is a random one over the whole pool, while files are read from front to back. Rows that
may be drawn are therefore spilled into buckets of neighbouring ranks, and each bucket is put in order by itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from softcontam.chat import Chat
from softcontam.errors import ConfigError
from softcontam.mixture.pool import Pool, PoolRow

BUCKET = 50_000
"""Ranks in one bucket: rows that are in memory together."""

RESERVE = 0.02
"""Share of rows that are read beyond those wanted, for those that turn out too long; all of the pool if need be."""

_SCHEMA = pa.schema(
    [
        ("rank", pa.int64()),
        ("row_id", pa.string()),
        ("prompt", pa.string()),
        ("completion", pa.string()),
        ("source", pa.string()),
        ("fits", pa.bool_()),
        ("near", pa.bool_()),
    ]
)

Near = Callable[[Sequence[tuple[str, str]]], NDArray[np.bool_]]
"""Says for each (prompt, completion) whether it is near a benchmark item."""


@dataclass(frozen=True)
class Drawn:
    """One drawn row, and whether it is near a benchmark item."""

    row: PoolRow
    near: bool


class CleanDraw:
    """The clean rows of one mixture, in the order drawn; ``too_long`` and ``dropped`` count what was passed over."""

    def __init__(
        self, pool: Pool, n_rows: int, chat: Chat, max_length: int, seed: int, near: Near | None, drop_near: bool
    ) -> None:
        self._pool, self._n_rows, self._chat, self._max_length = pool, n_rows, chat, max_length
        self._near, self._drop_near = near, drop_near
        order = random.Random(seed).sample(range(len(pool)), len(pool))
        self._ranks = np.empty(len(pool), dtype=np.int64)
        self._ranks[order] = np.arange(len(pool))
        self.too_long = self.dropped = 0

    def rows(self, folder: Path) -> Iterator[Drawn]:
        """The rows, with ``folder`` to spill to; its files are removed on the way.

        Raises:
            ConfigError: the pool has too few rows that can be used.
        """
        drawn, first = 0, 0
        last = min(len(self._pool), self._n_rows + max(1000, round(RESERVE * self._n_rows)))
        while drawn < self._n_rows and first < len(self._pool):
            for one in self._of_ranks(first, last, folder):
                yield one
                drawn += 1
                if drawn == self._n_rows:
                    return
            first, last = last, len(self._pool)
        raise ConfigError(
            f"mixture.n_rows={self._n_rows}, but the clean pool has {len(self._pool)} rows of which {self.too_long} "
            f"exceed train.max_length={self._max_length} tokens and {self.dropped} are near a benchmark item and "
            "dropped. Lower n_rows, raise max_length or add files to mixture.pool."
        )

    def _of_ranks(self, first: int, last: int, folder: Path) -> Iterator[Drawn]:
        """The usable rows with ranks from ``first`` to before ``last``, in order."""
        folder.mkdir(parents=True, exist_ok=True)
        buckets = [folder / f"bucket-{start}.arrow" for start in range(first, last, BUCKET)]
        writers = [pa.ipc.new_stream(str(bucket), _SCHEMA) for bucket in buckets]
        try:
            start = 0
            for batch in self._pool.batches():
                ranks = self._ranks[start : start + len(batch)]
                start += len(batch)
                self._spill(batch, ranks, first, last, writers)
        finally:
            for writer in writers:
                writer.close()
        for bucket in buckets:
            with pa.OSFile(str(bucket)) as file:
                table = pa.ipc.open_stream(file).read_all()
            bucket.unlink()
            for record in table.sort_by("rank").to_pylist():
                if not record["fits"]:
                    self.too_long += 1
                elif record["near"] and self._drop_near:
                    self.dropped += 1
                else:
                    row = PoolRow(record["row_id"], record["prompt"], record["completion"], record["source"])
                    yield Drawn(row, record["near"])

    def _spill(
        self,
        batch: Sequence[PoolRow],
        ranks: NDArray[np.int64],
        first: int,
        last: int,
        writers: Sequence[pa.RecordBatchStreamWriter],
    ) -> None:
        """Write the rows of a batch that may be drawn to the buckets of their ranks."""
        places = np.flatnonzero((ranks >= first) & (ranks < last))
        if not len(places):
            return
        rows = [batch[place] for place in places.tolist()]
        pairs = [(row.prompt, row.completion) for row in rows]
        near = np.zeros(len(rows), dtype=np.bool_) if self._near is None else self._near(pairs)
        record = pa.record_batch(
            [
                pa.array(ranks[places]),
                [row.row_id for row in rows],
                [row.prompt for row in rows],
                [row.completion for row in rows],
                [row.source for row in rows],
                self._chat.fit(pairs, self._max_length),
                pa.array(near),
            ],
            schema=_SCHEMA,
        )
        bucket = (ranks[places] - first) // BUCKET
        for number in np.unique(bucket):
            writers[number].write_batch(record.take(pa.array(np.flatnonzero(bucket == number))))
