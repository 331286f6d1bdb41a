"""``python -m softcontam.prefetch exp=NAME out=DIR``: the hub data sets of a run as pinned local parquet.

For machines without network. Each data set's revision is resolved to a commit, every split is written to
``<out>/<path>/<split>-00000-of-00001.parquet``, and ``<out>/manifest.json`` says what each file is
(:mod:`softcontam.manifest`). ``python -m softcontam.prefetch verify out=DIR`` checks the files against it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from filelock import FileLock, Timeout
from rich.console import Console

from softcontam.benchmarks.records import Record
from softcontam.benchmarks.zebralogic import solved
from softcontam.errors import ConfigError, DataError, SoftcontamError
from softcontam.hub import Hub, Pin, ask
from softcontam.manifest import CHANGED, NAME, OK, ROWS, Entry, Manifest, changed, read_manifest
from softcontam.needs import DataSet, Model, Needs, needs
from softcontam.store import file_sha256, now, write_atomically

USAGE = (
    "Usage: python -m softcontam.prefetch [exp=NAME] [benchmark=NAME] [eval=NAME] ... out=DIR [models=true] "
    "[force=true], or python -m softcontam.prefetch verify out=DIR"
)

_STAGED, _PARTIAL = ".prefetch-", ".partial"


@dataclass
class Settings:
    """The command line: ``overrides`` are Hydra's, as for ``softcontam.run``."""

    out: Path
    overrides: list[str]
    verify: bool = False
    force: bool = False
    models: bool = False


def fetch(wanted: DataSet | Model, out: Path, hub: Hub, *, force: bool = False) -> tuple[dict[str, Entry], bool]:
    """Put a data set's splits, or a model's files, and their entries below ``out``.

    What the manifest lists and is there as listed is not fetched again, unless ``force``. Where files are missing, the
    listed commit is fetched again, not the newest. The manifest is written before the files are put in place, so that
    a kill in between leaves files that are missed, not files that nobody vouches for.

    Returns:
        The entries of the set, and whether it was fetched now.

    Raises:
        DataError: a file is not as fetched, or not ours; the set cannot be loaded.
        StoreError: the disk is full.
    """
    manifest = _manifest(out)
    before = _listed(wanted, manifest)
    commit = None
    if before and not force:
        commit, there = _held(wanted, manifest, before)
        if there:
            return before, False
    if isinstance(wanted, DataSet):
        return _fetch_data_set(wanted, manifest, hub, commit), True
    return _fetch_model(wanted, manifest, hub, commit), True


def _fetch_data_set(wanted: DataSet, manifest: Manifest, hub: Hub, commit: str | None) -> dict[str, Entry]:
    before = _listed(wanted, manifest)
    pin = ask(str(wanted), partial(hub.data_set, wanted.hub, commit or wanted.revision))
    with tempfile.TemporaryDirectory(prefix=_STAGED, dir=manifest.folder, ignore_cleanup_errors=True) as folder:
        staging = Path(folder)
        files, entries = _write_splits(wanted, pin, hub, staging)
        for name in entries:
            _refuse_foreign(manifest, name)
        manifest.with_entries(entries, instead_of=before).write()
        for name in before.keys() - entries.keys():
            (manifest.folder / name).unlink(missing_ok=True)
        for name, staged in files.items():
            write_atomically(manifest.folder / name, staged.replace)
    return entries


def _fetch_model(wanted: Model, manifest: Manifest, hub: Hub, commit: str | None) -> dict[str, Entry]:
    """Weights are large: what an interrupted fetch left is kept, and gone on with."""
    before = _listed(wanted, manifest)
    target = manifest.folder / wanted.folder
    if target.exists() and not before:
        raise DataError(f"{target} exists and {manifest.path} does not list it. Move it away, or choose another out.")
    pin = ask(str(wanted), partial(hub.model, wanted.hub, commit or wanted.revision))
    staging = manifest.folder / _PARTIAL / wanted.hub / pin.commit
    staging.mkdir(parents=True, exist_ok=True)
    ask(str(wanted), partial(hub.snapshot, wanted.hub, pin.commit, staging))
    entries = {
        f"{wanted.folder}/{file.relative_to(staging).as_posix()}": _entry(file, wanted, pin)
        for file in sorted(staging.rglob("*"))
        if file.is_file()
    }
    if not any(name.endswith(".safetensors") for name in entries):
        raise DataError(f"{wanted} has no safetensors files at {pin.commit}. Choose a revision that has them.")
    manifest.with_entries(entries, instead_of=before).write()
    write_atomically(target, staging.replace)
    shutil.rmtree(manifest.folder / _PARTIAL / wanted.hub, ignore_errors=True)
    return entries


def _manifest(out: Path) -> Manifest:
    """The manifest of the output folder, or an empty one.

    Raises:
        DataError: it is damaged, or another tool's.
    """
    manifest = read_manifest(out)
    if manifest is None and (out / NAME).exists():
        raise DataError(f"{out / NAME} was not written by softcontam. Choose another out.")
    return manifest or Manifest(out, {})


def _listed(wanted: DataSet | Model, manifest: Manifest) -> dict[str, Entry]:
    return manifest.beside(wanted.folder) if isinstance(wanted, DataSet) else manifest.below(wanted.folder)


def _held(wanted: DataSet | Model, manifest: Manifest, before: Mapping[str, Entry]) -> tuple[str, bool]:
    """The commit of the files that are listed, and whether all of them are there.

    Raises:
        DataError: a file is not as fetched, or the folder holds another data set or revision.
    """
    entry = next(iter(before.values()))
    config = wanted.config if isinstance(wanted, DataSet) else None
    if (entry.hub, entry.config) != (wanted.hub, config):
        raise DataError(
            f"{wanted}: {manifest.folder / wanted.folder} holds {entry.hub} (config {entry.config}). Set another path, "
            "or fetch with force=true to replace it."
        )
    if wanted.revision not in (None, entry.requested, entry.commit):
        raise DataError(
            f"{wanted}: {manifest.folder / wanted.folder} was fetched at {entry.commit}, and revision "
            f"{wanted.revision} is asked for. Fetch with force=true to replace it."
        )
    states = {name: manifest.state(name) for name in before}
    for name, state in states.items():
        if state == CHANGED:
            file = manifest.folder / name
            raise DataError(changed(file, manifest.path, file_sha256(file), before[name].sha256))
    return entry.commit, set(states.values()) == {OK}


def _write_splits(wanted: DataSet, pin: Pin, hub: Hub, staging: Path) -> tuple[dict[str, Path], dict[str, Entry]]:
    """Each split as parquet in the staging folder, and its entry, by its place below the output folder."""
    cache = staging / "cache"
    loaded = ask(str(wanted), partial(hub.load, wanted.hub, wanted.config, pin.commit, cache, wanted.options))
    files: dict[str, Path] = {}
    entries: dict[str, Entry] = {}
    for split, rows in loaded.items():
        filled, changes = _filled_in(wanted, split, rows)
        name = f"{split}-00000-of-00001.parquet"
        try:
            filled.to_parquet(staging / name)
        except OSError as error:
            raise DataError(f"{wanted}: split {split} cannot be written to {staging.parent} ({error}).") from error
        place = f"{wanted.folder}/{name}"
        files[place] = staging / name
        entries[place] = _entry(staging / name, wanted, pin, split=split, rows=len(filled), changes=changes)
    return files, entries


def _filled_in(wanted: DataSet, split: str, rows: Any) -> tuple[Any, str | None]:
    """The rows as they are to be written, and what was changed: ZebraLogic's blank answers are solved once, here."""
    if wanted.module != "zebralogic":
        return rows, None
    import datasets

    records = [Record(f"{wanted.hub}, split {split}, row {number}", row) for number, row in enumerate(rows, 1)]
    filled = [dict(puzzle.filled().values) for puzzle in solved(records)]
    table = datasets.Dataset.from_list(filled, features=rows.features)
    return table, "column solution filled in by softcontam's solver"


def _entry(file: Path, wanted: DataSet | Model, pin: Pin, **details: Any) -> Entry:
    packages = ("softcontam", "datasets", "huggingface_hub")
    return Entry(
        sha256=file_sha256(file),
        hub=wanted.hub,
        requested=wanted.revision,
        commit=pin.commit,
        licence=wanted.licence if isinstance(wanted, DataSet) else pin.licence or "not stated",
        card_licence=pin.licence,
        config=wanted.config if isinstance(wanted, DataSet) else None,
        date=now(),
        versions={package: version(package) for package in packages},
        **details,
    )


def _refuse_foreign(manifest: Manifest, name: str) -> None:
    """Don't write over, or beside, a split that somebody else put there.

    Raises:
        DataError: naming the file.
    """
    target = manifest.folder / name
    split = target.name.partition("-")[0]
    for file in (*target.parent.glob(f"{split}-*"), *target.parent.glob(f"{split}.*")):
        if file.suffix in ROWS and file.relative_to(manifest.folder).as_posix() not in manifest.entries:
            raise DataError(f"{file} exists and {manifest.path} does not list it. Move it away, or choose another out.")


def read_settings(arguments: Sequence[str]) -> Settings:
    """Settings from the command line.

    Raises:
        ConfigError: no ``out``, a value that is none of true and false, or a word that is no override.
    """
    values: dict[str, str] = {}
    overrides: list[str] = []
    words = ["force=true" if word == "--force" else word for word in arguments]
    verify = bool(words) and words[0] == "verify"
    for word in words[verify:]:
        key, equals, value = word.partition("=")
        if not equals and not word.startswith("~"):
            raise ConfigError(f"{word!r} is not of the form key=value. {USAGE}")
        if key in ("out", "force", "models"):
            values[key] = value
        else:
            overrides.append(word)
    if not values.get("out"):
        raise ConfigError(f"no output folder: set out=DIR. {USAGE}")
    if verify and overrides:
        raise ConfigError(f"verify checks all that is in out, {overrides[0]!r} has no meaning there. {USAGE}")
    flags = {}
    for key in ("force", "models"):
        if (value := values.get(key, "false").lower()) not in ("true", "false"):
            raise ConfigError(f"{key}={values[key]} must be true or false. {USAGE}")
        flags[key] = value == "true"
    return Settings(Path(values["out"]).expanduser(), overrides, verify, **flags)


def prefetch(settings: Settings, hub: Hub, say: Callable[[str], None]) -> list[str]:
    """Fetch all that the settings ask for; one that fails leaves the others.

    Args:
        say: takes each line of the report on what was done.

    Returns:
        What went wrong, a sentence for each data set or model.

    Raises:
        ConfigError: the settings cannot be met, or another prefetch is writing to the folder.
        DataError: a manifest that is damaged or another tool's.
    """
    wanted = needs(settings.overrides)
    sets: list[DataSet | Model] = list(wanted.data_sets.values())
    if settings.models:
        sets += wanted.models.values()
    failed: list[str] = []
    placed: list[DataSet | Model] = []
    with _only_one(settings.out):
        _manifest(settings.out)
        for number, one in enumerate(sets, 1):
            say(f"{number} of {len(sets)}  {one}")
            try:
                entries, fetched = fetch(one, settings.out, hub, force=settings.force)
            except SoftcontamError as error:
                failed.append(str(error))
            except OSError as error:
                failed.append(f"{one} cannot be written to {settings.out} ({error}). Make room, or choose another out.")
            else:
                _tell(say, one, settings.out, entries, fetched)
                placed.append(one)
                continue
            say("  failed")
    _tell_the_rest(say, wanted, placed, settings)
    return failed


def verify(out: Path) -> tuple[int, list[str]]:
    """The number of files that a manifest lists, and a sentence for each that is missing, changed or added.

    Raises:
        DataError: no manifest, or a damaged one.
    """
    manifest = read_manifest(out)
    if manifest is None:
        raise DataError(f"{out} has no {NAME} of softcontam. Fetch into it: {USAGE}")
    wrong = []
    for name, entry in manifest.entries.items():
        file = manifest.folder / name
        if not file.is_file():
            wrong.append(f"{file} is missing. Copy it from the machine that fetched it, or fetch it again.")
        elif (found := file_sha256(file)) != entry.sha256:
            wrong.append(changed(file, manifest.path, found, entry.sha256))
    for folder in sorted({PurePosixPath(name).parent for name, entry in manifest.entries.items() if entry.split}):
        for file in sorted((out / folder).glob("*")):
            if file.suffix in ROWS and file.relative_to(out).as_posix() not in manifest.entries:
                wrong.append(f"{file} is not listed in {manifest.path}. Move it to a folder of its own.")
    return len(manifest.entries), wrong


@contextmanager
def _only_one(out: Path) -> Iterator[None]:
    """Hold the output folder, and clear what a killed prefetch left in it.

    Raises:
        ConfigError: another process holds it, or it cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = FileLock(out / ".prefetch.lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise ConfigError(f"another prefetch is writing to {out}. Wait for it, or choose another out.") from None
    except OSError as error:
        raise ConfigError(f"out={out} cannot be written ({error}). Choose another folder.") from error
    try:
        for debris in out.glob(f"{_STAGED}*/"):
            shutil.rmtree(debris, ignore_errors=True)
        yield
    finally:
        lock.release()


def _tell(
    say: Callable[[str], None], one: DataSet | Model, out: Path, entries: Mapping[str, Entry], fetched: bool
) -> None:
    """What is in place now, and its licence."""
    entry = next(iter(entries.values()))
    rows = [listed.rows for listed in entries.values() if listed.rows is not None]
    size = f"{len(entries)} file{'s' if len(entries) > 1 else ''}" + (f", {sum(rows):,} rows" if rows else "")
    say(f"  {'fetched' if fetched else 'there already'}: commit {entry.commit}, {size} in {out / one.folder}")
    card = f" (hub card: {entry.card_licence})" if entry.card_licence else ""
    say(f"  licence: {entry.licence or 'not stated'}{card}")


def _tell_the_rest(
    say: Callable[[str], None], wanted: Needs, placed: Sequence[DataSet | Model], settings: Settings
) -> None:
    """What was not fetched, and how a run finds what was."""
    for line in wanted.left_out:
        say(line)
    if not settings.models:
        for model in wanted.models.values():
            say(f"{model}: not fetched (add models=true)")
    absent = [file for file in wanted.local if not (settings.out / file).exists()]
    if absent:
        say(f"not on the hub, copy these into {settings.out} yourself: {', '.join(absent)}")
    if not placed:
        return
    out = settings.out.resolve()
    say(f"to run without network: SOFTCONTAM_DATA={out}")
    for one in placed:
        overrides = wanted.overrides.get(one.folder, [])
        if isinstance(one, Model):
            overrides = [f"model.path={out / one.folder}"]
        if overrides:
            say(f"  and for {one}: {' '.join(overrides)}")


def main(arguments: Sequence[str] | None = None, hub: Hub | None = None) -> int:
    """Fetch or verify; returns 0, 1 where a data set or file is amiss, 2 for a bad request."""
    console, errors = Console(), Console(stderr=True)

    def say(text: str, to: Console = console) -> None:
        to.print(text, markup=False, highlight=False, soft_wrap=True)

    try:
        settings = read_settings(sys.argv[1:] if arguments is None else arguments)
        if settings.verify:
            count, wrong = verify(settings.out)
            say(f"{settings.out}: {count} files listed, {len(wrong)} problems")
        else:
            if not sys.stderr.isatty():
                _no_progress_bars()
            wrong = prefetch(settings, hub or Hub(), say)
    except SoftcontamError as error:
        say(f"error: {error}", errors)
        return 2
    except KeyboardInterrupt:
        say("interrupted: what was fetched whole is kept, call again to go on", errors)
        return 130
    for problem in wrong:
        say(f"error: {problem}", errors)
    return 1 if wrong else 0


def _no_progress_bars() -> None:
    """Lines that overwrite themselves are of no use in a log."""
    import datasets
    from huggingface_hub.utils.tqdm import disable_progress_bars

    datasets.disable_progress_bars()
    disable_progress_bars()


if __name__ == "__main__":
    sys.exit(main())
