"""lm-eval's own tasks on made-up documents, evaluated in our engine on the embedded base."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import lm_eval
import pandas as pd
import pytest
from lm_eval.models.huggingface import HFLM
from small_models import TINYWORLD, write_qwen3

from softcontam.benchmarks import Benchmark, load_benchmark
from softcontam.benchmarks.lm_eval_task import _manager, verdict
from softcontam.config import EvalBenchmark, HubConfig
from softcontam.errors import ConfigError, DataError, TokenizationError
from softcontam.evaluation.engine import Engine
from softcontam.evaluation.lm_eval_tasks import run_task
from softcontam.models import BaseModel, load_base

NAMES = ("Tom", "Ann", "Bob", "Eve", "Dan", "Kim", "Sue", "Max", "Liz", "Pat", "Ray", "Joe")


def arc_docs() -> list[dict[str, Any]]:
    """Documents in the schema of ARC: four choices, or three, with letters or digits as labels."""
    docs = []
    for number, name in enumerate(NAMES):
        texts = ["a map", "a cup", "the key of the tower", "a red lamp"][: 3 if number == 5 else 4]
        labels = list("1234" if number == 7 else "ABCD")[: len(texts)]
        docs.append(
            {
                "id": f"Made_{number}",
                "question": f"{name} has {number} cups and a map. What does {name} need?",
                "choices": {"text": texts, "label": labels},
                "answerKey": labels[number % len(texts)],
            }
        )
    return docs


def gsm_docs(count: int) -> list[dict[str, Any]]:
    return [
        {"question": f"Tom has {n} cups. Ann has {n}. How many cups?", "answer": f"{n}+{n}={2 * n}\n#### {2 * n}"}
        for n in range(count)
    ]


def write_jsonl(file: Path, docs: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    return file


def config(task: str = "arc_challenge", **params: Any) -> EvalBenchmark:
    return EvalBenchmark(name=task, module="lm_eval_task", params={"task": task, **params})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lm_eval")
    write_jsonl(folder / "arc.jsonl", arc_docs())
    write_jsonl(folder / "gsm_test.jsonl", gsm_docs(4))
    write_jsonl(folder / "gsm_train.jsonl", gsm_docs(9))
    return folder


@pytest.fixture(scope="module")
def arc(data: Path) -> Benchmark:
    return load_benchmark(config(data_files={"test": "arc.jsonl"}), data)


@pytest.fixture(autouse=True)
def no_environment_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """simple_evaluate asks pip, git and the drivers for their versions, which takes seconds."""
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda storage: None)


@pytest.fixture(scope="module")
def base() -> BaseModel:
    return load_base(TINYWORLD)


@pytest.fixture(scope="module")
def engine(base: BaseModel) -> Engine:
    return Engine(base, base.model, 4)


def lm_evals_own(benchmark: Benchmark, model: Any) -> list[dict[str, Any]]:
    """What lm-eval's usual entry point logs for the same task object."""
    assert benchmark.task is not None
    results = lm_eval.simple_evaluate(
        model,
        tasks=[benchmark.task.task],
        task_manager=_manager(),
        apply_chat_template=True,
        log_samples=True,
        bootstrap_iters=0,
    )
    return [one for one in results["samples"][benchmark.task.name] if one["filter"] == benchmark.task.filter]


def test_items_are_the_tasks_own_questions_with_their_gold_answers(arc: Benchmark) -> None:
    item = arc.items[2]
    assert item.item_id == "arc_challenge/2"
    assert item.prompt == "Question: Bob has 2 cups and a map. What does Bob need?\nAnswer:"
    assert item.choices == ("a map", "a cup", "the key of the tower", "a red lamp")
    assert item.target == "the key of the tower"
    assert arc.items[5].choices == ("a map", "a cup", "the key of the tower")
    assert arc.chance == pytest.approx((11 / 4 + 1 / 3) / 12)
    assert arc.source.revision == "local copy {'test': 'arc.jsonl'}"
    assert arc.source.hub == "allenai/ai2_arc, ARC-Challenge"


def test_gold_answers_score_and_other_choices_do_not(arc: Benchmark) -> None:
    assert arc.score is not None
    for item in arc.items:
        for choice in item.choices:
            parsed = arc.parse(item, choice)
            assert parsed is not None
            assert arc.score(item, parsed).correct is (choice == item.target)
    assert arc.parse(arc.items[0], "a map or a cup") is None


def test_outcomes_are_those_of_lm_evals_own_entry_point(arc: Benchmark, engine: Engine) -> None:
    records = run_task(engine, arc, arc.items)
    expected = lm_evals_own(arc, engine)
    assert [record["item_id"] for record in records] == [item.item_id for item in arc.items]
    assert [record["correct"] for record in records] == [sample["acc"] == 1.0 for sample in expected]
    assert {record["correct"] for record in records} == {True, False}
    for record, sample, item in zip(records, expected, arc.items, strict=True):
        gold = item.choices.index(item.target)
        assert record["gold_logprob"] == pytest.approx(sample["resps"][gold][0][0], abs=1e-4)
        assert (record["output"] == item.target) is record["correct"]
        assert record["finished"] is None


def test_a_subset_in_any_order_keeps_each_items_outcome(arc: Benchmark, engine: Engine) -> None:
    whole = {record["item_id"]: record for record in run_task(engine, arc, arc.items)}
    chosen = [arc.items[number] for number in (9, 2, 7, 0, 5)]
    for item, record in zip(chosen, run_task(engine, arc, chosen), strict=True):
        assert record["item_id"] == item.item_id
        assert record["output"] in item.choices
        assert (record["output"] == item.target) is record["correct"]
        expected = whole[item.item_id]
        assert (record["output"], record["correct"]) == (expected["output"], expected["correct"])
        assert record["gold_logprob"] == pytest.approx(expected["gold_logprob"], abs=1e-4)
    assert run_task(engine, arc, []) == []


def test_the_normalized_metric_can_decide_instead(data: Path, engine: Engine) -> None:
    benchmark = load_benchmark(config(data_files={"test": "arc.jsonl"}, metric="acc_norm"), data)
    records = run_task(engine, benchmark, benchmark.items)
    assert [one["correct"] for one in records] == [one["acc_norm"] == 1.0 for one in lm_evals_own(benchmark, engine)]
    for item, record in zip(benchmark.items, records, strict=True):
        assert (record["output"] == item.target) is record["correct"]


def test_generated_outcomes_are_those_of_lm_eval_with_its_examples(data: Path, base: BaseModel, engine: Engine) -> None:
    files = {"test": "gsm_test.jsonl", "train": "gsm_train.jsonl"}
    benchmark = load_benchmark(config("gsm8k", data_files=files, num_fewshot=2, filter="flexible-extract"), data)
    assert benchmark.task is not None
    benchmark.task.task.set_config("generation_kwargs", {"max_gen_toks": 12}, update=True)
    records = run_task(engine, benchmark, benchmark.items)
    plain = HFLM(pretrained=base.model, tokenizer=base.tokenizer, batch_size=4, add_bos_token=False)
    for record, sample in zip(records, lm_evals_own(benchmark, plain), strict=True):
        assert record["output"] == sample["resps"][0][0]
        assert record["correct"] == (sample["exact_match"] == 1.0)
        assert record["parse_ok"] is (sample["filtered_resps"][0] != "[invalid]")
        assert record["gold_logprob"] < 0
        assert record["gold_tokens"] > 3


def test_choices_that_are_beginnings_with_a_shared_ending(data: Path, engine: Engine) -> None:
    docs = [
        {
            "sentence": f"{name} and Kim have {n} cups so _ needs a lamp.",
            "option1": name,
            "option2": "Kim",
            "answer": "2",
        }
        for n, name in enumerate(NAMES[:4])
    ]
    write_jsonl(data / "winogrande.jsonl", docs)
    benchmark = load_benchmark(config("winogrande", data_files={"validation": "winogrande.jsonl"}), data)
    assert benchmark.items[1].target == "Ann and Kim have 1 cups so Kim needs a lamp."
    records = run_task(engine, benchmark, benchmark.items)
    expected = lm_evals_own(benchmark, engine)
    assert [record["correct"] for record in records] == [sample["acc"] == 1.0 for sample in expected]
    assert [record["gold_logprob"] for record in records] == [sample["resps"][1][0][0] for sample in expected]


def test_a_task_that_asks_whether_greedy_decoding_gives_the_gold_text(data: Path, engine: Engine) -> None:
    docs = [{"text": f"{name} has a map. What does {name} need? {name} needs a cup"} for name in NAMES[:4]]
    write_jsonl(data / "lambada.jsonl", docs)
    benchmark = load_benchmark(config("lambada_openai", data_files={"test": "lambada.jsonl"}), data)
    assert benchmark.items[0].target == " cup"
    records = run_task(engine, benchmark, benchmark.items)
    expected = lm_evals_own(benchmark, engine)
    assert [record["correct"] for record in records] == [sample["acc"] == 1 for sample in expected]
    assert [record["gold_logprob"] for record in records] == [sample["resps"][0][0][0] for sample in expected]


def test_a_metric_between_right_and_wrong_names_the_tasks_metrics(data: Path, engine: Engine) -> None:
    targets = {"choices": ["a map", "a cup"], "labels": [1, 0]}
    docs = [{"question": f"What does {name} need?", "mc1_targets": targets, "mc2_targets": targets} for name in NAMES]
    write_jsonl(data / "truthfulqa.jsonl", docs)
    benchmark = load_benchmark(config("truthfulqa_mc2", data_files={"validation": "truthfulqa.jsonl"}), data)
    with pytest.raises(ConfigError, match=r"not 0 or 1. Set params.metric to another of: acc\."):
        run_task(engine, benchmark, benchmark.items)


def test_the_models_template_settings_render_the_prompts_of_a_task(arc: Benchmark, tmp_path: Path) -> None:
    base = load_base(write_qwen3(tmp_path))
    seen: list[str] = []
    engine = Engine(base, base.model, 4)
    original = engine.loglikelihood

    def recorded(requests: list[Any], **settings: Any) -> Any:
        seen.extend(request.args[0] for request in requests)
        return original(requests, **settings)

    engine.loglikelihood = recorded
    run_task(engine, arc, arc.items[:1])
    assert set(seen) == {base.chat.prompt_text(arc.items[0].prompt)}
    assert seen[0].endswith("<think>\n\n</think>\n\n")


def test_a_prompt_that_does_not_fit_is_refused_with_its_item(data: Path, engine: Engine) -> None:
    docs = arc_docs()
    docs[3]["question"] = "Tom has 3 cups. " * 200
    write_jsonl(data / "long.jsonl", docs)
    benchmark = load_benchmark(config(data_files={"test": "long.jsonl"}), data)
    with pytest.raises(TokenizationError, match=r"item arc_challenge/3: .* tokens"):
        run_task(engine, benchmark, [benchmark.items[5], benchmark.items[3]])


def test_a_folder_of_parquet_replaces_the_hub(data: Path) -> None:
    folder = data / "arc_folder"
    folder.mkdir()
    pd.DataFrame(arc_docs()).to_parquet(folder / "test-00000-of-00001.parquet")
    chosen = replace(config(), path="arc_folder")
    benchmark = load_benchmark(chosen, data)
    assert [item.target for item in benchmark.items[:2]] == ["a map", "a cup"]
    assert benchmark.source.revision == "local copy arc_folder"


def test_a_damaged_parquet_file_is_named(data: Path) -> None:
    (data / "bad.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match=r"bad\.parquet is no readable parquet file"):
        load_benchmark(config(data_files={"test": "bad.parquet"}), data)


def test_without_network_the_task_its_data_set_and_the_remedies_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def load_dataset(*_: Any, **__: Any) -> Any:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(DataError) as caught:
        load_benchmark(config(), tmp_path)
    for part in ("arc_challenge", "allenai/ai2_arc", "ARC-Challenge", "no route", "params.data_files", "prefetch"):
        assert part in str(caught.value)


def test_a_pinned_revision_reaches_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def load_dataset(**given: Any) -> Any:
        asked.append(given)
        return datasets.DatasetDict(
            {split: datasets.Dataset.from_list(arc_docs()) for split in ("train", "validation", "test")}
        )

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    chosen = replace(config(), hub=HubConfig("allenai/ai2_arc", "ARC-Challenge", "abc123", "CC BY-SA 4.0"))
    benchmark = load_benchmark(chosen, tmp_path)
    assert asked == [{"path": "allenai/ai2_arc", "name": "ARC-Challenge", "revision": "abc123"}]
    assert benchmark.source.revision == "abc123"


@pytest.mark.parametrize(
    ("task", "params", "message"),
    [
        ("arc_chalenge", {}, "no task 'arc_chalenge'.*arc_challenge"),
        ("mmlu", {}, "mmlu is a group of 57 lm-eval tasks.*mmlu_abstract_algebra"),
        ("ai2_arc", {}, "group of 2 lm-eval tasks.*arc_challenge, arc_easy"),
        ("humaneval", {}, "model-written code.*sandbox"),
        ("wikitext", {}, "perplexity"),
        (
            "gsm8k_cot_self_consistency",
            {"data_files": {"test": "gsm_test.jsonl"}, "num_fewshot": 0},
            "draws 64 outputs",
        ),
        ("arc_challenge", {"shots": 5}, "params.shots is unknown. Known: task, data_files"),
        ("arc_challenge", {"data_files": {"test": "arc.jsonl"}, "metric": "f1"}, "no metric f1.*acc, acc_norm"),
        ("arc_challenge", {"data_files": {"test": "arc.jsonl"}, "filter": "strict"}, "no filter 'strict'.*none"),
        ("arc_challenge", {"data_files": {"test": "arc.txt"}}, "arc.txt is none of .parquet"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_what_to_do(
    data: Path, task: str, params: dict[str, Any], message: str
) -> None:
    (data / "arc.txt").touch()
    with pytest.raises(ConfigError, match=message):
        load_benchmark(config(task, **params), data)


def test_missing_and_unfit_files_are_named(data: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.jsonl does not exist"):
        load_benchmark(config(data_files={"test": "nowhere.jsonl"}), data)
    with pytest.raises(DataError, match=r"cannot use .*gsm_test\.jsonl.*columns of allenai/ai2_arc"):
        load_benchmark(config(data_files={"test": "gsm_test.jsonl"}), data)
    with pytest.raises(DataError, match=r"cannot use .*gsm_test\.jsonl.*splits"):
        load_benchmark(config("gsm8k", data_files={"test": "gsm_test.jsonl"}, num_fewshot=2), data)


def test_an_item_whose_gold_answer_is_hidden_is_refused(data: Path) -> None:
    docs = [{**doc, "choices": {**doc["choices"], "label": list("WXYZ")}, "answerKey": "W"} for doc in arc_docs()[:2]]
    docs[1]["answerKey"] = ""
    write_jsonl(data / "hidden.jsonl", docs)
    with pytest.raises(DataError, match=r"task arc_challenge, document 1: no choices or gold answer.*Made_1"):
        load_benchmark(config(data_files={"test": "hidden.jsonl"}), data)


@pytest.mark.parametrize("value", [0.5, (1, 2), None])
def test_a_metric_that_is_neither_right_nor_wrong_is_refused(arc: Benchmark, value: Any) -> None:
    assert arc.task is not None
    with pytest.raises(ConfigError, match="metric acc gives .*params.metric"):
        verdict(arc.task, {"acc": value, "acc_norm": 1.0})
