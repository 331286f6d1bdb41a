"""What runs first in CPython compiled to WebAssembly: takes one job and becomes its program or its tests.

WASI has no sockets to hand over, so that the channel between program and tests is standard input and output.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
from typing import Any

from softcontam.sandbox.inside.guest import Guest, run_stdio
from softcontam.sandbox.inside.judge import Judge
from softcontam.sandbox.inside.wire import Channel

OUTPUT_STATUS = 78
"""Exit status where a program that is called by tests prints too much."""

FOLDER = "/tmp"
"""The one folder that may be written."""


class CountedSink(io.RawIOBase):
    """Takes bytes and forgets them; ends the process beyond a number of bytes."""

    def __init__(self, most: int) -> None:
        self.left = most

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Count the bytes."""
        size = memoryview(data).nbytes
        self.left -= size
        if self.left < 0:
            os._exit(OUTPUT_STATUS)
        return size


def main(job: dict[str, Any]) -> None:
    """Run the job and end the process."""
    os.chdir(FOLDER)
    os.environ.pop("PYTHONHOME", None)
    random.seed(0)
    if job["role"] == "stdio":
        os._exit(run_stdio(job["program"]))
    channel = Channel.over_descriptors(0, 1)
    sys.stdin = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sys.stdout = _sink(job["output_bytes"])
    if job["role"] == "guest":
        Guest(channel).run(job["program"], job["setup"])
    else:
        sys.stderr = _sink(job["output_bytes"])  # standard error carries the report
        outcome = Judge(channel).run(job["tests"], job["setup"], job["entry_points"], job["nonce"])
        os.write(2, json.dumps(outcome).encode())
    os._exit(0)


def _sink(most: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(CountedSink(most)), encoding="utf-8")
