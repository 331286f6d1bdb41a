"""Hydra's grid sweeper without its rehearsal: every job of a sweep is composed once, not twice."""

from __future__ import annotations

from collections.abc import Sequence

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore


class ComposeOnceSweeper(BasicSweeper):
    """Hydra composes all jobs to see whether they are legal, then again to run them (about 0.1 s each time).

    softcontam's jobs only check and freeze their cell, so the second composition finds the same errors as the first.
    """

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        """Leave it to the jobs."""


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="compose_once",
    node={"_target_": f"{__name__}.{ComposeOnceSweeper.__name__}", "max_batch_size": None, "params": None},
    provider="softcontam",
)
