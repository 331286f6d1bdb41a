"""The files behind a cell: each one found, hashed under its own name, and named when it is not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from fake_sweep import config

from softcontam.config import BankConfig, Config, EvalBenchmark, ModelConfig, PoolConfig
from softcontam.errors import ConfigError, DataError, SoftcontamError
from softcontam.inputs import TINYWORLD_BASE, input_hashes, model_folder
from softcontam.store import file_sha256, identity


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("pool/train.jsonl", "other_pool/train.jsonl", "bank.parquet", "items/a/test.parquet",
                 "items/b/test.parquet", "general.jsonl", "fresh.jsonl", "rewordings.jsonl", "only.jsonl",
                 "difficulty.csv", "solutions.jsonl", "arc/train.jsonl", "arc/test.jsonl"):  # fmt: skip
        put(tmp_path / "data" / name, f"content of {name}")
    return tmp_path / "data"


def complete(data: Path) -> Config:
    """A config that reads every kind of file."""
    one = config("topical", rate=0.1)
    one.paths.data = str(data)
    one.mixture.pool = PoolConfig("mine", ["pool/train.jsonl", "other_pool/train.jsonl"])
    one.benchmark.path = "items"
    rewordings = {"rewordings": ["rewordings.jsonl"], "per_item": 4}
    one.benchmark.banks = {
        "topical": BankConfig("nearest", "bank.parquet", rewordings),
        "semd_synthetic": BankConfig("labelled_pairs", "only.jsonl"),
    }
    one.benchmark.only_items_with = ["semd_synthetic"]
    one.benchmark.difficulty = "difficulty.csv"
    one.benchmark.params = {"solutions": "solutions.jsonl"}
    splits = {"train": "arc/train.jsonl", "test": ["arc/test.jsonl"]}
    one.eval.related = [EvalBenchmark(name="arc", module="lm_eval_task", params={"data_files": splits})]
    one.eval.general = [EvalBenchmark(name="general", module="x", path="general.jsonl")]
    one.eval.fresh = [EvalBenchmark(name="fresh", module="x", path="fresh.jsonl")]
    return one


FILES = [
    "pool/train.jsonl",
    "other_pool/train.jsonl",
    "bank.parquet",
    "items/a/test.parquet",
    "items/b/test.parquet",
    "general.jsonl",
    "fresh.jsonl",
    "rewordings.jsonl",
    "only.jsonl",
    "difficulty.csv",
    "solutions.jsonl",
    "arc/train.jsonl",
    "arc/test.jsonl",
]


@pytest.mark.parametrize("name", [pytest.param(name) for name in FILES])
def test_a_change_in_any_file_that_is_read_makes_another_cell(data: Path, name: str) -> None:
    one = complete(data)
    before = identity(one, input_hashes(one))
    put(data / name, "other content")
    assert identity(one, input_hashes(one)) != before


def test_moving_the_data_keeps_the_cell(data: Path, tmp_path: Path) -> None:
    one = complete(data)
    before = identity(one, input_hashes(one))
    shutil.copytree(data, tmp_path / "moved")
    one.paths.data = str(tmp_path / "moved")
    assert identity(one, input_hashes(one)) == before


def test_a_change_that_keeps_size_and_name_is_noticed(data: Path) -> None:
    one = complete(data)
    before = input_hashes(one)
    path = data / "bank.parquet"
    text = path.read_text()
    path.write_text(text[::-1])
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    assert input_hashes(one) != before


@pytest.mark.parametrize(
    "name",
    [pytest.param(name) for name in FILES if not name.startswith("items")],
)
def test_a_file_that_is_not_there_is_named_with_what_to_set(data: Path, name: str) -> None:
    one = complete(data)
    (data / name).unlink()
    with pytest.raises(DataError) as caught:
        input_hashes(one)
    assert str(data / name) in str(caught.value)
    assert "SOFTCONTAM_DATA" in str(caught.value)


def test_a_folder_without_data_files_is_no_benchmark(data: Path) -> None:
    shutil.rmtree(data / "items")
    put(data / "items" / "README.md", "nothing here")
    with pytest.raises(DataError, match=r"items.*SOFTCONTAM_DATA"):
        input_hashes(complete(data))


def test_the_bank_of_another_condition_does_not_matter(data: Path) -> None:
    one = complete(data)
    one.condition.kind = "exact"
    one.benchmark.only_items_with = []
    before = input_hashes(one)
    put(data / "bank.parquet", "other content")
    assert input_hashes(one) == before


class TestModel:
    def test_the_shipped_one(self) -> None:
        assert model_folder(ModelConfig(name="t", path="tinyworld")) == TINYWORLD_BASE
        found = input_hashes(config())
        assert found["model:model.safetensors"] == file_sha256(TINYWORLD_BASE / "model.safetensors")

    @pytest.mark.parametrize("path", ["/no/such/folder", "./nowhere", "~/nowhere", "nowhere", "a/b/c", "no_such_name"])
    def test_a_path_that_does_not_exist(self, path: str) -> None:
        with pytest.raises(ConfigError, match=r"model\.path=.*does not exist.*config\.json"):
            model_folder(ModelConfig(name="mine", path=path))

    def test_a_package_that_is_not_installed(self) -> None:
        with pytest.raises(ConfigError, match=r"model\.path=package:no_such_package.*not installed.*install"):
            model_folder(ModelConfig(name="mine", path="package:no_such_package"))

    def test_a_hub_id_is_pinned_by_its_revision(self) -> None:
        one = config()
        one.model = ModelConfig(name="q", path="Qwen/Qwen3-0.6B", revision="abc")
        assert model_folder(one.model) is None
        assert input_hashes(one) == {}

    def test_a_folder_without_weights(self, tmp_path: Path) -> None:
        put(tmp_path / "model" / "config.json", "{}")
        one = config()
        one.model = ModelConfig(name="mine", path=str(tmp_path / "model"))
        with pytest.raises(SoftcontamError, match=r"model\.path=.*no \*\.safetensors in.*folder with the weights"):
            input_hashes(one)

    @pytest.mark.parametrize(
        "name",
        [
            "model.safetensors",
            "tokenizer.json",
            "chat_template.jinja",
            *[pytest.param(name) for name in ("config.json", "tokenizer_config.json")],
        ],
    )
    def test_a_change_in_any_of_its_files_makes_another_cell(self, tmp_path: Path, name: str) -> None:
        folder = tmp_path / "model"
        shutil.copytree(TINYWORLD_BASE, folder)
        one = config()
        one.model = ModelConfig(name="mine", path=str(folder))
        before = identity(one, input_hashes(one))
        path = folder / name
        path.write_bytes(path.read_bytes() + b" ")
        assert identity(one, input_hashes(one)) != before
