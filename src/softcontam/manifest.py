"""The manifest of a folder that ``python -m softcontam.prefetch`` wrote: what each file is, and its sha256."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from softcontam.errors import DataError
from softcontam.store import file_sha256, write_text

NAME = "manifest.json"
"""The manifest's file in the folder of local data."""

WRITTEN_BY = "softcontam.prefetch"
"""Marks the file as ours: other tools call theirs manifest.json too."""

ROWS = (".parquet", ".jsonl")
"""Endings of the files that benchmarks are read from."""

OK, MISSING, CHANGED = "ok", "missing", "changed"


@dataclass(frozen=True)
class Entry:
    """One file, and what it was made from.

    ``requested`` is the revision that the config asked for (None: the newest), ``commit`` what it stood for then.
    ``licence`` is the config's word, ``card_licence`` that of the hub's card. ``changes`` says in what the rows differ
    from the hub's. ``config``, ``split`` and ``rows`` are None for the files of a model.
    """

    sha256: str
    hub: str
    requested: str | None
    commit: str
    licence: str
    card_licence: str | None = None
    config: str | None = None
    split: str | None = None
    rows: int | None = None
    changes: str | None = None
    date: str = ""
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """The entries of a folder by the files' places in it, with ``/`` between their parts."""

    folder: Path
    entries: Mapping[str, Entry]

    @property
    def path(self) -> Path:
        """The manifest's own file."""
        return self.folder / NAME

    def below(self, folder: str) -> dict[str, Entry]:
        """The entries of the files that lie in ``folder`` or deeper."""
        return {name: entry for name, entry in self.entries.items() if PurePosixPath(name).is_relative_to(folder)}

    def beside(self, folder: str) -> dict[str, Entry]:
        """The entries of the files that lie in ``folder`` itself."""
        return {
            name: entry for name, entry in self.entries.items() if PurePosixPath(name).parent == PurePosixPath(folder)
        }

    def state(self, name: str) -> str:
        """Whether a listed file is ``ok``, ``missing`` or ``changed``."""
        file = self.folder / name
        if not file.is_file():
            return MISSING
        return OK if file_sha256(file) == self.entries[name].sha256 else CHANGED

    def refuse_changed(self, name: str) -> None:
        """Hold a file that is about to be read against its entry.

        A file of rows that is not listed, in a folder in which others are, would be read along with them.

        Raises:
            DataError: the two differ, or a file of rows was added; names the file and the remedy.
        """
        entry = self.entries.get(name)
        if entry is None:
            place = PurePosixPath(name)
            if place.suffix in ROWS and self.beside(str(place.parent)):
                raise DataError(
                    f"{self.folder / name} lies among files that prefetch wrote, and {self.path} does not list it. "
                    "Move it to a folder of its own."
                )
        elif (found := file_sha256(self.folder / name)) != entry.sha256:
            raise DataError(changed(self.folder / name, self.path, found, entry.sha256))

    def with_entries(self, entries: Mapping[str, Entry], *, instead_of: Mapping[str, Entry]) -> Manifest:
        """The manifest with the entries of a fetched set in place of those that it had."""
        kept = {name: entry for name, entry in self.entries.items() if name not in instead_of}
        return Manifest(self.folder, kept | dict(entries))

    def write(self) -> None:
        """Put the manifest in its place, whole or not at all."""
        files = {name: asdict(entry) for name, entry in sorted(self.entries.items())}
        text = json.dumps({"written_by": WRITTEN_BY, "format": 1, "files": files}, indent=1, ensure_ascii=False)
        write_text(self.path, text + "\n")


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None where there is none, or one that is not ours.

    Raises:
        DataError: it is damaged.
    """
    path = folder / NAME
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(written, dict) or written.get("written_by") != WRITTEN_BY:
            return None
        if written["format"] != 1:
            raise ValueError(f"format {written['format']} is not known to this version")
        entries = {name: Entry(**entry) for name, entry in written["files"].items()}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path} is damaged ({reason}). Copy the folder again, or fetch into a new one with "
            "`python -m softcontam.prefetch`."
        ) from error
    return Manifest(folder, entries)


def refuse_changed(data: Path, files: Iterable[Path]) -> None:
    """Hold files below the data folder against its manifest, where it has one, before they are read.

    Raises:
        DataError: see :meth:`Manifest.refuse_changed`.
    """
    manifest = read_manifest(data)
    if manifest is not None:
        for file in files:
            if file.is_relative_to(data):
                manifest.refuse_changed(file.relative_to(data).as_posix())


def pinned(data: Path, path: str, hub_id: str, revision: str | None) -> str | None:
    """The commit that the files in a folder below ``data`` were fetched at; None where no manifest lists them.

    Raises:
        DataError: they are of another hub data set than ``hub_id``, or not of the ``revision`` that is asked for.
    """
    manifest = read_manifest(data)
    if manifest is None:
        return None
    for name, entry in manifest.beside(path).items():
        if entry.hub != hub_id:
            raise DataError(
                f"{data / name} was fetched from {entry.hub}, and the config says {hub_id}. Set the benchmark's path "
                "to another folder, or correct its hub.id."
            )
        if revision not in (None, entry.requested, entry.commit):
            raise DataError(
                f"{data / name} was fetched at {entry.commit}, and the config asks for revision {revision}. Fetch it "
                f"again with force=true, or set the benchmark's hub.revision to {entry.commit}."
            )
        return entry.commit
    return None


def changed(file: Path, manifest: Path, found: str, expected: str) -> str:
    """The sentence for a file that is no longer what was fetched."""
    return (
        f"{file} is not the file that was fetched: sha256 {found[:16]}…, in {manifest} {expected[:16]}…. Copy it again "
        "from the machine that fetched it, or fetch it again with force=true."
    )
