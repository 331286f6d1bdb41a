"""Evaluation through lm-eval: outcomes, one row per item and sample."""

from softcontam.evaluation.outcomes import evaluate

__all__ = ["evaluate"]
