"""Draws the clean rows of a mixture from a pool of any size, in memory that does not grow with it.

The order that rows are drawn in is a random one over the whole pool, while files are read from front to back. Rows that
may be drawn are therefore spilled into buckets of neighbouring ranks, and each bucket is put in order by itself.

A row that does not fit is passed over, so whether a row is drawn depends on all rows before it. Rows are looked at in
batches of at most as many as are still wanted: each of them is drawn or passed over for certain, and none is tokenized
twice or in vain.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from softcontam.chat import Chat, EncodedRow
from softcontam.errors import ConfigError, TokenizationError
from softcontam.mixture.pool import Pool, PoolRow

BATCH = 1_000
"""Rows that are tokenized together."""

WORKERS = 2
"""Threads that render and tokenize; there is one batch more than these under way."""

BUCKET = 10_000
"""Ranks in one bucket, whose rows are in memory together."""

MOST_BUCKETS = 128
"""Buckets, and so files that are open at once, at most; a larger mixture has larger buckets."""

RESERVE = 0.02
"""Share of rows that are spilled beyond those wanted, for those that are passed over."""

_SCHEMA = pa.schema(
    [
        ("rank", pa.int64()),
        ("row_id", pa.string()),
        ("prompt", pa.string()),
        ("completion", pa.string()),
        ("source", pa.string()),
    ]
)

Near = Callable[[Sequence[tuple[str, str]]], NDArray[np.bool_]]
"""Says for each (prompt, completion) whether it is near a benchmark item."""


@dataclass(frozen=True)
class Drawn:
    """One drawn row, its tokens, and whether it is near a benchmark item."""

    row: PoolRow
    encoded: EncodedRow
    near: bool


class CleanDraw:
    """The clean rows of one mixture, in the order drawn; ``too_long`` and ``dropped`` count what was passed over."""

    def __init__(
        self, pool: Pool, n_rows: int, chat: Chat, max_length: int, seed: int, near: Near | None, drop_near: bool
    ) -> None:
        self._pool, self._n_rows, self._chat, self._max_length = pool, n_rows, chat, max_length
        self._near, self._drop_near = near, drop_near
        self._ranks = np.empty(len(pool), dtype=np.int64)
        self._ranks[random.Random(seed).sample(range(len(pool)), len(pool))] = np.arange(len(pool))
        self.too_long = self.dropped = 0

    def batches(self, folder: Path) -> Generator[list[Drawn], None, None]:
        """The rows, some at a time, with ``folder`` to spill to; nothing is left in it.

        Raises:
            ConfigError: the pool has too few rows that can be used.
            TokenizationError: a row whose loss mask cannot be proved, named.
        """
        drawn = asked = 0
        under_way: deque[tuple[list[PoolRow], Future[list[EncodedRow | None]]]] = deque()
        with closing(self._ranked(folder)) as ranked, ThreadPoolExecutor(WORKERS) as workers:
            while drawn < self._n_rows:
                while len(under_way) <= WORKERS:
                    rows = list(islice(ranked, min(BATCH, self._n_rows - drawn - asked)))
                    if not rows:
                        break
                    under_way.append((rows, workers.submit(self._encode, rows)))
                    asked += len(rows)
                if not under_way:
                    raise ConfigError(
                        f"mixture.n_rows={self._n_rows}, but the clean pool has {len(self._pool)} rows of which "
                        f"{self.too_long} exceed train.max_length={self._max_length} tokens and {self.dropped} are "
                        "near a benchmark item and dropped. Lower n_rows, raise max_length or add files to "
                        "mixture.pool."
                    )
                rows, encoded = under_way.popleft()
                asked -= len(rows)
                kept = self._kept(rows, encoded.result())
                drawn += len(kept)
                yield kept

    def _encode(self, rows: Sequence[PoolRow]) -> list[EncodedRow | None]:
        """None for rows that are too long."""
        try:
            return self._chat.encode_fitting([(row.prompt, row.completion) for row in rows], self._max_length)
        except TokenizationError:
            for row in rows:
                try:
                    self._chat.encode_fitting([(row.prompt, row.completion)], self._max_length)
                except TokenizationError as error:
                    raise TokenizationError(f"clean row {row.row_id}: {error}") from error
            raise

    def _kept(self, rows: Sequence[PoolRow], encoded: Sequence[EncodedRow | None]) -> list[Drawn]:
        """The rows that are not passed over."""
        fitting = [(row, tokens) for row, tokens in zip(rows, encoded, strict=True) if tokens is not None]
        self.too_long += len(rows) - len(fitting)
        near = [False] * len(fitting)
        if self._near is not None:
            near = self._near([(row.prompt, row.completion) for row, _ in fitting]).tolist()
        if not self._drop_near:
            return [Drawn(row, tokens, flag) for (row, tokens), flag in zip(fitting, near, strict=True)]
        self.dropped += sum(near)
        return [Drawn(row, tokens, False) for (row, tokens), flag in zip(fitting, near, strict=True) if not flag]

    def _ranked(self, folder: Path) -> Generator[PoolRow, None, None]:
        """All rows of the pool in the order of their ranks; read only as far as they are asked for."""
        first, last = 0, self._n_rows + max(1000, round(RESERVE * self._n_rows))
        while first < len(self._pool):
            last = min(last, len(self._pool))
            with TemporaryDirectory(prefix="draw-", dir=folder) as spilled:
                for bucket in self._spill(first, last, Path(spilled)):
                    yield from _in_order(bucket)
                    bucket.unlink()
            first, last = last, 2 * last

    def _spill(self, first: int, last: int, folder: Path) -> list[Path]:
        """Write the rows with ranks from ``first`` to before ``last`` to buckets, and list these in order."""
        size = max(BUCKET, -(-(last - first) // MOST_BUCKETS))
        buckets = [folder / f"{start}.arrow" for start in range(first, last, size)]
        writers = [pa.ipc.new_stream(str(bucket), _SCHEMA) for bucket in buckets]
        try:
            start = 0
            for batch in self._pool.batches():
                ranks = self._ranks[start : start + len(batch)]
                start += len(batch)
                places = np.flatnonzero((ranks >= first) & (ranks < last))
                places = places[np.argsort(ranks[places])]
                rows = [batch[place] for place in places.tolist()]
                columns = [[getattr(row, name) for row in rows] for name in _SCHEMA.names[1:]]
                record = pa.record_batch([pa.array(ranks[places]), *columns], schema=_SCHEMA)
                edges = np.searchsorted(ranks[places], np.arange(first, last + size, size))
                for writer, begin, end in zip(writers, edges[:-1], edges[1:], strict=True):
                    if begin < end:
                        writer.write_batch(record.slice(begin, end - begin))
        finally:
            for writer in writers:
                writer.close()
        return buckets


def _in_order(bucket: Path) -> Iterator[PoolRow]:
    """The rows of one bucket by rank."""
    with pa.OSFile(str(bucket)) as file:
        table = pa.ipc.open_stream(file).read_all()
    columns = (column.to_pylist() for column in table.sort_by("rank").columns[1:])
    for values in zip(*columns, strict=True):
        yield PoolRow(*values)
