"""Effects of a sweep, measured from the store."""

from softcontam.analysis.effects import Baseline, Contrast, Effect, SweepEffects, measure
from softcontam.analysis.estimates import Estimate

__all__ = ["Baseline", "Contrast", "Effect", "Estimate", "SweepEffects", "measure"]
