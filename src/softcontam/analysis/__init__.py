"""Effects of a sweep, measured from the store."""

from softcontam.analysis.effects import Baseline, Contrast, Effect, SweepEffects, measure
from softcontam.analysis.estimates import Estimate
from softcontam.analysis.pass_at_k import pass_at_k

__all__ = ["Baseline", "Contrast", "Effect", "Estimate", "SweepEffects", "measure", "pass_at_k"]
