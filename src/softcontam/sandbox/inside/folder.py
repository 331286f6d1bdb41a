"""A folder that tested code writes to: how much is in it, and how it is emptied whatever is in it."""

from __future__ import annotations

import contextlib
import itertools
import os

MAX_FILES = 1000
"""Files and folders that a program may leave."""


def too_much(folder: str, most_bytes: int) -> bool:
    """Whether there are too many or too large files; paths too long to be looked at count as too many."""
    total, count, folders = 0, 0, [folder]
    try:
        while folders and total <= most_bytes and count <= MAX_FILES:
            with contextlib.suppress(FileNotFoundError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    count += 1
                    with contextlib.suppress(FileNotFoundError):
                        total += entry.stat(follow_symlinks=False).st_size
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
    except OSError:
        return True
    return total > most_bytes or count > MAX_FILES


def empty(folder: str) -> None:
    """Remove all that is in the folder, without recursion and without long paths.

    Folders may be nested deeper than a path can name or a stack can follow: those within a folder are moved up beside
    it before it is removed.

    Raises:
        OSError: something can't be removed.
    """
    new_names = itertools.count()
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        with contextlib.suppress(OSError):  # made without the right to list it
            os.chmod(current, 0o700)
        with os.scandir(current) as entries:
            listed = list(entries)
        for entry in listed:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            moved = os.path.join(folder, f".removed-{os.getpid()}-{next(new_names)}")
            os.rename(entry.path, moved)
            waiting.append(moved)
        if current != folder:
            os.rmdir(current)
