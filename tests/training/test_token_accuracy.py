"""Token accuracy on inserted rows: what is measured, when, and that training doesn't notice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from peft import PeftModel
from small_models import dataset, load_small, logits, rows, small_recipe
from trl import SFTTrainer

from softcontam.chat import IGNORED, EncodedRow
from softcontam.config import TrainConfig
from softcontam.models import BaseModel
from softcontam.training import adapted, token_accuracy, train
from softcontam.training.token_accuracy import CLEAN_ROWS, INSERTED, PROBED_ROWS, probed_slots

SLOTS = (1, 4, 5, 11, 17)


def _ranked_first(model: Any, data: list[EncodedRow]) -> float:
    """The share of trained tokens that the model ranks first, row by row and without padding."""
    right = tokens = 0
    for row in data:
        labels = torch.tensor(row.labels[1:])
        best = logits(model, row.input_ids)[:-1].argmax(-1)
        right += int((best == labels)[labels != IGNORED].sum())
        tokens += int((labels != IGNORED).sum())
    return right / tokens


def _weights(model: PeftModel) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters() if "lora_" in name}


def _same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> bool:
    return ours.keys() == theirs.keys() and all(torch.equal(weight, theirs[name]) for name, weight in ours.items())


def _trained(
    base: BaseModel,
    recipe: TrainConfig,
    folder: Path,
    inserted: tuple[int, ...] = SLOTS,
    tell: Callable[[dict[str, Any]], None] | None = None,
) -> tuple[dict[str, torch.Tensor], list[dict[str, Any]], torch.Tensor]:
    """Weights, log, and the next random numbers, of 20 rows trained on."""
    with adapted(base, recipe, 1) as model:
        result = train(base, model, dataset(rows(base, 20)), recipe, 1, folder, inserted=inserted, tell=tell)
        return _weights(model), result.log, torch.rand(4)


@pytest.mark.parametrize("name", ["tinyworld", "qwen3"])
def test_the_shares_are_those_of_the_model_before_and_after_training(name: str, tmp_path: Path) -> None:
    base = load_small(name, tmp_path)
    data = rows(base, 20)
    groups = {key: [data[slot] for slot in slots] for key, slots in probed_slots(dataset(data), SLOTS)}
    recipe = small_recipe(epochs=3, micro_batch_size=4)
    before = {key: _ranked_first(base.model, group) for key, group in groups.items()}
    with adapted(base, recipe, 1) as model:
        log = train(base, model, dataset(data), recipe, 1, tmp_path / "checkpoints", inserted=SLOTS).log
        after = {key: _ranked_first(model, group) for key, group in groups.items()}
    records = [line for line in log if INSERTED in line]
    assert [(line["epoch"], line["step"]) for line in records] == [(0, 0), (1, 3), (2, 6), (3, 9)]
    assert {key: records[0][key] for key in groups} == pytest.approx(before)
    assert {key: records[-1][key] for key in groups} == pytest.approx(after)
    assert after[INSERTED] > before[INSERTED]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("tinyworld", {}),
        ("tinyworld", {"kl_penalty": 0.1, "gradient_checkpointing": True, "micro_batch_size": 4}),
        ("qwen3", {}),
    ],
)
def test_training_ends_with_the_bytes_and_the_log_that_it_ends_with_unobserved(
    name: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    recipe = small_recipe(**changes)  # with dropout: a number drawn at the wrong time would show
    watched, log, drawn = _trained(load_small(name, tmp_path), recipe, tmp_path / "watched")
    alone, log_alone, drawn_alone = _trained(load_small(name, tmp_path), recipe, tmp_path / "alone", ())
    assert _same(watched, alone)
    assert torch.equal(drawn, drawn_alone)
    timed = ("train_runtime", "train_samples_per_second", "train_steps_per_second")
    plain, plain_alone = (
        [{key: value for key, value in line.items() if key not in timed} for line in lines if INSERTED not in line]
        for lines in (log, log_alone)
    )
    assert plain == plain_alone
    assert "train_runtime" in log[-1], "the summary stays last: a retried cell reads it there"
    assert [line["step"] for line in log] == sorted(line["step"] for line in log)


class _Killed(Exception):
    pass


@pytest.mark.parametrize("steps", [1, 3, 4, 7], ids=["first epoch", "end of an epoch", "second epoch", "third epoch"])
def test_a_resumed_run_has_the_weights_and_records_of_an_unbroken_one(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = small_recipe(epochs=3, checkpoint_every_s=0.0)  # three steps an epoch, a checkpoint after each
    expected, log, _ = _trained(load_small("tinyworld", tmp_path), recipe, tmp_path / "unbroken")
    original, taken = SFTTrainer.training_step, 0

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken > steps:
            raise _Killed
        return original(self, *args, **kwargs)

    first: list[dict[str, Any]] = []
    with monkeypatch.context() as patched:
        patched.setattr(SFTTrainer, "training_step", step)
        with pytest.raises(_Killed):
            _trained(load_small("tinyworld", tmp_path), recipe, tmp_path / "resumed", tell=first.append)
    assert [line["step"] for line in first if "loss" in line] == list(range(1, steps + 1)), "told while training"
    # As if the process had ended between the last step of an epoch and its measurement.
    assert (tmp_path / "resumed" / f"checkpoint-{steps}").is_dir()
    torch.manual_seed(99)
    told: list[dict[str, Any]] = []
    resumed, resumed_log, _ = _trained(
        load_small("tinyworld", tmp_path), recipe, tmp_path / "resumed", tell=told.append
    )
    assert told == resumed_log, "every record once, those of the checkpoint first"
    assert _same(resumed, expected)
    assert [line for line in resumed_log if INSERTED in line] == [line for line in log if INSERTED in line]
    assert [(line["step"], line.get("num_tokens")) for line in resumed_log] == [
        (line["step"], line.get("num_tokens")) for line in log
    ]


def test_a_mixture_of_inserted_rows_only_has_no_clean_rows_to_compare_with(tmp_path: Path) -> None:
    base = load_small("tinyworld", tmp_path)
    _, log, _ = _trained(base, small_recipe(epochs=1), tmp_path / "checkpoints", tuple(range(20)))
    records = [line for line in log if INSERTED in line]
    assert len(records) == 2
    assert not any(CLEAN_ROWS in line for line in records)


def test_a_clean_arm_is_not_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        token_accuracy.TokenAccuracyByEpoch, "_share", lambda *_: pytest.fail("a pass over rows that nobody inserted")
    )
    _, log, _ = _trained(load_small("tinyworld", tmp_path), small_recipe(epochs=1), tmp_path / "checkpoints", ())
    assert not any(INSERTED in line for line in log)


def test_probed_rows_are_capped_and_spread_over_the_whole_mixture() -> None:
    mixture = Dataset.from_dict({"input_ids": [[1]] * 5000})
    inserted = list(range(0, 5000, 3))
    chosen = dict(probed_slots(mixture, inserted))
    for slots in chosen.values():
        assert len(slots) == len(set(slots)) == PROBED_ROWS
        assert max(slots) > 4900
        assert min(slots) < 10
    assert set(chosen[INSERTED]) <= set(inserted)
    assert not set(chosen[CLEAN_ROWS]) & set(inserted)
