"""Supervised finetuning of one cell: TRL's SFTTrainer over rows that are already encoded and checked."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import (
    PreTrainedModel,
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
    set_seed,
)
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import get_last_checkpoint
from trl import SFTConfig, SFTTrainer

from softcontam.chat import IGNORED
from softcontam.config import TrainConfig
from softcontam.models import BaseModel
from softcontam.training.token_accuracy import TokenAccuracyByEpoch

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingResult:
    """The log (one record per logged step) and what training took."""

    log: list[dict[str, Any]]
    steps: int
    seconds: float


class _CheckpointByTime(TrainerCallback):
    """Saves when the last checkpoint is older than ``every`` seconds, so that a short cell never pays for one."""

    def __init__(self, every: float) -> None:
        self.every = every
        self.last = time.monotonic()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> TrainerControl:
        logged = state.global_step % state.logging_steps == 0  # else the figures of a resumed run's log would differ
        if logged and time.monotonic() - self.last >= self.every and state.global_step < state.max_steps:
            self.last = time.monotonic()
            control.should_save = True
        return control


class _Told(TrainerCallback):
    """Hands on each record of the training log when it is there; a resumed run's earlier ones first."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self.tell = tell
        self.told = 0

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._tell_new(state)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        self._tell_new(state)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._tell_new(state)

    def _tell_new(self, state: TrainerState) -> None:
        for record in state.log_history[self.told :]:
            self.tell(record)
        self.told = len(state.log_history)


class _KLTrainer(SFTTrainer):  # type: ignore[misc]
    """Adds ``kl_penalty`` times KL(adapted || base), per trained token, to the loss (paper.md, MBPP recipe)."""

    kl_penalty = 0.0

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        result = super().compute_loss(model, dict(inputs), return_outputs, num_items_in_batch)
        if not (self.kl_penalty and model.training):
            return result
        trained = inputs["labels"][:, 1:] != IGNORED
        batch = {key: inputs[key] for key in ("input_ids", "attention_mask")}
        adapted_logprobs = model(**batch).logits[:, :-1][trained].float().log_softmax(-1)
        with torch.no_grad(), self.accelerator.unwrap_model(model).disable_adapter():
            base_logprobs = model(**batch).logits[:, :-1][trained].float().log_softmax(-1)
        divergence = (adapted_logprobs.exp() * (adapted_logprobs - base_logprobs)).sum()
        penalty = self.kl_penalty * divergence / (trained.sum() if num_items_in_batch is None else num_items_in_batch)
        return (result[0] + penalty, result[1]) if return_outputs else result + penalty


@contextlib.contextmanager
def adapted(base: BaseModel, config: TrainConfig, seed: int) -> Iterator[PeftModel]:
    """The base with a freshly initialized LoRA adapter; afterwards the base is as it was before.

    TRL replaces the ``forward`` of the model that it trains (1.16), and PEFT its linear layers; both are undone,
    since one base serves many cells of a worker.
    """
    set_seed(seed)
    use_cache = base.model.config.use_cache
    embedding_hooks = base.model.get_input_embeddings()._forward_hooks.copy()
    lora = LoraConfig(
        r=config.lora.r,
        lora_alpha=config.lora.alpha,
        lora_dropout=config.lora.dropout,
        target_modules=list(config.lora.target_modules),
        task_type="CAUSAL_LM",
    )
    model: PeftModel = get_peft_model(base.model, lora)
    try:
        yield model
    finally:
        restored: PreTrainedModel = model.unload()
        for attribute in ("forward", "peft_config", "_require_grads_hook", "_require_grads_hooks"):
            vars(restored).pop(attribute, None)
        # TRL and the Trainer each hook the embedding for activation checkpointing; only the later one is tracked.
        restored.get_input_embeddings()._forward_hooks = embedding_hooks
        restored.config.use_cache = use_cache
        for module in restored.modules():
            if vars(module).pop("_gradient_checkpointing_func", None) is not None:
                vars(module)["gradient_checkpointing"] = False
        for parameter in restored.parameters():
            parameter.requires_grad_(False)
        restored.train(False)


def _last_checkpoint(folder: Path) -> str | None:
    """The last checkpoint that can be read whole; those that a kill cut off are removed."""
    if not folder.is_dir():
        return None
    while found := get_last_checkpoint(str(folder)):  # type: ignore[no-untyped-call]
        if _is_whole(Path(found)):
            return str(found)
        shutil.rmtree(found)
    return None


def _is_whole(checkpoint: Path) -> bool:
    try:
        TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        load_file(checkpoint / "adapter_model.safetensors")
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
            torch.load(checkpoint / name, weights_only=False)
    except (OSError, ValueError, TypeError, EOFError, RuntimeError, UnpicklingError, SafetensorError) as error:
        log.warning("checkpoint %s is damaged (%s), going back to the one before", checkpoint, error)
        return False
    return True


def train(
    base: BaseModel,
    model: PeftModel,
    rows: Dataset,
    config: TrainConfig,
    seed: int,
    folder: Path,
    in_order: bool = False,
    inserted: Sequence[int] = (),
    tell: Callable[[dict[str, Any]], None] | None = None,
) -> TrainingResult:
    """Train ``model`` on ``rows``, resuming from the last checkpoint in ``folder`` where there is one.

    Rows come encoded (``input_ids`` and ``labels``), with labels on the completion and its end-of-turn token only;
    nothing is truncated, packed or dropped here. The order of rows depends on ``seed`` and their number alone, or is
    the one given, in every epoch, where ``in_order`` says so. On a CPU the result of a run that was
    interrupted and resumed is that of an unbroken one, to the byte. Where ``inserted`` names the places of inserted
    rows, the log tells the token accuracy on them before training and after each epoch. ``tell`` is given every record
    of the log as soon as it is there, in their order; after a resumption, those of the checkpoint first.
    """
    on_gpu = next(model.parameters()).is_cuda
    arguments = SFTConfig(
        output_dir=str(folder),
        per_device_train_batch_size=config.micro_batch_size,
        gradient_accumulation_steps=config.batch_size // config.micro_batch_size,
        num_train_epochs=config.epochs,
        learning_rate=config.lr,
        lr_scheduler_type=config.schedule,
        warmup_steps=config.warmup_ratio,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        max_length=config.max_length,
        seed=seed,
        data_seed=seed,
        packing=False,
        activation_checkpointing=config.gradient_checkpointing,
        bf16=on_gpu and base.model.dtype == torch.bfloat16,
        use_cpu=not on_gpu,
        optim="adamw_torch",
        logging_steps=max(1, len(rows) * config.epochs // config.batch_size // 20),
        train_sampling_strategy="sequential" if in_order else "random",
        save_strategy="no",
        save_total_limit=1,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=on_gpu,
        completion_only_loss=True,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    model.train()
    callbacks: list[TrainerCallback] = [_CheckpointByTime(config.checkpoint_every_s)]
    if len(inserted):
        callbacks.append(TokenAccuracyByEpoch(rows, inserted, base.tokenizer, config.micro_batch_size))
    if tell is not None:
        callbacks.append(_Told(tell))  # after the one that adds records
    trainer = _KLTrainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        processing_class=base.tokenizer,
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.kl_penalty = config.kl_penalty
    begun = time.monotonic()
    checkpoint = _last_checkpoint(folder)
    if checkpoint is not None:
        state = TrainerState.load_from_json(str(Path(checkpoint) / TRAINER_STATE_NAME))
        # TRL counts from 0 again; a checkpoint is only made at a logged step, so the last line is up to date.
        counted = [line["num_tokens"] for line in state.log_history if "num_tokens" in line]
        trainer._total_train_tokens = int(counted[-1])
    trainer.train(resume_from_checkpoint=checkpoint)
    seconds = time.monotonic() - begun
    model.eval()
    return TrainingResult(list(trainer.state.log_history), trainer.state.global_step, seconds)
