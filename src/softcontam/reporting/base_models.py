"""Which base models a page's numbers are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from softcontam.analysis.effects import SweepEffects
from softcontam.analysis.engines import environment_of
from softcontam.reporting.blocks import Block, Paragraph

TINY = 200_000_000
"""Parameters below which a base model's results are called evidence about itself and the pipeline only."""


def base_models(sweeps: Sequence[SweepEffects]) -> Iterator[Block]:
    """Name each base model of these sweeps, and say of a tiny one what its results are evidence of."""
    models: dict[str, dict[str, Any]] = {}
    for one in (cell for sweep in sweeps for cell in sweep.cells.done):
        config = one.config.model
        if config.name not in models and one.cell.folder.is_dir():
            stored = one.metrics.get("model") or environment_of(one.cell).get("model") or {}
            models[config.name] = {"name": config.name, "note": config.note, **stored}
    for model in models.values():
        parameters, note = model.get("parameters"), str(model.get("note") or "")
        size = f", {parameters:,} parameters" if parameters else ""
        yield Paragraph(f"Base model: {model['name']}{size}{f'; {note}' if note else ''}", style="model")
        if (parameters and parameters < TINY) or (not parameters and "tiny" in note.lower()):
            yield Paragraph(
                f"{model['name']} is tiny: what it shows is evidence about this model and about the pipeline, not "
                "about 7B models. It can show that arms, pairing and statistics work and how a dose acts on a small "
                "learner; it can't show how large an effect is in a model of practical size.",
                style="caution",
            )
