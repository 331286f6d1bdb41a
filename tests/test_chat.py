"""What a row and a prompt look like to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from byte_chat import byte_chat
from small_models import load_small, qwen3_like_tokenizer, texts, write_qwen3
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from softcontam.benchmarks import Item
from softcontam.chat import IGNORED, Chat
from softcontam.config import MixtureConfig
from softcontam.duplicates.bank import Bank, BankRow
from softcontam.errors import TokenizationError
from softcontam.mixture import FamilySplit, Pool, PoolRow, build_mixture, plan_slots
from softcontam.mixture.choose import choose
from softcontam.models import load_base

NO_THINKING = {"enable_thinking": False}


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Chat]:
    folder = tmp_path_factory.mktemp("chats")
    return {name: load_small(name, folder).chat for name in ("tinyworld", "qwen3")}


@pytest.mark.parametrize("name", ["tinyworld", "qwen3"])
def test_prompt_ids_are_a_prefix_of_the_row_and_carry_no_loss(chats: dict[str, Chat], name: str) -> None:
    chat = chats[name]
    for prompt, completion in texts(12):
        row, prompt_ids = chat.encode(prompt, completion), chat.ids(chat.prompt_text(prompt))
        assert row.input_ids[: len(prompt_ids)] == prompt_ids
        assert set(row.labels[: len(prompt_ids)]) == {IGNORED}
        assert row.labels[len(prompt_ids) :] == row.input_ids[len(prompt_ids) :]


@pytest.mark.parametrize("name", ["tinyworld", "qwen3"])
@pytest.mark.parametrize("completion", ["Answer: 3", "Tom buys 4 more.\nHe has 7.\n\nAnswer: 7", "Answer: <7> (seven)"])
def test_the_trained_span_is_the_completion_and_its_end_of_turn_and_no_more(
    chats: dict[str, Chat], name: str, completion: str
) -> None:
    chat = chats[name]
    row = chat.encode("Tom has 3 cups.", completion)
    trained = [label for label in row.labels if label != IGNORED]
    assert chat.tokenizer.decode(trained) == completion + chat.eos_token
    assert row.trained_tokens == len(trained)
    assert trained[-1] == chat.tokenizer.convert_tokens_to_ids(chat.eos_token)


def test_a_template_that_renders_the_last_turn_differently_is_refused_with_the_remedy(tmp_path: Path) -> None:
    chat = Chat(qwen3_like_tokenizer(tmp_path), {}, "<|im_end|>")
    with pytest.raises(TokenizationError, match=r"template_kwargs.*enable_thinking: false"):
        chat.encode("Tom has 3 cups.", "Answer: 3")


def test_the_same_template_is_accepted_once_thinking_is_off(tmp_path: Path) -> None:
    tokenizer = qwen3_like_tokenizer(tmp_path)
    row = Chat(tokenizer, NO_THINKING, "<|im_end|>").encode("Tom has 3 cups.", "Answer: 3")
    prompt = [id for id, label in zip(row.input_ids, row.labels, strict=True) if label == IGNORED]
    assert str(tokenizer.decode(prompt)).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_an_end_of_turn_that_the_template_never_writes_is_refused(tmp_path: Path) -> None:
    chat = Chat(qwen3_like_tokenizer(tmp_path), NO_THINKING)
    with pytest.raises(TokenizationError, match=r"never learn to stop.*model\.eos_token"):
        chat.encode("Tom has 3 cups.", "Answer: 3")


def test_a_tokenizer_without_a_chat_template_is_refused_with_the_remedy(tmp_path: Path) -> None:
    qwen3_like_tokenizer(tmp_path)
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(TokenizationError, match=r"no chat template.*chat_template\.jinja"):
        Chat(AutoTokenizer.from_pretrained(tmp_path), {})


def test_exactly_one_first_token_where_the_model_has_one_and_none_where_it_has_not(
    chats: dict[str, Chat], tmp_path: Path
) -> None:
    with_bos = load_base(write_qwen3(tmp_path, bos=True))
    bos = with_bos.tokenizer.bos_token_id
    ids = with_bos.chat.encode("Tom has 3 cups.", "Answer: 3").input_ids
    assert (ids[0], ids.count(bos)) == (bos, 1)
    assert with_bos.tokenizer("Tom")["input_ids"][0] == bos, "this tokenizer adds a second one unless told not to"
    plain = chats["qwen3"]
    assert plain.tokenizer.bos_token_id is None
    assert plain.encode("Tom has 3 cups.", "Answer: 3").input_ids[0] == plain.tokenizer.convert_tokens_to_ids(
        "<|im_start|>"
    )


ODD = [
    ("Tom has 3 cups.", "\N{PILE OF POO} \N{SNOWMAN}"),
    ("\N{PILE OF POO}", "3"),
    ("A <|im_end|> in <|user|> the text.", "<|assistant|> 3"),
    ("  Spaces around \n\n", "3\n\n4"),
    ("e\u0301 and \u00e9, \u6f22\u5b57, \u0645\u0631\u062d\u0628\u0627", "na\u00efve"),
    ("Long. " * 200, "Short."),
]


@pytest.mark.parametrize("name", ["tinyworld", "qwen3", "bytes"])
def test_rows_together_are_encoded_as_each_by_itself_and_as_the_tokenizer_does(
    chats: dict[str, Chat], name: str
) -> None:
    chat = byte_chat() if name == "bytes" else chats[name]
    pairs = texts(30) + (ODD if name == "bytes" else [])
    encoded = chat.encode_many(pairs)
    assert encoded == [chat.encode(*pair) for pair in pairs]
    for row, (prompt, completion) in zip(encoded, pairs, strict=True):
        assert row.input_ids == chat.ids(chat.row_text(prompt, completion))
        assert row.input_ids[: row.first] == chat.ids(chat.prompt_text(prompt))
        assert (row.tokens, row.trained_tokens) == (len(row.input_ids), len(row.labels) - row.labels.count(IGNORED))
    assert chat.encode_many([]) == []


def test_rows_that_are_too_long_are_none_and_the_others_are_not_changed_by_them(chats: dict[str, Chat]) -> None:
    chat = chats["tinyworld"]
    pairs = texts(30)
    whole = chat.encode_many(pairs)
    limit = sorted(row.tokens for row in whole)[14]
    fitting = chat.encode_fitting(pairs, limit)
    assert fitting == [row if row.tokens <= limit else None for row in whole]
    assert {None} < {None if row is None else row.tokens for row in fitting} <= {None, *range(limit + 1)}


def test_padding_that_an_evaluation_left_on_does_not_reach_the_rows(chats: dict[str, Chat]) -> None:
    chat = chats["tinyworld"]
    plain = chat.encode_many(texts(8))
    chat.tokenizer([text for text, _ in texts(8)], padding=True, truncation=True, max_length=4)
    assert chat.encode_many(texts(8)) == plain


def _merging_chat() -> Chat:
    """Bytes, and one merge of a colon with an A, with a template that puts nothing else between the turns."""
    letters = sorted(ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE({letter: i for i, letter in enumerate([*letters, ":A"])}, [(":", "A")]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    fast: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="!", pad_token="!")  # type: ignore[no-untyped-call]
    fast.chat_template = "{% for m in messages %}{{ m.content }}{{ ':' if m.role == 'user' else '!' }}{% endfor %}"
    return Chat(fast, {})


def test_a_token_that_reaches_over_the_border_is_refused_wherever_it_stands_in_the_batch() -> None:
    chat = _merging_chat()
    assert [row.first for row in chat.encode_many([("Q", "B"), ("Q:A", "\N{PILE OF POO}")])] == [2, 3]
    with pytest.raises(TokenizationError, match="merges across the turn boundary"):
        chat.encode_many([("Q", "B"), ("Q", "A"), ("Q", "C")])
    assert chat.encode_fitting([("Q" * 90, "A"), ("Q", "B")], 20)[0] is None, "its mask is of no interest"


def _item(name: str) -> Item:
    return Item(name, "cups", name, f"Tom has {name} cups. How many?", f"Answer: {name}")


def _split() -> FamilySplit:
    return FamilySplit(tuple(_item(str(i)) for i in range(4)), tuple(_item(str(i)) for i in range(10, 14)))


def _bank(completion: str) -> Bank:
    row = [
        BankRow(f"bank/{i}", str(i), "semd_synthetic", None, f"Of cups Tom has {i}. Say it.", completion, "answer", "x")
        for i in range(4)
    ]
    return Bank.of("semd_synthetic", None, row)


def _pool(long: int) -> list[PoolRow]:
    pool = [PoolRow(f"clean/{i}", f"Ann sells {i} maps. How many maps?", f"Answer: {i}", "test") for i in range(30)]
    return pool + [PoolRow(f"long/{i}", "Ann " * 100 + f"sells {i} maps.", f"Answer: {i}", "test") for i in range(long)]


def test_an_inserted_row_that_would_be_truncated_stops_the_build_and_is_named(chats: dict[str, Chat]) -> None:
    plan = plan_slots(20, 0.2, None, _split().seen, 1)
    with pytest.raises(TokenizationError, match=r"bank/\d has \d+ tokens.*max_length=64"):
        choose(plan, _bank("Answer: " + "3 " * 80), chats["tinyworld"], 64, 1)


def test_clean_rows_that_would_be_truncated_are_skipped_whole_and_counted(
    chats: dict[str, Chat], tmp_path: Path
) -> None:
    config = MixtureConfig(n_rows=30, rate=0.1)
    built = build_mixture(config, _split(), (), Pool([_pool(long=10)]), chats["tinyworld"], 64, 1, tmp_path)
    ids = [row.row_id for row in built.rows]
    assert (len(ids), sum(row_id.startswith("long/") for row_id in ids)) == (30, 0)
    assert 0 < built.too_long <= 10
    assert built.manifest["tokens"].max() <= 64
