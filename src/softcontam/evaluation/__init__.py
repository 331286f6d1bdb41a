"""Evaluation through lm-eval: outcomes, one row per item and sample."""

from softcontam.evaluation.outcomes import ItemSet, evaluate

__all__ = ["ItemSet", "evaluate"]
