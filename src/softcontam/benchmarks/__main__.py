"""``python -m softcontam.benchmarks``: what each benchmark of ``conf/benchmark`` holds, and its families.

``python -m softcontam.benchmarks benchmark=musr benchmark.params.task=object_placements``: one, with any settings.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table

from softcontam.benchmarks.item import Benchmark, load_benchmark
from softcontam.config import conf_dir, resolve
from softcontam.errors import SoftcontamError

console = Console(width=None if sys.stdout.isatty() else 160)


def main(overrides: Sequence[str]) -> int:
    """Print one line per benchmark; 1 if one that was asked for by name cannot be loaded."""
    named = sorted(path.stem for path in (conf_dir() / "benchmark").glob("*.yaml"))
    asked = [list(overrides)] if overrides else [[f"benchmark={name}"] for name in named]
    table = Table("benchmark", "style", "items", "families (size: how many)", "joined by", "chance %", "source")
    problems = []
    for one in asked:
        try:
            table.add_row(*_row(_loaded(one)))
        except SoftcontamError as error:
            problems.append(f"{' '.join(one)}: {error}")
    if table.row_count:
        console.print(table)
    for problem in problems:
        console.print(problem, highlight=False, soft_wrap=True, markup=False)
    return 1 if problems and overrides else 0


def _loaded(overrides: Sequence[str]) -> Benchmark:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        composed = compose("config", overrides=["condition=exact", *overrides])
        OmegaConf.resolve(composed)
        config = resolve(composed)
    return load_benchmark(config.benchmark, Path(config.paths.data).expanduser())


def _row(benchmark: Benchmark) -> list[str]:
    families = benchmark.families()
    sizes = Counter(len(members) for members in families.values())
    evidence = Counter(pair.why for pair in benchmark.joined)
    source = benchmark.source
    return [
        benchmark.name,
        benchmark.response_style,
        str(len(benchmark.items)),
        f"{len(families)} ({', '.join(f'{size}: {count}' for size, count in sorted(sizes.items()))})",
        ", ".join(f"{why} {count}" for why, count in evidence.most_common()) or "–",
        f"{100 * benchmark.chance:.1f}",
        f"{source.hub}, {source.revision}, {source.licence}",
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
