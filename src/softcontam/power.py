"""``python -m softcontam.power``: what a planned sweep can and cannot detect, from its config or from stated figures.

``exp=NAME`` composes the experiment's cells as a launch would, without launching or writing any; other settings of the
command line are Hydra's, apart from those of :class:`PowerSettings`. Without ``exp`` the design is stated in full.
"""

from __future__ import annotations

import io
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from omegaconf import OmegaConf
from rich.console import Console
from rich.table import Table

from softcontam.analysis.effects import MARGIN
from softcontam.analysis.planned import TARGET, Assumed, Planned, PlannedCell, planned, planned_cell
from softcontam.config import ConditionConfig, Config
from softcontam.errors import ConfigError, SoftcontamError
from softcontam.reporting.blocks import Figure
from softcontam.reporting.document import to_markdown
from softcontam.reporting.power import plausible_range, power_blocks, power_figure, power_frame, terminal_power
from softcontam.settings import HELP, settings_of
from softcontam.store import Store, write_bytes, write_text

USAGE = (
    "Usage: python -m softcontam.power exp=NAME [any setting of the run] or families=N [items=N] [family_size=1] "
    "[seeds=3], and with both [base_accuracy=0.5] [discordance=0.3] [run_logit_sd=0.15] [family_correlation=0.5] "
    "[target=0.05] [margin=0.05] [out=DIR]"
)


@dataclass
class PowerSettings:
    """Settings of the command line; those that are None are measured, taken from the experiment or assumed.

    Accuracies, ``discordance``, ``target`` and ``margin`` are fractions. With ``exp`` the numbers of items and families
    are the experiment's, ``seeds`` overrides how many seeds it has, and ``margin`` is by default the one it declares.
    """

    exp: str | None = None
    families: int | None = None
    items: int | None = None
    family_size: float | None = None
    seeds: int | None = None
    base_accuracy: float | None = None
    discordance: float | None = None
    run_logit_sd: float | None = None
    family_correlation: float | None = None
    target: float = TARGET
    margin: float | None = None
    out: str | None = None

    @property
    def assumed(self) -> Assumed:
        """What is given on the command line, over the defaults."""
        names = ("seeds", "base_accuracy", "discordance", "run_logit_sd", "family_correlation")
        return Assumed(given={name: value for name in names if (value := getattr(self, name)) is not None})


def planned_power(cells: Sequence[PlannedCell], configs: Sequence[Config], store: Store) -> Table | None:
    """What a launch prints before it starts: the detectable effects of the sweep's contrasts.

    Args:
        cells: the cells that were laid out (:func:`softcontam.analysis.planned.planned_cell`).
        configs: all cells of the sweep, done ones as well.
        store: where clean runs are looked for.

    Returns:
        None where there is nothing to plan: no cell was laid out, or none is contrasted with the clean arm.
    """
    found = planned(cells, configs, store)
    return terminal_power(found, configs[0].experiment) if found else None


def read_settings(arguments: Sequence[str]) -> tuple[PowerSettings, list[str]]:
    """Settings of :class:`PowerSettings` from ``key=value`` arguments, and with ``exp`` the others, for Hydra.

    Raises:
        ConfigError: an unknown key, a value of the wrong type or out of range, or neither ``exp`` nor a design.
    """
    known = {field.name for field in fields(PowerSettings)}
    own = [text for text in arguments if text.partition("=")[0] in known and "=" in text]
    others = [text for text in arguments if text not in own]
    settings = settings_of(PowerSettings, own, USAGE)
    if settings.exp is None and others:
        stray = "is no setting of softcontam.power without exp=NAME" if "=" in others[0] else "is not of the form"
        raise ConfigError(f"{others[0]!r} {stray}{'' if '=' in others[0] else ' key=value'}. {USAGE}")
    _check(settings)
    return settings, others


def _check(settings: PowerSettings) -> None:
    """Refuse values that no design has."""
    for name, least in (("families", 1), ("items", 1), ("family_size", 1), ("seeds", 1), ("run_logit_sd", 0)):
        value = getattr(settings, name)
        if value is not None and value < least:
            raise ConfigError(f"{name}={value} must be at least {least}.")
    for name in ("base_accuracy", "discordance", "target", "margin"):
        value = getattr(settings, name)
        if value is not None and not 0 < value < 1:
            raise ConfigError(f"{name}={value} must lie between 0 and 1: it is a fraction, 0.05 for 5 points.")
    correlation = settings.family_correlation
    if correlation is not None and not 0 <= correlation <= 1:
        raise ConfigError(f"family_correlation={correlation} must be from 0 to 1.")
    base, discordance = settings.base_accuracy, settings.discordance
    if base is not None and discordance is not None and discordance > 2 * min(base, 1 - base):
        raise ConfigError(
            f"discordance={discordance} cannot be with base_accuracy={base}: two runs of that accuracy differ on at "
            f"most {2 * min(base, 1 - base):g} of the items."
        )
    sizes = [name for name in ("families", "items", "family_size") if getattr(settings, name) is not None]
    if settings.exp is not None and sizes:
        raise ConfigError(
            f"{sizes[0]} comes from the experiment. Change it there (benchmark.max_items, benchmark.seen_share), or "
            "leave out exp=."
        )
    if settings.exp is None and not {"families", "items"} & set(sizes):
        raise ConfigError(f"neither an experiment nor a number of families. {USAGE}")
    if len(sizes) == 3:
        raise ConfigError("families, items and family_size are one too many: any two give the third.")
    if settings.families is not None and settings.items is not None and settings.items < settings.families:
        raise ConfigError(f"items={settings.items} is less than families={settings.families}.")


def stated(settings: PowerSettings) -> Planned:
    """The contrast that the settings describe, without an experiment."""
    size = settings.family_size or 1.0
    families = settings.families or max(1, round((settings.items or 1) / size))
    if settings.items is not None:
        size = settings.items / families
    seeds = 3 if settings.seeds is None else settings.seeds
    design = settings.assumed.design(families, size, seeds)
    given = set(settings.assumed.given) - {"seeds"}
    source = "assumed, in part given" if given else "assumed"
    if {"base_accuracy", "discordance", "run_logit_sd"} <= given:
        source = "given"
    margin = MARGIN if settings.margin is None else settings.margin
    assumed = settings.base_accuracy is None
    return Planned("stated", "", design, source=source, target=settings.target, margin=margin, base_assumed=assumed)


def planned_experiment(settings: PowerSettings, overrides: Sequence[str]) -> tuple[str, list[Planned]]:
    """The name of an experiment and the contrasts that it plans.

    Args:
        overrides: settings of the run, for Hydra; those of the experiment are added.

    Raises:
        SystemExit: Hydra found the command line wanting, or only had to show something.
        ConfigError: cells that cannot be composed or laid out, or no contrast with a clean arm.
    """
    configs = _composed([f"exp={settings.exp}", *overrides])
    cells = _laid_out(configs)
    store = Store(configs[0].paths.runs)
    found = planned(cells, configs, store, settings.assumed, settings.target, settings.margin)
    if not found:
        raise ConfigError(
            f"exp={settings.exp} plans no contrast of accuracies: it has no arm beside the clean one, or "
            "eval.samples=0. Add a condition, or sample outputs."
        )
    return configs[0].experiment, found


def _composed(overrides: Sequence[str]) -> list[Config]:
    """Let Hydra compose each cell of a command line, as :func:`softcontam.run.compose` does, and write nothing."""
    # slow to import, and not needed for a design that is stated
    import hydra
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import DictConfig

    from softcontam.config import conf_dir, resolve

    configs: list[Config] = []
    problems: list[str] = []

    @hydra.main(config_path=str(conf_dir()), config_name="config", version_base="1.3")
    def take(composed: DictConfig) -> None:
        try:
            OmegaConf.resolve(composed)
            configs.append(resolve(composed))
        except SoftcontamError as error:
            problems.append(str(error))

    with tempfile.TemporaryDirectory() as aside, _command_line([*overrides, f"hydra.sweep.dir={aside}"]):
        GlobalHydra.instance().clear()
        said = io.StringIO()
        try:
            with redirect_stderr(said):
                take()
        except SystemExit as end:
            if end.code:
                raise ConfigError(_hydras_words(said.getvalue())) from None
            raise
        finally:
            GlobalHydra.instance().clear()
    if problems:
        raise ConfigError("\n".join(dict.fromkeys(problems)))
    if not configs:
        raise SystemExit(0)
    return configs


def _hydras_words(text: str) -> str:
    """What Hydra says of a command line that it cannot compose, on one line and without its traceback advice."""
    told, _, _ = text.partition("Config search path:")
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("Set the environment variable", "Traceback"))]
    return f"{' '.join(kept)[:600]} (experiments are planned from conf/exp, not from finished sweeps in paths.runs)"


@contextmanager
def _command_line(overrides: Sequence[str]) -> Iterator[None]:
    """Hydra reads its overrides from the process's own arguments only."""
    before = sys.argv
    sys.argv = [before[0], *overrides]
    try:
        yield
    finally:
        sys.argv = before


def _laid_out(configs: Sequence[Config]) -> list[PlannedCell]:
    """One cell for each setup, seed and dose.

    Which items a dose covers does not depend on the kind of row, so exact duplicates stand in for all kinds: they need
    no bank.
    """
    from softcontam.arms import lay_out

    found: dict[str, PlannedCell] = {}
    for config in configs:
        if config.condition.kind == "clean":
            continue
        plain = replace(config, condition=ConditionConfig("exact", ladder=config.condition.ladder))
        key = json.dumps([asdict(part) for part in (plain.benchmark, plain.condition, plain.mixture, plain.seeds)])
        key += json.dumps([asdict(part) for part in (plain.model, plain.train, plain.eval)])
        if key not in found:
            found[key] = planned_cell(plain, lay_out(plain))
    return list(found.values())


def write_files(found: Sequence[Planned], title: str, out: Path, command: str) -> None:
    """Write ``power.csv`` and ``power.md`` into ``out``; also ``power.svg`` and ``power.png`` if there is noise."""
    write_text(out / "power.csv", power_frame(found).to_csv(index=False))
    figure = None
    if any(one.measurable for one in found):
        caption = "Smallest detectable effect against the number of seeds; the ring is this design."
        figure = Figure(power_figure(found, "power"), "power", caption)
        write_text(out / "power.svg", figure.drawing.svg)
        write_bytes(out / "power.png", figure.drawing.png())
    write_text(out / "power.md", to_markdown(power_blocks(found, title, figure, command)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what a design can detect and write its files where asked for; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if set(given) & set(HELP):
        Console(soft_wrap=True).print(f"{__doc__}\n{USAGE}", markup=False, highlight=False)
        return 0
    try:
        settings, overrides = read_settings(given)
        if settings.exp is None:
            title, found = "stated design", [stated(settings)]
        else:
            title, found = planned_experiment(settings, overrides)
        console = Console(width=None if sys.stdout.isatty() else 140)
        console.print(terminal_power(found, title))
        if settings.exp is None and settings.discordance is None:
            console.print(plausible_range(found[0]), highlight=False, soft_wrap=True)
        if settings.out is not None:
            out = Path(settings.out).expanduser()
            write_files(found, title, out, shlex.join(["python", "-m", "softcontam.power", *given]))
            console.print(f"power: {out / 'power.md'}", markup=False, highlight=False, soft_wrap=True)
    except SoftcontamError as error:
        Console(stderr=True, soft_wrap=True).print(f"{type(error).__name__}: {error}", markup=False, highlight=False)
        return 2
    except OSError as error:
        told = f"the plan cannot be written ({error}). Choose another folder with out=DIR."
        Console(stderr=True, soft_wrap=True).print(told, markup=False, highlight=False)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
