"""Prefetch against local folders that stand in for hub data sets; only what the hub itself answers is made up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from filelock import FileLock
from huggingface_hub.errors import GatedRepoError, OfflineModeIsEnabled

from softcontam.benchmarks import lm_eval_task, load_benchmark
from softcontam.benchmarks.records import read_records, source
from softcontam.config import BenchmarkConfig, EvalBenchmark, HubConfig
from softcontam.errors import DataError
from softcontam.hub import Hub, Pin
from softcontam.manifest import read_manifest
from softcontam.needs import needs
from softcontam.prefetch import main
from softcontam.store import file_sha256

COMMIT = "c0ffee" + "0" * 34
NEWER = "beef" + "1" * 36

ZEBRA = """There are 2 houses, numbered 1 to 2 from left to right, as seen from across the street. \
Each house is occupied by a different person. Each house has a unique attribute for each of the following \
characteristics:
 - Each person has a unique name: `Arnold`, `Eric`
 - People own unique car models: `ford f150`, `tesla model 3`

## Clues:
1. Eric is directly left of the person who owns a Tesla Model 3."""


class Mirror(Hub):
    """The hub's part played by local folders: which commit a revision is, and where a data set's files are."""

    def __init__(self, folders: Mapping[str, Path], newest: str = COMMIT) -> None:
        self.folders, self.newest = folders, newest
        self.asked: list[tuple[str, str | None]] = []
        self.loaded: list[tuple[str, str | None, str]] = []

    def data_set(self, hub_id: str, revision: str | None) -> Pin:
        self.asked.append((hub_id, revision))
        return Pin(revision if revision in (COMMIT, NEWER) else self.newest, "cc-by-4.0")

    model = data_set

    def load(self, hub_id: str, config: str | None, commit: str, cache: Path, options: Mapping[str, Any]) -> Any:
        self.loaded.append((hub_id, config, commit))
        return super().load(str(self.folders[hub_id]), config, commit, cache, options)

    def snapshot(self, hub_id: str, commit: str, folder: Path) -> None:
        for name in ("model.safetensors", "config.json"):
            (folder / name).write_text(f"{name} of {hub_id} at {commit}")


class Silent(Hub):
    """A hub that answers with an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def data_set(self, hub_id: str, revision: str | None) -> Pin:
        raise self.error


def put_data_set(folder: Path, config: str, **splits: list[dict[str, Any]]) -> Path:
    """A folder that ``datasets`` loads like a hub data set with one config."""
    (folder / config).mkdir(parents=True)
    lines = ["---", "configs:", f"- config_name: {config}", "  data_files:"]
    for split, rows in splits.items():
        pd.DataFrame(rows).to_parquet(folder / config / f"{split}-0.parquet")
        lines += [f"  - split: {split}", f"    path: {config}/{split}-*"]
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]))
    return folder


def sums(count: int, start: int = 0) -> list[dict[str, Any]]:
    numbers = range(start, start + count)
    return [{"question": f"Tom has {n} cups.\r\nAnd {n} more?", "answer": f"{n}+{n}\n#### {2 * n}"} for n in numbers]


@pytest.fixture
def gsm8k(tmp_path: Path) -> Mirror:
    return Mirror({"openai/gsm8k": put_data_set(tmp_path / "hub" / "gsm8k", "main", train=sums(5), test=sums(3, 90))})


_needs = cache(needs)


@pytest.fixture(autouse=True)
def composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hydra takes 0.1 s for each config; the tests use few."""
    monkeypatch.setattr("softcontam.prefetch.needs", lambda overrides: _needs(tuple(overrides)))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "data"


GSM8K = ("benchmark=gsm8k",)
TEST = "gsm8k/main/test-00000-of-00001.parquet"
TRAIN = "gsm8k/main/train-00000-of-00001.parquet"


def call(out: Path, hub: Hub, *words: str) -> int:
    return main([*words, f"out={out}"], hub)


def files_of(out: Path) -> dict[str, str]:
    """sha256 by place of all that lies in a folder, hidden files and the manifest included, but for the lock."""
    return {
        str(file.relative_to(out)): file_sha256(file)
        for file in sorted(out.rglob("*"))
        if file.is_file() and file.name != ".prefetch.lock"
    }


def gsm8k_config(**hub: Any) -> BenchmarkConfig:
    where = HubConfig(**{"id": "openai/gsm8k", "config": "main", "licence": "MIT", **hub})
    return BenchmarkConfig(name="gsm8k", module="gsm8k", path="gsm8k/main", hub=where)


@pytest.mark.parametrize(
    ("hub_id", "mirror", "overrides", "folder", "splits"),
    [
        ("openai/gsm8k", "gsm8k", ("benchmark=gsm8k",), "gsm8k/main", {"test": 1319, "train": 7473}),
        (
            "google-research-datasets/mbpp",
            "mbpp",
            ("benchmark=mbpp",),
            "mbpp/sanitized",
            {"prompt": 7, "test": 257, "train": 120, "validation": 43},
        ),
        (
            "TAUR-Lab/MuSR",
            "musr",
            ("benchmark=musr",),
            "musr",
            {"murder_mysteries": 250, "object_placements": 20, "team_allocation": 5},
        ),
    ],
)
def test_every_split_is_there_row_by_row_and_gives_the_same_items(
    data_dir: Path, out: Path, hub_id: str, mirror: str, overrides: tuple[str, ...], folder: str, splits: dict[str, int]
) -> None:
    import datasets

    hub = Mirror({hub_id: data_dir / mirror})
    assert call(out, hub, *overrides) == 0
    config = {"gsm8k": "main", "mbpp": "sanitized"}.get(mirror)
    original = datasets.load_dataset(str(data_dir / mirror), config)
    written = {file.name: file for file in (out / folder).iterdir()}
    assert sorted(written) == [f"{split}-00000-of-00001.parquet" for split in sorted(splits)]
    for split, rows in splits.items():
        fetched = datasets.Dataset.from_parquet(str(written[f"{split}-00000-of-00001.parquet"]), keep_in_memory=True)
        assert len(fetched) == rows
        assert fetched.to_list() == original[split].to_list()
        assert fetched.features == original[split].features
    read = BenchmarkConfig(name=mirror, module=mirror, path=folder, hub=HubConfig(hub_id))
    assert load_benchmark(read, out).items == load_benchmark(read, data_dir).items


def test_the_manifest_says_what_each_file_is(gsm8k: Mirror, out: Path) -> None:
    assert call(out, gsm8k, *GSM8K) == 0
    written = json.loads((out / "manifest.json").read_text())["files"]
    assert list(written) == [TEST, TRAIN]
    entry = written[TEST]
    assert entry.pop("date").startswith("20")
    assert set(entry.pop("versions")) == {"softcontam", "datasets", "huggingface_hub"}
    assert entry == {
        "sha256": file_sha256(out / TEST),
        "hub": "openai/gsm8k",
        "requested": None,
        "commit": COMMIT,
        "licence": "MIT",
        "card_licence": "cc-by-4.0",
        "config": "main",
        "split": "test",
        "rows": 3,
        "changes": None,
    }


def test_the_licence_and_the_way_to_run_are_printed(
    gsm8k: Mirror, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(out, gsm8k, *GSM8K)
    printed = capsys.readouterr().out
    assert "licence: MIT (hub card: cc-by-4.0)" in printed
    assert f"commit {COMMIT}, 2 files, 8 rows" in printed
    assert f"SOFTCONTAM_DATA={out}" in printed


def test_a_second_call_asks_the_hub_nothing_and_touches_nothing(gsm8k: Mirror, out: Path) -> None:
    call(out, gsm8k, *GSM8K)
    before, asked = files_of(out), len(gsm8k.asked)
    assert call(out, gsm8k, *GSM8K) == 0
    assert (len(gsm8k.asked), len(gsm8k.loaded)) == (asked, 1)
    assert files_of(out) == before


def test_a_missing_file_is_fetched_at_the_commit_of_the_manifest_not_at_the_newest(gsm8k: Mirror, out: Path) -> None:
    call(out, gsm8k, *GSM8K)
    (out / TEST).unlink()
    gsm8k.newest = NEWER
    assert call(out, gsm8k, *GSM8K) == 0
    assert gsm8k.loaded[-1] == ("openai/gsm8k", "main", COMMIT)
    assert main(["verify", f"out={out}"]) == 0


def test_force_fetches_the_newest_again(gsm8k: Mirror, out: Path) -> None:
    call(out, gsm8k, *GSM8K)
    gsm8k.newest = NEWER
    assert call(out, gsm8k, *GSM8K, "--force") == 0
    manifest = read_manifest(out)
    assert manifest is not None
    assert {entry.commit for entry in manifest.entries.values()} == {NEWER}


def test_another_revision_than_the_fetched_one_is_not_taken_as_there(
    gsm8k: Mirror, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(out, gsm8k, *GSM8K)
    assert call(out, gsm8k, *GSM8K, f"benchmark.hub.revision={NEWER}") == 1
    assert f"was fetched at {COMMIT}, and revision {NEWER} is asked for" in capsys.readouterr().err
    assert call(out, gsm8k, *GSM8K, f"benchmark.hub.revision={COMMIT}") == 0
    with pytest.raises(DataError, match=f"asks for revision {NEWER}"):
        source(gsm8k_config(revision=NEWER), out)


def test_a_changed_file_is_refused_by_prefetch_by_verify_and_by_the_loader(
    gsm8k: Mirror, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call(out, gsm8k, *GSM8K)
    assert main(["verify", f"out={out}"]) == 0
    pd.DataFrame(sums(3)).to_parquet(out / TEST)
    before = files_of(out)
    capsys.readouterr()
    for words in (["verify"], list(GSM8K)):
        assert main([*words, f"out={out}"], gsm8k) == 1
        problem = capsys.readouterr().err
        assert str(out / TEST) in problem
        assert "force=true" in problem
    assert files_of(out) == before
    with pytest.raises(DataError, match="is not the file that was fetched"):
        load_benchmark(gsm8k_config(), out)


def test_a_file_added_among_the_fetched_ones_is_not_read_along(gsm8k: Mirror, out: Path) -> None:
    call(out, gsm8k, *GSM8K)
    added = out / "gsm8k/main/test-00001-of-00002.parquet"
    pd.DataFrame(sums(1)).to_parquet(added)
    with pytest.raises(DataError, match="does not list it"):
        load_benchmark(gsm8k_config(), out)
    assert main(["verify", f"out={out}"]) == 1


def test_a_folder_without_manifest_is_read_as_before(gsm8k: Mirror, out: Path) -> None:
    call(out, gsm8k, *GSM8K)
    (out / "manifest.json").unlink()
    assert len(load_benchmark(gsm8k_config(), out).items) == 3
    assert source(gsm8k_config(), out).revision == "local copy gsm8k/main"


def test_another_tools_manifest_is_neither_used_nor_written_over(
    gsm8k: Mirror, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out.mkdir()
    (out / "manifest.json").write_text('{"files": ["a"]}')
    assert call(out, gsm8k, *GSM8K) == 2
    assert "was not written by softcontam" in capsys.readouterr().err
    assert json.loads((out / "manifest.json").read_text()) == {"files": ["a"]}
    assert read_manifest(out) is None


@pytest.mark.parametrize(
    "text", ["{", '{"written_by": "softcontam.prefetch", "format": 2, "files": {}}',
             '{"written_by": "softcontam.prefetch", "format": 1, "files": {"a": {"sha": "1"}}}']
)  # fmt: skip
def test_a_damaged_manifest_is_an_error_not_no_manifest(out: Path, text: str) -> None:
    out.mkdir()
    (out / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="manifest.json is damaged"):
        read_manifest(out)


def test_the_source_of_fetched_items_is_the_commit(gsm8k: Mirror, out: Path) -> None:
    call(out, gsm8k, *GSM8K)
    assert source(gsm8k_config(), out).revision == COMMIT
    with pytest.raises(DataError, match="was fetched from openai/gsm8k"):
        source(gsm8k_config(id="somebody/else"), out)


def test_files_of_somebody_else_are_neither_replaced_nor_joined(
    gsm8k: Mirror, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("test-00000-of-00001.parquet", "test.jsonl"):
        own = out / "gsm8k/main" / name
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text("my own")
        assert call(out, gsm8k, *GSM8K, "force=true") == 1
        assert f"{own} exists" in capsys.readouterr().err
        assert files_of(out) == {str(own.relative_to(out)): file_sha256(own)}
        own.unlink()


def test_a_data_set_that_fails_is_named_and_leaves_the_others(
    gsm8k: Mirror, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(out, gsm8k, *GSM8K, "eval=humaneval_related") == 1
    printed = capsys.readouterr()
    assert "humaneval: openai/openai_humaneval" in printed.err
    assert "gsm8k" not in printed.err
    assert list(files_of(out)) == [TEST, TRAIN, "manifest.json"]


def test_a_write_that_is_interrupted_leaves_no_file_and_the_next_call_goes_on(
    gsm8k: Mirror, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    whole = datasets.Dataset.to_parquet

    def interrupted(self: Any, path: Path) -> None:
        whole(self, path)
        path.write_bytes(path.read_bytes()[:100])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(datasets.Dataset, "to_parquet", interrupted)
        assert call(out, gsm8k, *GSM8K) == 130
    assert files_of(out) == {}
    assert call(out, gsm8k, *GSM8K) == 0
    assert main(["verify", f"out={out}"]) == 0


def test_a_kill_between_manifest_and_files_is_made_good_by_the_next_call(
    gsm8k: Mirror, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from softcontam import prefetch

    def killed(path: Path, write: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(prefetch, "write_atomically", killed)
        assert call(out, gsm8k, *GSM8K) == 130
    (out / ".prefetch-left").mkdir()
    assert main(["verify", f"out={out}"]) == 1
    assert call(out, gsm8k, *GSM8K) == 0
    assert main(["verify", f"out={out}"]) == 0
    assert not (out / ".prefetch-left").exists()


def test_two_calls_at_once_do_not_write_to_one_folder(
    gsm8k: Mirror, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out.mkdir()
    with FileLock(out / ".prefetch.lock"):
        assert call(out, gsm8k, *GSM8K) == 2
    assert "another prefetch is writing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (httpx.ConnectError("[Errno -2] Name or service not known"), "run this on a machine with network, copy"),
        (ConnectionError("Couldn't reach 'openai/gsm8k' on the Hub"), "run this on a machine with network, copy"),
        (OfflineModeIsEnabled("offline mode is enabled"), "HF_HUB_OFFLINE is set: unset it"),
        (ValueError("BuilderConfig 'main' not found"), "Check hub.id, hub.config and hub.revision"),
    ],
)
def test_a_hub_that_does_not_answer_is_explained_in_one_line(
    out: Path, capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    assert call(out, Silent(error), *GSM8K) == 1
    problem = capsys.readouterr().err
    assert problem.startswith("error: gsm8k: openai/gsm8k (config main) could not be fetched.")
    assert said in problem
    assert problem.count("\n") == 1


def test_a_gated_data_set_says_how_to_get_in(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = httpx.Response(403, request=httpx.Request("GET", "https://huggingface.co/api/datasets/a/b"))
    assert call(out, Silent(GatedRepoError("Access is restricted", response=refusal)), *GSM8K) == 1  # type: ignore[arg-type]
    assert "hf auth login" in capsys.readouterr().err


def test_zebralogics_blank_answers_are_written_solved(tmp_path: Path, out: Path) -> None:
    blank = {"header": ["House", "Name", "CarModel"], "rows": [["___"] * 3, ["___"] * 3]}
    row = {"id": "lgp-test-2x2-0", "size": "2*2", "puzzle": ZEBRA, "solution": blank, "created_at": "2024-07-03"}
    mirror = put_data_set(tmp_path / "hub" / "zebra", "grid_mode", test=[row])
    assert call(out, Mirror({"allenai/ZebraLogicBench": mirror}), "benchmark=zebralogic") == 0
    hub = HubConfig("allenai/ZebraLogicBench", "grid_mode")
    config = BenchmarkConfig(name="zebralogic", module="zebralogic", path="zebralogic/grid_mode", hub=hub)
    columns = ("id", "size", "puzzle", "solution", "created_at")
    (record,) = read_records(config, out, ("test",), columns)
    solution = record.values["solution"]
    assert [list(cells) for cells in solution["rows"]] == [["1", "Eric", "ford f150"], ["2", "Arnold", "tesla model 3"]]
    assert {key: record.values[key] for key in ("id", "puzzle", "created_at")} == {
        key: row[key] for key in ("id", "puzzle", "created_at")
    }
    manifest = read_manifest(out)
    assert manifest is not None
    assert "solver" in (manifest.entries["zebralogic/grid_mode/test-00000-of-00001.parquet"].changes or "")
    fetched = load_benchmark(config, out)
    config.path = str(mirror / "grid_mode")
    assert fetched.items == load_benchmark(config, tmp_path).items


def test_an_lm_eval_task_is_fetched_from_its_own_data_set(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"dataset_path": "allenai/ai2_arc", "dataset_name": "ARC-Challenge"}
    monkeypatch.setattr(lm_eval_task, "_settings", lambda config, name: settings)
    mirror = put_data_set(tmp_path / "hub" / "arc", "ARC-Challenge", test=sums(2), train=sums(1))
    hub = Mirror({"allenai/ai2_arc": mirror})
    assert call(out, hub, "eval=arc_related") == 0
    assert "eval.related.0.path=ai2_arc/ARC-Challenge" in capsys.readouterr().out
    assert len(pd.read_parquet(out / "ai2_arc/ARC-Challenge/test-00000-of-00001.parquet")) == 2


@pytest.mark.slow
def test_a_run_reads_the_fetched_task_with_the_setting_that_is_printed(
    tmp_path: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doc = {
        "id": "Made_1",
        "question": "What opens a lock?",
        "choices": {"text": ["a cup", "a key"], "label": ["A", "B"]},
        "answerKey": "B",
    }
    mirror = put_data_set(tmp_path / "hub" / "arc", "ARC-Challenge", test=[doc], train=[doc])
    assert call(out, Mirror({"allenai/ai2_arc": mirror}), "eval=arc_related") == 0
    setting = next(word for word in capsys.readouterr().out.split() if word.startswith("eval.related.0.path="))
    config = EvalBenchmark(name="arc", module="lm_eval_task", params={"task": "arc_challenge"})
    config.path = setting.partition("=")[2]
    (item,) = load_benchmark(config, out).items
    assert item.target == "a key"


def test_a_path_that_the_config_leaves_open_is_named_after_the_data_set() -> None:
    found = needs(["benchmark=codeforces"])
    assert list(found.data_sets) == ["codeforces/default"]
    assert found.overrides == {"codeforces/default": ["benchmark.path=codeforces/default"]}
    assert found.local == ["codeforces/solutions.jsonl"]


def test_an_experiment_needs_the_data_sets_of_its_benchmark_and_its_related_one() -> None:
    found = needs(["exp=mbpp_smollm2"])
    assert sorted(found.data_sets) == ["mbpp/sanitized", "openai_humaneval/openai_humaneval"]
    assert "code_dup_corpus/train.jsonl" in found.local
    assert not found.models


def test_a_sweep_over_benchmarks_needs_all_of_them(tmp_path: Path) -> None:
    found = needs(["benchmark=mbpp,gsm8k", "benchmark.hub.revision=null", "model=qwen3_8b,olmo3_7b", "seed=0,1,2"])
    assert sorted(found.data_sets) == ["gsm8k/main", "mbpp/sanitized"]
    assert sorted(found.models) == ["Qwen/Qwen3-8B-Base", "allenai/Olmo-3-1025-7B"]


def test_an_experiments_own_sweep_over_benchmarks_is_followed() -> None:
    swept = ["benchmark=tinyworld", "+hydra.sweeper.params.benchmark='mbpp,gsm8k'"]
    assert list(needs(swept).data_sets) == []  # the command line decides
    assert sorted(needs(swept[1:]).data_sets) == ["gsm8k/main", "mbpp/sanitized"]


def test_what_is_not_to_be_passed_on_is_left_out_and_said_so(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(out, Silent(AssertionError("asked")), "eval=truedetective_related") == 0
    assert "truedetective: nothing fetched (its terms forbid passing it on" in capsys.readouterr().out
    assert files_of(out) == {}


def test_models_are_fetched_only_when_asked_for(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub = Mirror({})
    assert call(out, hub, "model=qwen3_8b") == 0
    assert "Qwen/Qwen3-8B-Base: not fetched (add models=true)" in capsys.readouterr().out
    assert call(out, hub, "model=qwen3_8b", "models=true") == 0
    assert f"model.path={out}/models/Qwen/Qwen3-8B-Base" in capsys.readouterr().out
    assert call(out, hub, "model=qwen3_8b", "models=true") == 0
    assert len(hub.asked) == 1
    weights = out / "models/Qwen/Qwen3-8B-Base/model.safetensors"
    assert COMMIT in weights.read_text()
    assert main(["verify", f"out={out}"]) == 0
    weights.write_text("other weights")
    assert main(["verify", f"out={out}"]) == 1
    assert str(weights) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["benchmark=gsm8k"], "set out=DIR"),
        (["gsm8k", "out=x"], "'gsm8k' is not of the form key=value"),
        (["benchmark=nothing", "out=x"], "benchmark/nothing"),
        (["benchmark=gsm8k", "out=x", "force=maybe"], "must be true or false"),
        (["verify", "benchmark=gsm8k", "out=x"], "has no meaning there"),
        (["verify", "out=x"], "has no manifest.json"),
        (["benchmark=gsm8k", "benchmark.path=/data/gsm8k", "out=x"], "does not lie below the output folder"),
        (["benchmark=gsm8k", "eval=humaneval_related", "eval.related.0.path=gsm8k/main", "out=x"], "both be written"),
    ],
)
def test_a_bad_request_fetches_nothing_and_says_what_to_do(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words, Silent(AssertionError("asked"))) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
