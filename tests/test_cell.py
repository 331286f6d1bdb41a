"""One real cell: what it stores, that it repeats to the byte, and that it takes up where it was stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from test_store import files_limited_to, tree
from tiny_cells import composed
from transformers import TrainerCallback

from softcontam import cell as cell_module
from softcontam.cell import run_cell
from softcontam.config import BankConfig, Config
from softcontam.errors import ConfigError, DataError
from softcontam.inputs import input_hashes
from softcontam.store import DONE, FAILED, Cell, Store
from softcontam.training import sft

FILES = {
    "config.yaml", "inputs.json", "status.json", "manifest.parquet", "adapter", "outcomes.parquet", "metrics.json",
    "families.parquet", "items.parquet", "train_log.jsonl", "environment.json", "log.txt", ".lock",
}  # fmt: skip


def frozen(folder: Path, *overrides: str, change: Callable[[Config], None] = lambda _: None) -> Cell:
    config = composed(f"paths.runs={folder}", *overrides)
    change(config)
    return Store(folder).freeze(config, input_hashes(config))


def weights(cell: Cell) -> bytes:
    return (cell.folder / "adapter" / "adapter_model.safetensors").read_bytes()


def same(cell: Cell, other: Cell) -> None:
    """Both ended with the same bytes of adapter and the same outcomes."""
    assert weights(cell) == weights(other)
    pd.testing.assert_frame_equal(cell.outcomes.drop(columns="cell"), other.outcomes.drop(columns="cell"))
    assert cell.metrics["roles"] == other.metrics["roles"]


class TestWhatIsStored:
    def test_all_files_of_the_design_and_no_more(self, tiny_arms: dict[str, Cell]) -> None:
        for cell in tiny_arms.values():
            assert {path.name for path in cell.folder.iterdir()} == FILES
            assert cell.status["state"] == DONE

    def test_outcomes_have_one_row_per_item_and_sample_in_every_role(self, tiny_arms: dict[str, Cell]) -> None:
        for cell in tiny_arms.values():
            outcomes = cell.outcomes
            assert outcomes.groupby("role").size().to_dict() == {"general": 4, "held_out": 8, "related": 6, "seen": 8}
            assert not outcomes.duplicated(["benchmark", "role", "item_id", "sample"]).any()
            assert set(outcomes["cell"]) == {cell.id}
            assert (outcomes["gold_logprob"] <= 0).all()
            assert (outcomes["gold_tokens"] >= 1).all()
            assert outcomes[["output", "parse_ok", "finished", "correct"]].notna().all().all()
            assert not (outcomes["correct"] & ~outcomes["parse_ok"]).any()

    def test_what_was_asked_is_stored_for_every_outcome(self, tiny_arms: dict[str, Cell]) -> None:
        for cell in tiny_arms.values():
            asked = pd.read_parquet(cell.folder / "items.parquet")
            both = cell.outcomes.merge(asked, on=["benchmark", "role", "item_id"], validate="one_to_one")
            assert len(both) == len(asked) == len(cell.outcomes)
            assert (both["prompt"].str.len() > 10).all()
            assert both["target"].notna().all()

    def test_no_family_is_seen_and_held_out(self, tiny_arms: dict[str, Cell]) -> None:
        outcomes = tiny_arms["exact"].outcomes
        families = [set(outcomes.loc[outcomes["role"] == role, "family"]) for role in ("seen", "held_out")]
        assert not families[0] & families[1]

    def test_copies_in_the_outcomes_are_the_manifests(self, tiny_arms: dict[str, Cell]) -> None:
        for condition, cell in tiny_arms.items():
            counted = cell.manifest["item_id"].value_counts().to_dict()
            told = {row.item_id: row.copies for row in cell.outcomes.itertuples() if row.copies}
            assert told == counted
            assert sum(counted.values()) == cell.metrics["inserted_rows"] == (0 if condition == "clean" else 6)
            assert set(cell.outcomes.loc[cell.outcomes["role"] != "seen", "copies"]) == {0}

    def test_metrics_are_those_of_manifest_and_outcomes(self, tiny_arms: dict[str, Cell]) -> None:
        for cell in tiny_arms.values():
            metrics, manifest, outcomes = cell.metrics, cell.manifest, cell.outcomes
            assert metrics["n_rows"] == len(manifest) == 64
            assert metrics["tokens"] == manifest["tokens"].sum()
            assert metrics["trained_tokens"] == manifest["trained_tokens"].sum()
            assert metrics["steps"] == 2
            for key, figures in metrics["roles"].items():
                benchmark, role = key.split("/")
                rows = outcomes[(outcomes["benchmark"] == benchmark) & (outcomes["role"] == role)]
                assert figures["accuracy"] == pytest.approx(rows["correct"].mean())
                assert figures["items"] == len(rows)

    def test_arms_share_rows_slots_and_steps(self, tiny_arms: dict[str, Cell]) -> None:
        for key in ("base_sha256", "n_rows", "steps"):
            assert len({json.dumps(cell.metrics[key]) for cell in tiny_arms.values()}) == 1
        assert tiny_arms["exact"].metrics["slots_sha256"] == tiny_arms["semd_synthetic"].metrics["slots_sha256"]

    def test_environment_says_what_it_was_run_with(self, tiny_arms: dict[str, Cell]) -> None:
        record = json.loads((tiny_arms["clean"].folder / "environment.json").read_text())
        assert record["versions"]["torch"]
        assert record["dtype"] == "float32"
        assert record["engine"]
        assert record["device"]


class TestRepeats:
    def test_to_the_byte_after_other_cells_in_the_same_process(
        self, tiny_arms: dict[str, Cell], tmp_path: Path
    ) -> None:
        torch.manual_seed(123)
        again = frozen(tmp_path, "condition=exact")
        assert again.id == tiny_arms["exact"].id
        run_cell(again)
        same(again, tiny_arms["exact"])
        assert weights(again) != weights(tiny_arms["clean"])

    def test_a_done_cell_is_left_alone(self, tiny_arms: dict[str, Cell], monkeypatch: pytest.MonkeyPatch) -> None:
        cell = tiny_arms["clean"]
        before = {
            path: path.stat().st_mtime_ns for path in cell.folder.rglob("*") if path.name not in (".lock", "log.txt")
        }
        monkeypatch.setattr(cell_module, "prepare", lambda _: pytest.fail("ran again"))
        assert not run_cell(cell)
        assert before == {path: path.stat().st_mtime_ns for path in before}


class _StopAt(TrainerCallback):
    """Stops the process's work in the middle of training, as Ctrl-C does."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        if state.global_step == self.step:
            raise KeyboardInterrupt
        return control


LONGER = (
    "condition=exact",
    "train.epochs=3",
    "train.batch_size=8",
    "train.micro_batch_size=8",
    "train.lora.dropout=0.1",
)
"""24 steps."""


def stopped_at(step: int, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a cell until the beginning of a training step."""
    original = sft._KLTrainer

    class Stopping(original):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs["callbacks"] = [*kwargs.get("callbacks", ()), _StopAt(step)]
            super().__init__(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(sft, "_KLTrainer", Stopping)
        with pytest.raises(KeyboardInterrupt):
            run_cell(cell)
    assert not cell.done


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    cell = frozen(tmp_path_factory.mktemp("unbroken"), *LONGER)
    run_cell(cell)
    return cell


class TestResume:
    @pytest.mark.parametrize("step", [1, 11])
    def test_in_training_ends_with_the_bytes_of_an_unbroken_run(
        self, step: int, unbroken: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cell = frozen(tmp_path, *LONGER, "train.checkpoint_every_s=0")
        assert cell.id == unbroken.id
        stopped_at(step, cell, monkeypatch)
        assert [path.name for path in (cell.folder / "checkpoints").glob("checkpoint-*")] == [f"checkpoint-{step}"]
        torch.manual_seed(99)
        run_cell(cell)
        same(cell, unbroken)
        assert cell.status["attempts"] == 2
        assert {path.name for path in cell.folder.iterdir()} == FILES, "checkpoints are removed"
        steps = [json.loads(line)["step"] for line in (cell.folder / "train_log.jsonl").read_text().splitlines()]
        assert steps == sorted(steps)

    def test_before_the_first_checkpoint_starts_again(
        self, unbroken: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cell = frozen(tmp_path, *LONGER)
        stopped_at(5, cell, monkeypatch)
        run_cell(cell)
        same(cell, unbroken)

    def test_in_evaluation_keeps_the_adapter(
        self, tiny_arms: dict[str, Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cell = frozen(tmp_path, "condition=exact")
        with monkeypatch.context() as patched:
            patched.setattr(cell_module, "evaluate", raising(MemoryError()))
            with pytest.raises(MemoryError):
                run_cell(cell)
        monkeypatch.setattr(cell_module, "train", raising(AssertionError("trained again")))
        run_cell(cell)
        same(cell, tiny_arms["exact"])

    @pytest.mark.parametrize(
        "damage",
        [
            lambda folder: (folder / "trainer_state.json").unlink(),
            pytest.param(lambda folder: (folder / "trainer_state.json").write_text('{"glo')),
            pytest.param(lambda folder: (folder / "optimizer.pt").write_bytes(b"PK")),
            pytest.param(lambda folder: (folder / "adapter_model.safetensors").write_bytes(b"\x08")),
            lambda folder: [path.unlink() for path in folder.iterdir()],
        ],
        ids=["no state", "half a state", "half an optimizer", "half an adapter", "empty"],
    )
    def test_from_a_checkpoint_that_a_kill_cut_short(
        self, damage: Callable[[Path], object], unbroken: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cell = frozen(tmp_path, *LONGER, "train.checkpoint_every_s=0")
        stopped_at(3, cell, monkeypatch)
        damage(cell.folder / "checkpoints" / "checkpoint-3")
        run_cell(cell)
        same(cell, unbroken)

    def test_with_a_damaged_adapter_trains_again(
        self, tiny_arms: dict[str, Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cell = frozen(tmp_path, "condition=exact")
        with monkeypatch.context() as patched:
            patched.setattr(cell_module, "evaluate", raising(MemoryError()))
            with pytest.raises(MemoryError):
                run_cell(cell)
        shutil.rmtree(cell.folder / "adapter")
        run_cell(cell)
        same(cell, tiny_arms["exact"])


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fail


class TestFailure:
    def test_a_model_that_went_away_after_freezing(self, tmp_path: Path) -> None:
        from softcontam.inputs import TINYWORLD_BASE

        folder = tmp_path / "model"
        shutil.copytree(TINYWORLD_BASE, folder)
        cell = frozen(tmp_path / "runs", "condition=exact", f"model.path={folder}")
        shutil.move(folder, tmp_path / "elsewhere")
        with pytest.raises(ConfigError, match=r"model\.path=.*does not exist"):
            run_cell(cell)
        assert cell.status["state"] == FAILED
        assert "Traceback" in cell.status["traceback"]
        shutil.move(tmp_path / "elsewhere", folder)
        assert run_cell(cell)
        assert cell.status["state"] == DONE

    def test_a_model_whose_weights_are_cut_short(self, tmp_path: Path) -> None:
        from softcontam.inputs import TINYWORLD_BASE

        folder = tmp_path / "model"
        shutil.copytree(TINYWORLD_BASE, folder)
        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes()[:1000])
        cell = frozen(tmp_path / "runs", "condition=exact", f"model.path={folder}")
        with pytest.raises(ConfigError, match=r"model tinyworld: .*model cannot be loaded"):
            run_cell(cell)

    def test_a_bank_that_is_no_parquet(self, tmp_path: Path) -> None:
        (tmp_path / "bank.parquet").write_bytes(b"PAR1 but not really")

        def change(config: Config) -> None:
            config.paths.data = str(tmp_path)
            config.benchmark.banks["topical"] = BankConfig("parquet", "bank.parquet")

        cell = frozen(tmp_path / "runs", "condition=topical", change=change)
        with pytest.raises(DataError, match=r"bank\.parquet"):
            run_cell(cell)
        assert "bank.parquet" in cell.status["error"]
        assert "read_bank" in cell.status["traceback"]

    def test_a_disk_that_fills_up_says_so_and_the_cell_goes_on_when_there_is_space(
        self, tiny_arms: dict[str, Cell], tmp_path: Path
    ) -> None:
        cell = frozen(tmp_path, "condition=exact")
        with files_limited_to(30_000), pytest.raises(Exception, match=r"no space left|too large"):
            run_cell(cell)
        assert cell.status["state"] == FAILED
        assert not [name for name in tree(cell.folder) if name.startswith((".adapter", ".outcomes"))]
        run_cell(cell)
        same(cell, tiny_arms["exact"])

    def test_a_disk_that_fills_up_is_told_in_a_sentence(self, tmp_path: Path) -> None:
        cell = frozen(tmp_path, "condition=exact")
        with files_limited_to(30_000), pytest.raises(Exception, match="no space left while writing"):
            run_cell(cell)
