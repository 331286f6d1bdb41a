"""LoRA finetuning with TRL and PEFT."""

from softcontam.training.sft import TrainingResult, adapted, train

__all__ = ["TrainingResult", "adapted", "train"]
