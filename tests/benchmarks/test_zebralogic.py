import json
import random
from collections import Counter
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pandas as pd
import pytest

from softcontam.benchmarks import Benchmark, Item, load_benchmark, zebralogic
from softcontam.benchmarks.records import Record
from softcontam.benchmarks.zebra_clues import parse_puzzle
from softcontam.benchmarks.zebra_families import same_up_to_renaming, template
from softcontam.benchmarks.zebra_solver import unique_solution
from softcontam.benchmarks.zebralogic import BLANK, cell_chance, parse, score, solved
from softcontam.config import BenchmarkConfig, HubConfig
from softcontam.errors import ConfigError, DataError

HUB = HubConfig("allenai/ZebraLogicBench", "grid_mode", None, "none stated")
FILE = "test-00000-of-00001.parquet"
PUZZLE = """There are 2 houses, numbered 1 to 2 from left to right, as seen from across the street. Each house is \
occupied by a different person. Each house has a unique attribute for each of the following characteristics:
 - Each person has a unique name: `Eric`, `Arnold`
 - The people keep unique animals: `cat`, `horse`

## Clues:
1. Eric is in the first house.
2. The cat lover is in the second house.
"""
GRID = {"House 1": {"Name": "Eric", "Animal": "horse"}, "House 2": {"Name": "Arnold", "Animal": "cat"}}
GOLD = json.dumps(GRID)


def config(style: str = "answer", path: str | None = "zebralogic/grid_mode", **params: Any) -> BenchmarkConfig:
    return BenchmarkConfig(
        name="zebralogic", module="zebralogic", path=path, hub=HUB, response_style=style, params=params
    )


def row(**changes: Any) -> dict[str, Any]:
    """One well-formed row with blank answers, with changes."""
    solution = {"header": ["House", "Name", "Animal"], "rows": [[BLANK] * 3] * 2}
    return {"id": "lgp-test-2x2-0", "size": "2*2", "puzzle": PUZZLE, "solution": solution, **changes}


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    pd.DataFrame(rows).to_parquet(folder / FILE)
    return folder


def answers(*rows: list[str], header: tuple[str, ...] = ("House", "Name", "Animal")) -> dict[str, Any]:
    return {"header": list(header), "rows": list(rows)}


@pytest.fixture(scope="module")
def zebra(data_dir: Path) -> Benchmark:
    return load_benchmark(config(), data_dir)


@pytest.fixture(scope="module")
def mixed(data_dir: Path) -> list[dict[str, Any]]:
    """The first 60 rows of the data set, of 23 sizes."""
    rows = pd.read_parquet(data_dir / "zebralogic" / "grid_mode" / FILE).head(60).to_dict("records")
    return [{str(key): value for key, value in each.items()} for each in rows]


@pytest.fixture
def item(tmp_path: Path) -> Item:
    return load_benchmark(config(path="."), write(tmp_path, row())).items[0]


def test_all_1000_puzzles_are_solved_and_their_gold_replies_score_as_correct(zebra: Benchmark) -> None:
    assert len(zebra.items) == 1000
    assert set(Counter(item.meta["stratum"] for item in zebra.items).values()) == {40}
    for item in zebra.items:
        parsed = zebra.parse(item, item.target)
        assert parsed is not None, item.item_id
        assert score(item, parsed) == zebralogic.Score(True, 1.0), item.item_id


def test_cot_gold_replies_score_as_correct_and_are_no_reply_in_the_other_style(
    mixed: list[dict[str, Any]], tmp_path: Path
) -> None:
    benchmark = load_benchmark(config("cot", "."), write(tmp_path, *mixed))
    assert len({item.meta["size"] for item in benchmark.items}) == 23
    for item in benchmark.items:
        parsed = benchmark.parse(item, f"House 1 is ...\n\n{item.target}")
        assert parsed is not None
        assert score(item, parsed).correct, item.item_id
        assert "end with a line that holds `Answer: `" in item.prompt
        assert parse(item, item.target, "answer") is None


def test_shuffled_gold_answers_score_at_chance(zebra: Benchmark) -> None:
    """Each puzzle is answered with a random order of its own values, 5 times."""
    generator = random.Random(20)
    cells, right = [], []
    for item in zebra.items * 5:
        gold = item.meta["solution"]
        columns = {name: [house[name] for house in gold.values()] for name in gold["House 1"]}
        shuffled = {name: generator.sample(values, len(values)) for name, values in columns.items()}
        grid = {house: {name: shuffled[name][i] for name in columns} for i, house in enumerate(gold)}
        parsed = zebra.parse(item, json.dumps(grid))
        assert parsed is not None
        outcome = score(item, parsed)
        assert outcome.partial is not None
        cells.append(outcome.partial)
        right.append(float(outcome.correct))
    assert abs(fmean(cells) - cell_chance(zebra.items)) < 4 * stdev(cells) / len(cells) ** 0.5
    assert abs(fmean(right) - zebra.chance) < 4 * stdev(right) / len(right) ** 0.5


def test_chance_is_the_mean_probability_of_guessing_all_orders(zebra: Benchmark) -> None:
    orders = {2: 2, 3: 6, 4: 24, 5: 120, 6: 720}
    assert zebra.chance == pytest.approx(sum(1 / orders[n] ** m for n in range(2, 7) for m in range(2, 7)) / 25)
    assert zebra.chance == pytest.approx(0.0208, abs=5e-5)
    assert cell_chance(zebra.items) == pytest.approx(0.29)


def test_solution_of_the_first_puzzle_has_together_what_its_clues_say_is_together(zebra: Benchmark) -> None:
    item = zebra.items[0]
    assert item.item_id == "zebralogic/lgp-test-5x6-16"
    assert (item.meta["n_houses"], item.meta["n_attributes"], item.meta["size"]) == (5, 6, "5*6")
    by_name = {house["Name"]: house for house in item.meta["solution"].values()}
    assert (by_name["Bob"]["Nationality"], by_name["Bob"]["Color"]) == ("german", "yellow")
    assert (by_name["Peter"]["Color"], by_name["Peter"]["Food"]) == ("green", "spaghetti")
    assert by_name["Alice"]["Animal"] == "horse"


def test_prompt_holds_the_puzzle_and_the_form_of_the_reply(item: Item) -> None:
    assert item.prompt.startswith(PUZZLE.strip())
    assert item.prompt.endswith(
        GOLD.replace("Eric", BLANK).replace("Arnold", BLANK).replace("horse", BLANK).replace("cat", BLANK)
    )
    assert item.target == GOLD
    assert item.meta["solution"] == GRID


@pytest.mark.parametrize(
    "output",
    [
        "",
        "   \n",
        GOLD[:-1],
        GOLD[:-20],
        f"Here it is: {GOLD}",
        f"{GOLD}\nDone.",
        f"{GOLD}\n{GOLD}",
        f"[{GOLD}]",
        json.dumps(GOLD),
        json.dumps({"solution": GRID}),
        "null",
        "12",
        GOLD.replace('"', "'"),
        GOLD.replace("}, ", "},, "),
        json.dumps({"House 1": GRID["House 1"]}),
        json.dumps({**GRID, "House 3": GRID["House 1"]}),
        json.dumps({"house 1": GRID["House 1"], "House 2": GRID["House 2"]}),
        json.dumps({**GRID, "House 2": {"Name": "Arnold"}}),
        json.dumps({**GRID, "House 2": {"Name": "Arnold", "Animal": "cat", "Pet": "dog"}}),
        json.dumps({**GRID, "House 2": {"Name": "Arnold", "Animal": None}}),
        json.dumps({**GRID, "House 2": {"Name": "Arnold", "Animal": 2}}),
        json.dumps({**GRID, "House 2": {"Name": "Arnold", "Animal": ["cat"]}}),
        json.dumps({**GRID, "House 2": ["Arnold", "cat"]}),
        GOLD.replace('"Name": "Eric"', '"Name": NaN'),
        GOLD.replace('"Name": "Eric"', '"Name": "Arnold", "Name": "Eric"'),
        GOLD[:-1] + ', "House 2": {"Name": "Arnold", "Animal": "cat"}}',
        f"```json\n{GOLD}",
        f"```json\n{GOLD}\n```\n```json\n{GOLD}\n```",
        f"```python\n{GOLD}\n```",
        f"The grid:\n```json\n{GOLD}\n```",
        "{" * 100_000,
        '{"House 1": ' * 100_000,
        '{"House 1": ' + "9" * 5000 + "}",
    ],
)
def test_output_that_is_not_exactly_the_grid_has_no_answer(item: Item, output: str) -> None:
    assert parse(item, output, "answer") is None


@pytest.mark.parametrize(
    "output",
    [
        GOLD,
        f"\n  {GOLD}\n",
        json.dumps(GRID, indent=4),
        f"```json\n{json.dumps(GRID, indent=4)}\n```",
        f"```\n{GOLD}\n```",
        GOLD.upper().replace("HOUSE", "House").replace("NAME", "Name").replace("ANIMAL", "Animal"),
        GOLD.replace('"cat"', '" cat\\n"'),
        json.dumps({house: dict(reversed(GRID[house].items())) for house in reversed(GRID)}),
    ],
    ids=["plain", "blanks", "indented", "fenced", "fence without a tag", "upper case", "blanks in a value", "order"],
)
def test_layout_order_and_case_do_not_matter(item: Item, output: str) -> None:
    parsed = parse(item, output, "answer")
    assert parsed is not None
    assert parsed == parse(item, GOLD, "answer")
    assert score(item, parsed).correct


@pytest.mark.parametrize(
    ("cell", "partial"),
    [
        ("dog", 0.75),
        (BLANK, 0.75),
        ("", 0.75),
        ("horse", 0.75),
        ("cat or horse", 0.75),
        ("c at", 0.75),
        ("\ud800", 0.75),
    ],
)
def test_value_that_does_not_belong_there_is_a_wrong_cell(item: Item, cell: str, partial: float) -> None:
    parsed = parse(item, json.dumps({**GRID, "House 2": {"Name": "Arnold", "Animal": cell}}), "answer")
    assert parsed is not None
    parsed.encode("utf-8")
    outcome = score(item, parsed)
    assert (outcome.correct, outcome.partial) == (False, partial)


def test_grid_with_all_values_of_another_house_has_no_cell_right(item: Item) -> None:
    parsed = parse(item, json.dumps({"House 1": GRID["House 2"], "House 2": GRID["House 1"]}), "answer")
    assert parsed is not None
    assert score(item, parsed) == zebralogic.Score(False, 0.0)


@pytest.mark.parametrize(
    "output",
    [
        GOLD,
        f"Answer: {GOLD}\nI am sure.",
        f"Answer:\n{GOLD}",
        f"Answer: {json.dumps(GRID, indent=1)}",
        f"Answer: ```json {GOLD} ```",
        f"Answer: {GOLD.replace('cat', 'horse')}\nNo.\nAnswer: {GOLD}",
        f"So Answer: {GOLD}",
        f"Answer: {GOLD[:-2]}",
        "Answer:",
    ],
)
def test_cot_output_without_one_final_line_has_no_answer(item: Item, output: str) -> None:
    assert parse(item, output, "cot") is None


def test_cot_takes_the_final_line_whatever_the_reasoning_holds(item: Item) -> None:
    wrong = GOLD.replace("cat", "horse")
    parsed = parse(item, f"First I thought\n{wrong}\nbut no.\n\n**Answer:** {GOLD}\n", "cot")
    assert parsed == parse(item, GOLD, "answer")


def test_solved_rows_load_with_the_same_targets_and_without_the_solver(
    mixed: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank = load_benchmark(config(path="."), write(tmp_path, *mixed))
    records = [Record(f"row {number}", values) for number, values in enumerate(mixed, start=1)]
    filled = [dict(puzzle.filled().values) for puzzle in solved(records)]
    assert all(puzzle["solution"]["rows"][1][0] == "2" for puzzle in filled)
    assert all(puzzle["created_at"] == before["created_at"] for puzzle, before in zip(filled, mixed, strict=True))

    def unused(*_: Any) -> Any:
        raise AssertionError("a puzzle with answers was solved again")

    monkeypatch.setattr(zebralogic, "unique_solution", unused)
    again = load_benchmark(config(path="."), write(tmp_path, *filled))
    assert [item.target for item in again.items] == [item.target for item in blank.items]
    assert again.families().keys() == blank.families().keys()


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        (answers(["1", "Arnold", "horse"], ["2", "Eric", "cat"]), "the solution breaks clue 1"),
        (answers(["1", "Eric", "cat"], ["2", "Arnold", "horse"]), "the solution breaks clue 2"),
        (answers(["1", "Eric", "horse"], ["2", "Arnold", "horse"]), "Animal should be cat, horse in some order"),
        (answers(["1", "Eric", "horse"], ["2", "Bob", "cat"]), "Name should be Eric, Arnold in some order"),
        (answers(["1", "Eric", "horse"], ["2", "Arnold", BLANK]), "Animal should be cat, horse in some order"),
        (answers(["2", "Eric", "horse"], ["1", "Arnold", "cat"]), "rows should be the houses 1 to 2"),
        (answers(["1", "Eric", "horse"]), "column 'solution' should hold the header House, Name, Animal and 2 rows"),
        (answers(["1", "Eric"], ["2", "Arnold"]), "column 'solution' should hold"),
        (
            answers(["1", "horse", "Eric"], ["2", "cat", "Arnold"], header=("House", "Animal", "Name")),
            "column 'solution' should hold the header House, Name, Animal",
        ),
        (None, "column 'solution' should hold"),
        ({"rows": []}, "column 'solution' should hold"),
    ],
)
def test_answers_that_do_not_fit_the_puzzle_are_refused(solution: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        solved([Record("file, row 2", row(id="lgp-test-2x2-1", solution=solution))])
    assert "file, row 2, puzzle lgp-test-2x2-1" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"puzzle": PUZZLE.replace("cat lover", "cat hater")}, "clue 2 is not understood: 'The cat hater is in the"),
        ({"puzzle": PUZZLE.replace("`horse`", "`zebra`")}, "the Animal 'zebra' is not understood"),
        ({"puzzle": PUZZLE.replace("2. The cat lover", "2. Eric")}, "the clues contradict each other"),
        ({"puzzle": PUZZLE.split("2. The")[0]}, "the clues allow more than one grid"),
        ({"size": "2*3"}, r"size should be 2\*2, found '2\*3'"),
    ],
)
def test_unusable_row_is_named_with_file_row_and_puzzle(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write(tmp_path, row(), row(id="lgp-test-2x2-9", **changes))
    with pytest.raises(DataError, match=rf"{FILE}, row 2, puzzle lgp-test-2x2-9: {message}"):
        load_benchmark(config(path="."), tmp_path)


def test_row_without_a_puzzle_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"{FILE}, row 2: column 'puzzle' should hold text"):
        load_benchmark(config(path="."), write(tmp_path, row(), row(id="b", puzzle=None)))


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"params\.subset is unknown"):
        load_benchmark(config(subset="easy"), Path())
    with pytest.raises(ConfigError, match="Choose one of: answer, cot"):
        load_benchmark(config("letter"), Path())


def test_families_join_templates_and_leave_every_size_apart(zebra: Benchmark) -> None:
    size = {item.item_id: item.meta["size"] for item in zebra.items}
    families = zebra.families()
    assert all(len({size[item.item_id] for item in members}) == 1 for members in families.values())
    assert (len(families), max(map(len, families.values()))) == (971, 7)
    count = Counter(size[family] for family in families)
    assert (count["2*2"], count["2*3"]) == (22, 33)
    assert min(count[s] for s in count if s != "2*2") == 33
    assert Counter(pair.why for pair in zebra.joined) == {"renaming": 26, "template": 4}


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("3x2-2", "3x2-31", "renaming"),
        ("5x2-26", "5x2-1", "template"),  # names and vacations, the same forms of clue
    ],
)
def test_known_twins_are_one_family_with_the_reason(zebra: Benchmark, first: str, second: str, why: str) -> None:
    family = {item.item_id: item.family for item in zebra.items}
    ids = f"zebralogic/lgp-test-{first}", f"zebralogic/lgp-test-{second}"
    assert family[ids[0]] == family[ids[1]]
    assert why in {pair.why for pair in zebra.joined if {pair.first, pair.second} <= set(ids)}


def test_puzzle_with_renamed_categories_and_shuffled_clues_has_the_same_key_and_another_clue_does_not() -> None:
    changed = (
        PUZZLE.replace(
            "The people keep unique animals: `cat`, `horse`", "Each person has an occupation: `nurse`, `artist`"
        )
        .replace("1. Eric is in the first house.", "1. The person who is a nurse is in the first house.")
        .replace("2. The cat lover is in the second house.", "2. Arnold is in the second house.")
    )
    other = PUZZLE.replace("2. The cat lover is in the second", "2. The cat lover is not in the first")
    keys = []
    for text in (PUZZLE, changed, other):
        puzzle = parse_puzzle(text, "here")
        keys.append(same_up_to_renaming(puzzle, unique_solution(puzzle, "here")))
    assert keys[0] == keys[1] != keys[2]
    assert template(parse_puzzle(PUZZLE, "here")) != template(parse_puzzle(other, "here"))
