"""All that is asked of the Hugging Face hub when data is fetched, and what its silence means."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from softcontam.errors import DataError, SoftcontamError

T = TypeVar("T")

MODEL_FILES = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "LICENSE*")
"""What is fetched of a model: weights, tokenizer, chat template, licence; not its copies in other formats."""


@dataclass(frozen=True)
class Pin:
    """The commit that a revision stands for, and the licence on the hub's card."""

    commit: str
    licence: str | None


class Hub:
    """All that is asked of the hub."""

    def data_set(self, hub_id: str, revision: str | None) -> Pin:
        """The commit of a data set's revision; None is its newest."""
        from huggingface_hub import HfApi

        return _pin(HfApi().dataset_info(hub_id, revision=revision))

    def model(self, hub_id: str, revision: str | None) -> Pin:
        """The commit of a model's revision; None is its newest."""
        from huggingface_hub import HfApi

        return _pin(HfApi().model_info(hub_id, revision=revision))

    def load(self, hub_id: str, config: str | None, commit: str, cache: Path, options: Mapping[str, Any]) -> Any:
        """All splits of a data set, as a ``DatasetDict``.

        Args:
            cache: an empty folder. With a shared one ``datasets`` takes whatever commit it holds of the data set when
                the hub stops answering.
            options: further arguments of ``datasets.load_dataset``.
        """
        import datasets

        return datasets.load_dataset(hub_id, config, revision=commit, cache_dir=str(cache), **options)

    def snapshot(self, hub_id: str, commit: str, folder: Path) -> None:
        """Fetch a model's files into a folder; what an interrupted call left there is gone on with."""
        from huggingface_hub import snapshot_download

        snapshot_download(hub_id, revision=commit, local_dir=folder, allow_patterns=list(MODEL_FILES))
        shutil.rmtree(folder / ".cache", ignore_errors=True)


def ask(what: str, question: Callable[[], T]) -> T:
    """The hub's answer to a question about ``what``.

    Raises:
        DataError: it gave none; says in one sentence what to do.
    """
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return question()
    except SoftcontamError:
        raise
    except OfflineModeIsEnabled as error:
        reason, remedy = first_line(error), "HF_HUB_OFFLINE is set: unset it to fetch."
    except GatedRepoError as error:
        reason, remedy = first_line(error), "Accept its terms on its hub page, then run `hf auth login`."
    except RepositoryNotFoundError as error:
        reason, remedy = first_line(error), "Correct hub.id (model.path), or run `hf auth login` if it is private."
    except RevisionNotFoundError as error:
        reason, remedy = first_line(error), "There is no such revision: correct hub.revision (model.revision)."
    except Exception as error:  # datasets, huggingface_hub and httpx share no base class
        reason = f"{type(error).__name__}: {first_line(error)}"
        if isinstance(error, HfHubHTTPError | EntryNotFoundError) or not _is_network(error):
            remedy = "Check hub.id, hub.config and hub.revision, and try again."
        else:
            remedy = (
                "The hub cannot be reached from here: run this on a machine with network, copy the output folder here "
                "and set SOFTCONTAM_DATA to it."
            )
    raise DataError(f"{what} could not be fetched. {remedy} ({reason})")


def _is_network(error: BaseException) -> bool:
    """Whether an error, or what it came from, is about the connection."""
    seen: BaseException | None = error
    while seen is not None:
        names = {kind.__name__ for kind in type(seen).__mro__}
        if names & {"ConnectionError", "TransportError", "TimeoutError", "LocalEntryNotFoundError"}:
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _pin(info: Any) -> Pin:
    licence = getattr(info.card_data, "license", None) if info.card_data is not None else None
    listed = licence if isinstance(licence, list) else [licence]
    return Pin(str(info.sha), ", ".join(str(one) for one in listed if one) or None)


def first_line(error: BaseException) -> str:
    """The first line of an error's text that says something, else its kind."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
