"""One arm before any model is loaded: its benchmarks, halves, bank and slots.

A launch lays out every cell before it starts one, so that a dose that cannot be met or a benchmark too small to split
stops it at once; the cell then builds its mixture from the same layout.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from softcontam.benchmarks import Benchmark, Item, ItemSet, load_benchmark
from softcontam.config import BenchmarkConfig, Config, EvalBenchmark, PoolConfig, from_settings
from softcontam.duplicates import Bank, BankRow, Material, bank_rows, items_with_rows, open_bank
from softcontam.duplicates.distance import Similarity
from softcontam.duplicates.embedding import Embedder, load_embedder
from softcontam.duplicates.exact import text
from softcontam.errors import ConfigError
from softcontam.mixture.difficulty import read_difficulty
from softcontam.mixture.plan import SlotPlan, plan_for, refuse_short_bank
from softcontam.mixture.pool import Pool, load_pool
from softcontam.mixture.spare import spare_rows
from softcontam.mixture.split import FamilySplit, split_by_family


@dataclass(frozen=True)
class Arm:
    """What a cell inserts where, and what it is evaluated on. ``bank`` is None for the clean arm."""

    split: FamilySplit
    bank: Bank | None
    plan: SlotPlan
    item_sets: tuple[ItemSet, ...]
    pool: Pool

    @property
    def fresh(self) -> tuple[Item, ...]:
        """Held-out items of another draw than the split benchmark's."""
        held_out = {item.item_id for item in self.split.held_out}
        return tuple(
            item
            for one in self.item_sets
            if one.role == "held_out"
            for item in one.items
            if item.item_id not in held_out
        )


def lay_out(config: Config) -> Arm:
    """Load benchmarks, pool and bank, split by family, plan the slots, and check that bank and pool have the rows.

    Raises:
        ConfigError: a benchmark too small to split, a level or kind that is not there, a dose that cannot be met.
        DataError: files that are missing or damaged, a table of difficulty that does not fit the items included.
    """
    data = Path(config.paths.data).expanduser().resolve()
    roles = {"held_out": config.eval.fresh, "related": config.eval.related, "general": config.eval.general}
    beside = [(role, _other(_key(entry), data)) for role, entries in roles.items() for entry in entries]
    others = _key([asdict(entry) for entries in roles.values() for entry in entries])
    benchmark = _split_benchmark(_key(config.benchmark), others, data)
    difficulty = _difficulty(_key(config.benchmark), others, data)
    split = split_by_family(benchmark, config.benchmark.seen_share, config.seeds.split or 0, difficulty)
    seed = config.seeds.mixture or 0
    pool = _pool(_key(config.mixture.pool), data)
    if len(pool) < config.mixture.n_rows:
        raise ConfigError(
            f"mixture.n_rows={config.mixture.n_rows}, but the clean pool has {len(pool)} rows. "
            "Lower n_rows or add files to mixture.pool."
        )
    covered = _covered(config, split, others, data)
    plan = plan_for(config.mixture, config.condition, covered, seed)
    bank = None
    if config.condition.kind != "clean":
        material = Material(
            seen=split.seen,
            copies=plan.copies,
            bank=lambda kind: _rows(kind, _key(config.benchmark), others, data),
            cosines=lambda pairs: Similarity([text(item) for item in benchmark.items], embedder_of(config)).cosines(
                pairs
            ),
            spare=lambda most, least: spare_rows(pool, config.mixture.n_rows, seed, most, least),
        )
        bank = open_bank(config.condition, material)
    refuse_short_bank(plan, bank)
    sets = [ItemSet("seen", benchmark, split.seen), ItemSet("held_out", benchmark, split.held_out)]
    sets += [ItemSet(role, other, other.items) for role, other in beside]
    return Arm(split, bank, plan, tuple(sets), pool)


def embedder_of(config: Config) -> Embedder | None:
    """The embedding model of a config, loaded once by each process."""
    return None if config.mixture.embedder is None else load_embedder(config.mixture.embedder)


def _covered(config: Config, split: FamilySplit, others: str, data: Path) -> list[Item]:
    """The seen items that rows may be inserted for: those with a row in every bank of ``mixture.cover``.

    Raises:
        ConfigError: there is none.
    """
    covered = list(split.seen)
    for kind in config.mixture.cover:
        having = {row.item_id for row in _rows(kind, _key(config.benchmark), others, data)}
        covered = [item for item in covered if item.item_id in having]
    if not covered:
        raise ConfigError(
            f"mixture.cover={config.mixture.cover}: no item of the seen half has a row in each of these banks. "
            "Use larger banks, or another split seed."
        )
    return covered


def _key(settings: object) -> str:
    """Settings as text, to remember what was loaded for them: the cells of a sweep share most of it."""
    return json.dumps(settings if isinstance(settings, list) else asdict(settings))  # type: ignore[call-overload]


@lru_cache(maxsize=1)
def _pool(settings: str, data: Path) -> Pool:
    return load_pool(from_settings(PoolConfig, json.loads(settings)), data)


@lru_cache(maxsize=16)
def _other(entry: str, data: Path) -> Benchmark:
    config = from_settings(EvalBenchmark, json.loads(entry))
    return load_benchmark(config, data).limited(config.max_items)


def _others(entries: str, data: Path) -> list[Item]:
    return [item for entry in json.loads(entries) for item in _other(json.dumps(entry), data).items]


@lru_cache(maxsize=4)
def _whole_benchmark(benchmark: str, data: Path) -> Benchmark:
    return load_benchmark(from_settings(BenchmarkConfig, json.loads(benchmark)), data)


def _difficulty(benchmark: str, others: str, data: Path) -> dict[str, float] | None:
    """The difficulty of the items that are split; the table may hold other items of the benchmark as well."""
    config = from_settings(BenchmarkConfig, json.loads(benchmark))
    if config.difficulty is None:
        return None
    known = {item.item_id for item in _whole_benchmark(benchmark, data).items}
    needed = [item.item_id for item in _split_benchmark(benchmark, others, data).items]
    table = read_difficulty(data / config.difficulty, known, needed)
    return {item_id: table[item_id] for item_id in needed}


@lru_cache(maxsize=4)
def _split_benchmark(benchmark: str, others: str, data: Path) -> Benchmark:
    """The benchmark that is split, without the items that its banks do not cover (in all arms alike)."""
    config = from_settings(BenchmarkConfig, json.loads(benchmark))
    loaded = _whole_benchmark(benchmark, data)
    if config.only_items_with:
        loaded = items_with_rows(config, loaded, data, _others(others, data))
    return loaded.limited(config.max_items)


@lru_cache(maxsize=8)
def _rows(kind: str, benchmark: str, others: str, data: Path) -> list[BankRow]:
    """The rows of one kind, all levels: read or made once for the cells that use them."""
    config = from_settings(BenchmarkConfig, json.loads(benchmark))
    items = _split_benchmark(benchmark, others, data).items
    return bank_rows(kind, config, items, data, _others(others, data))
