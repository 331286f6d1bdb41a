"""The clean pool: what is read from files, and every way in which a file can be wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from softcontam.config import PoolConfig
from softcontam.errors import ConfigError, DataError
from softcontam.mixture import PoolRow, load_pool
from softcontam.tinyworld.lexicon import CONTESTED_CHANGE, CONTESTED_MOVE

GOOD = [{"role": "user", "content": "Question?"}, {"role": "assistant", "content": "Answer."}]


def load(folder: Path, *names: str) -> list[PoolRow]:
    return [row for batch in load_pool(PoolConfig("mine", list(names)), folder).batches() for row in batch]


def jsonl(path: Path, *records: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def refused(folder: Path, name: str, *says: str) -> None:
    with pytest.raises(DataError) as caught:
        load(folder, name)
    for words in (name, *says):
        assert words in str(caught.value)


class TestTinyworld:
    def test_is_the_same_every_time_and_has_its_provenance(self) -> None:
        rows, again = (load_pool(PoolConfig("tinyworld"), Path("/nowhere")).take(range(8000)) for _ in range(2))
        assert rows == again
        assert len({row.row_id for row in rows}) == len(rows)
        assert len({row.source for row in rows}) > 3
        assert all(row.completion.startswith("Answer: ") for row in rows)

    def test_has_no_verb_of_the_benchmarks(self) -> None:
        contested = {verb for pair in (*CONTESTED_CHANGE, *CONTESTED_MOVE) for verb in (pair.gain, pair.loss)}
        for row in load_pool(PoolConfig("tinyworld"), Path("/nowhere")).take(range(8000)):
            assert not contested & set(row.prompt.replace(".", "").replace("?", "").split())

    def test_an_unknown_pool_without_files(self) -> None:
        with pytest.raises(ConfigError, match=r"mixture\.pool\.name=mine.*mixture\.pool\.files"):
            load_pool(PoolConfig("mine"), Path("/nowhere"))


class TestFiles:
    def test_rows_come_in_the_order_of_files_with_their_source(self, tmp_path: Path) -> None:
        jsonl(tmp_path / "one" / "train.jsonl", {"messages": GOOD, "source": "a web page"}, {"messages": GOOD})
        jsonl(tmp_path / "two" / "train.jsonl", {"messages": GOOD})
        rows = load(tmp_path, "one/train.jsonl", "two/train.jsonl")
        assert [row.source for row in rows] == ["a web page", "one", "two"]
        assert len({row.row_id for row in rows}) == 3
        assert (rows[0].prompt, rows[0].completion) == ("Question?", "Answer.")

    def test_rows_of_two_files_of_one_folder_have_different_ids(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            jsonl(tmp_path / "pool" / f"{name}.jsonl", {"messages": GOOD}, {"messages": GOOD})
        counts = Counter(row.row_id for row in load(tmp_path, "pool/a.jsonl", "pool/b.jsonl"))
        assert max(counts.values()) == 1

    def test_parquet(self, tmp_path: Path) -> None:
        pd.DataFrame({"messages": [GOOD, GOOD]}).to_parquet(tmp_path / "p.parquet")
        assert [row.completion for row in load(tmp_path, "p.parquet")] == ["Answer."] * 2

    def test_first_user_and_first_assistant_turn_are_taken(self, tmp_path: Path) -> None:
        more = [{"role": "system", "content": "Be kind."}, *GOOD, {"role": "user", "content": "And then?"}]
        jsonl(tmp_path / "x.jsonl", {"messages": more})
        assert load(tmp_path, "x.jsonl")[0].prompt == "Question?"

    def test_missing_file_says_how_to_set_it(self, tmp_path: Path) -> None:
        refused(tmp_path, "gone.jsonl", "does not exist", "SOFTCONTAM_DATA", "mixture.pool.files")
        refused(tmp_path, "gone.parquet", "does not exist")

    @pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
    def test_truncated_parquet(self, tmp_path: Path, keep: float) -> None:
        path = tmp_path / "p.parquet"
        pd.DataFrame({"messages": [GOOD] * 50}).to_parquet(path)
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
        refused(tmp_path, "p.parquet", "cannot be read", "Copy it again")

    def test_truncated_jsonl_names_the_line(self, tmp_path: Path) -> None:
        path = jsonl(tmp_path / "x.jsonl", {"messages": GOOD}, {"messages": GOOD})
        path.write_text(path.read_text()[:-20])
        refused(tmp_path, "x.jsonl", "line 2", "JSON")

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe\x00\x80\n")
        refused(tmp_path, "x.jsonl")

    def test_parquet_without_conversations(self, tmp_path: Path) -> None:
        pd.DataFrame({"text": ["a"]}).to_parquet(tmp_path / "p.parquet")
        refused(tmp_path, "p.parquet", "lacks the column messages", "it has: text")

    @pytest.mark.parametrize(
        "record",
        [
            {},
            {"messages": None},
            {"messages": []},
            {"messages": GOOD[:1]},
            {"messages": GOOD[1:]},
            {"messages": [{"role": "user", "content": ""}, GOOD[1]]},
            {"messages": [GOOD[0], {"role": "assistant", "content": None}]},
        ],
    )
    def test_a_row_that_lacks_a_turn_is_named(self, tmp_path: Path, record: object) -> None:
        jsonl(tmp_path / "x.jsonl", {"messages": GOOD}, record)
        refused(tmp_path, "x.jsonl", "row 2", "user and an assistant turn")

    @pytest.mark.parametrize(
        "record",
        [
            {"messages": "hello"},
            {"messages": 7},
            {"messages": {"role": "user"}},
            {"messages": ["hello"]},
            {"messages": [{"content": "Question?"}, GOOD[1]]},
            {"messages": [{"role": "user"}, GOOD[1]]},
            {"messages": [{"role": "user", "content": ["parts"]}, GOOD[1]]},
            {"messages": [GOOD[0], {"role": "assistant", "content": 5}]},
            {"messages": [{"role": "user", "content": " \n"}, GOOD[1]]},
        ],
    )
    def test_a_row_of_another_shape_is_named(self, tmp_path: Path, record: object) -> None:
        jsonl(tmp_path / "x.jsonl", {"messages": GOOD}, record)
        refused(tmp_path, "x.jsonl", "row 2")

    @pytest.mark.parametrize("record", [[1], 3, None, "text"])
    def test_a_line_that_is_no_object_is_named(self, tmp_path: Path, record: object) -> None:
        jsonl(tmp_path / "x.jsonl", {"messages": GOOD}, record)
        refused(tmp_path, "x.jsonl", "line 2", "JSON object")

    def test_an_answer_before_the_question_is_no_answer_to_it(self, tmp_path: Path) -> None:
        jsonl(tmp_path / "x.jsonl", {"messages": GOOD[::-1]})
        refused(tmp_path, "x.jsonl", "row 1")


class TestParquet:
    """Rows are taken out of parquet by columns; whatever is not a plain conversation is read one by one."""

    ROWS = (
        {"messages": GOOD, "source": "web"},
        {"messages": [{"role": "system", "content": "Be kind."}, *GOOD], "source": None},
        {"messages": [GOOD[0], {"role": "tool", "content": "7"}, GOOD[1]], "source": ""},
        {"messages": [{"role": "user", "content": " Hm?\n"}, {"role": "assistant", "content": "\x1c\u00a0Yes. \n"}]},
        {"messages": [*GOOD, {"role": "user", "content": None}], "source": "web"},
    )

    def test_conversations_are_read_as_from_jsonl(self, tmp_path: Path) -> None:
        (tmp_path / "pool").mkdir()
        rows = list(self.ROWS) * 3
        jsonl(tmp_path / "pool" / "x.jsonl", *rows)
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pool" / "x.parquet", row_group_size=4)
        assert load(tmp_path, "pool/x.parquet") == load(tmp_path, "pool/x.jsonl")

    @pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
    @pytest.mark.parametrize("list_of", [pa.list_, pa.large_list])
    def test_every_way_to_store_text_and_lists(self, text: pa.DataType, list_of: object, tmp_path: Path) -> None:
        kind = list_of(pa.struct([("content", text), ("name", pa.string()), ("role", text)]))  # type: ignore[operator]
        found = [[{"content": turn["content"], "name": None, "role": turn["role"]} for turn in GOOD]] * 2
        try:
            table = pa.table({"messages": pa.array(found, kind)})
        except pa.ArrowNotImplementedError:
            pytest.skip("pyarrow cannot make such a column")
        pq.write_table(table, tmp_path / "x.parquet")
        assert [(row.prompt, row.completion) for row in load(tmp_path, "x.parquet")] == [("Question?", "Answer.")] * 2

    @pytest.mark.parametrize(
        "messages",
        [
            None,
            [],
            GOOD[:1],
            GOOD[::-1],
            [None, GOOD[1]],
            [{"role": "user", "content": " \x1c\n"}, GOOD[1]],
            [GOOD[0], {"role": "assistant", "content": None}],
            [GOOD[0], {"role": "assistant", "content": "\u2003"}],
            [{"role": None, "content": "Question?"}, GOOD[1]],
        ],
    )
    def test_a_row_that_lacks_a_turn_is_named(self, messages: object, tmp_path: Path) -> None:
        schema = pa.schema([("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])))])
        rows = [{"messages": GOOD}] * 6 + [{"messages": messages}, {"messages": GOOD}]
        pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "p.parquet", row_group_size=3)
        refused(tmp_path, "p.parquet", "row 7", "user and an assistant turn")

    def test_messages_that_are_no_conversations(self, tmp_path: Path) -> None:
        for name, messages in (("a", ["hello"]), ("b", [["hello"]]), ("c", [[{"text": "hello"}]])):
            pq.write_table(pa.table({"messages": messages}), tmp_path / f"{name}.parquet")
            refused(tmp_path, f"{name}.parquet", "row 1", "user and an assistant turn")

    def test_rows_are_counted_without_being_read(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"messages": [GOOD] * 3 + [[]]}), tmp_path / "p.parquet")
        assert len(load_pool(PoolConfig("mine", ["p.parquet"]), tmp_path)) == 4

    def test_rows_can_be_taken_from_anywhere(self, tmp_path: Path) -> None:
        rows = [{"messages": [{"role": "user", "content": f"{n}?"}, GOOD[1]]} for n in range(50)]
        jsonl(tmp_path / "a.jsonl", *rows[:20])
        pq.write_table(pa.Table.from_pylist(rows[20:]), tmp_path / "b.parquet", row_group_size=7)
        found = load_pool(PoolConfig("mine", ["a.jsonl", "b.parquet"]), tmp_path).take([49, 3, 20, 19, 3, 33])
        assert [row.prompt for row in found] == ["49?", "3?", "20?", "19?", "3?", "33?"]
        assert [row.row_id.split("/", 1)[1] for row in found[:3]] == ["b/30", "a/4", "b/1"]
