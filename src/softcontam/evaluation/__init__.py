"""Evaluation through lm-eval: outcomes, one row per item and sample."""

from softcontam.evaluation.asked import asked_items
from softcontam.evaluation.outcomes import evaluate

__all__ = ["asked_items", "evaluate"]
