"""What is worth keeping between runs on one machine: converted weights, embeddings."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

log = logging.getLogger(__name__)


def cache_dir() -> Path:
    """Where it is kept: ``SOFTCONTAM_CACHE``, else ``~/.cache/softcontam``."""
    return Path(os.environ.get("SOFTCONTAM_CACHE", "~/.cache/softcontam")).expanduser()


class Kept:
    """Bytes by key in one file, shared by processes. Nothing depends on it: a file that fails is done without."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._works = True

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values that are there."""
        found: dict[bytes, bytes] = {}
        if self._works and self._path.is_file():
            try:
                with sqlite3.connect(self._path, timeout=30) as database:
                    for first in range(0, len(keys), 500):
                        part = keys[first : first + 500]
                        marks = ",".join("?" * len(part))
                        rows = database.execute(f"SELECT key, value FROM kept WHERE key IN ({marks})", part)
                        found.update(rows.fetchall())
            except sqlite3.Error as error:
                self._give_up(error)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keep some values."""
        if not self._works:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with sqlite3.connect(self._path, timeout=30) as database:
                database.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB)")
                database.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?)", list(values.items()))
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._works = False
        log.warning("%s cannot be used as a cache (%s); going on without it", self._path, error)
