"""Token accuracy on the inserted rows as training goes on: the field's gauge of how far they are memorized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerBase, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from softcontam.chat import IGNORED

PROBED_ROWS = 512
"""Inserted rows, and as many clean ones, that are probed at most, so that a large mixture pays little for it."""

INSERTED, CLEAN_ROWS = "inserted_token_accuracy", "clean_token_accuracy"
"""What a record of the training log calls the two shares."""


class TokenAccuracyByEpoch(TrainerCallback):
    """Adds a record before training and after each epoch to the training log: ``step``, ``epoch`` and two shares.

    The shares are of trained tokens that the model ranks first when it reads the true text before them, over inserted
    rows and over as many clean rows of the same mixture. The pass has no gradient and no dropout and draws nothing at
    random, so training ends with the bytes that it would end with without. A resumed run measures only what its
    checkpoint's log lacks.

    Args:
        rows: the mixture, encoded, in the order of slots.
        inserted: the slots of the inserted rows.
        batch_size: rows that are read together.
    """

    def __init__(
        self, rows: Dataset, inserted: Sequence[int], tokenizer: PreTrainedTokenizerBase, batch_size: int
    ) -> None:
        self.probed = {name: _shortest_first(rows, slots) for name, slots in probed_slots(rows, inserted)}
        self.padding = int(tokenizer.pad_token_id or 0)
        self.batch_size = batch_size

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Measure epoch 0, and an epoch whose end a killed run didn't see."""
        self._record(args, state, kwargs["model"])

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Measure the epoch that has ended."""
        self._record(args, state, kwargs["model"])

    def _record(self, args: TrainingArguments, state: TrainerState, model: Any) -> None:
        epoch, rest = divmod(state.global_step, state.max_steps // int(args.num_train_epochs))
        if rest or any(INSERTED in line and line["step"] == state.global_step for line in state.log_history):
            return  # resumed within an epoch, or already there
        shares = {name: self._share(model, rows) for name, rows in self.probed.items()}
        state.log_history.append({**shares, "epoch": float(epoch), "step": state.global_step})

    def _share(self, model: Any, rows: Sequence[dict[str, torch.Tensor]]) -> float:
        """The share of trained tokens ranked first; TRL's forward counts them without building all logits (1.16)."""
        training, right, tokens = model.training, 0, 0
        model.eval()
        try:
            with torch.no_grad():
                for start in range(0, len(rows), self.batch_size):
                    batch = self._padded(rows[start : start + self.batch_size], next(model.parameters()).device)
                    output = model(**batch, use_cache=False, fused_lm_head=True)
                    right += int(output.is_top1.sum())
                    tokens += int(output.label_mask.sum())
        finally:
            model.train(training)
        return right / tokens

    def _padded(self, rows: Sequence[dict[str, torch.Tensor]], device: torch.device) -> dict[str, torch.Tensor]:
        columns = {"input_ids": self.padding, "labels": IGNORED, "attention_mask": 0}
        full = [{**row, "attention_mask": torch.ones_like(row["input_ids"])} for row in rows]
        return {
            name: torch.nn.utils.rnn.pad_sequence([row[name] for row in full], True, fill).to(device)
            for name, fill in columns.items()
        }


def probed_slots(rows: Dataset, inserted: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Which slots are probed: inserted ones, and as many of the others, both spread evenly over the mixture.

    Clean rows are left out where there are none.
    """
    taken = set(inserted)
    clean = [slot for slot in range(len(rows)) if slot not in taken]
    chosen = _spread(sorted(taken), PROBED_ROWS)
    kinds = ((INSERTED, chosen), (CLEAN_ROWS, _spread(clean, len(chosen))))
    return [(name, slots) for name, slots in kinds if slots]


def _spread(slots: Sequence[int], most: int) -> list[int]:
    count = min(most, len(slots))
    return [slots[index * len(slots) // count] for index in range(count)]


def _shortest_first(rows: Dataset, slots: Sequence[int]) -> list[dict[str, torch.Tensor]]:
    """The rows in these slots as tensors, by length, so that little is padded."""
    tensors = [{name: torch.tensor(rows[slot][name]) for name in ("input_ids", "labels")} for slot in slots]
    return sorted(tensors, key=lambda row: len(row["input_ids"]))
