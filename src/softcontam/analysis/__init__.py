"""Effects of a sweep, measured from the store."""

from softcontam.analysis.effects import SweepEffects, measure
from softcontam.analysis.estimates import Estimate
from softcontam.analysis.pass_at_k import pass_at_k
from softcontam.analysis.records import Baseline, Contrast, Effect

__all__ = ["Baseline", "Contrast", "Effect", "Estimate", "SweepEffects", "measure", "pass_at_k"]
