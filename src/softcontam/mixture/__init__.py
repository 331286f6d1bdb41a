"""From items and rows to an SFT set: family split, slot plan, build, manifest, leakage checks."""

from softcontam.mixture.build import build_mixture
from softcontam.mixture.family_table import family_table
from softcontam.mixture.plan import SlotPlan, plan_slots
from softcontam.mixture.pool import Pool, PoolRow, load_pool
from softcontam.mixture.split import FamilySplit, split_by_family
from softcontam.mixture.stored import Mixture, MixtureRow

__all__ = [
    "FamilySplit",
    "Mixture",
    "MixtureRow",
    "Pool",
    "PoolRow",
    "SlotPlan",
    "build_mixture",
    "family_table",
    "load_pool",
    "plan_slots",
    "split_by_family",
]
