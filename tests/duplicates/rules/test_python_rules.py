import ast
import copy
import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from softcontam.benchmarks import Benchmark, Item, load_benchmark
from softcontam.benchmarks.python_code import fence, parse_block, same_code_key, task_prompt
from softcontam.config import BankConfig, BenchmarkConfig
from softcontam.duplicates.bank import BankRow
from softcontam.duplicates.rules import python_code
from softcontam.duplicates.rules.python_code import LEVELS, certify, rows
from softcontam.errors import ConfigError, DataError
from softcontam.sandbox import Sandbox

BANK = BankConfig("rules")


def made_item(code: str, task: str = "Write a function to do it.", tests: tuple[str, ...] = ("assert f(1)",)) -> Item:
    return Item(
        item_id="mbpp/x",
        benchmark="mbpp",
        family="mbpp/x",
        prompt=task_prompt(task, checks="\n".join(tests)),
        target=fence(code),
        tests=tests,
        meta={"task": task, "entry_point": "f", "imports": (), "setup": ""},
    )


def made(code: str, **changes: Any) -> dict[str, BankRow]:
    return {str(row.level): row for row in rows(BANK, [made_item(code, **changes)])}


def rewritten(code: str, level: str, seed: int = 0, share: float = 1.0) -> str | None:
    found = python_code.rewritten(code, level, str(seed), share=share)
    return None if found is None else found[0]


def forms(code: str) -> str:
    new = rewritten(code, "forms")
    assert new is not None
    return new


def outcome(code: str, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """What ``f`` returns or raises, and what it leaves of its arguments."""
    space: dict[str, Any] = {}
    exec(code, space)
    given = copy.deepcopy(arguments)
    function: Callable[..., Any] = space["f"]
    try:
        result = function(*given)
        result = list(result) if hasattr(result, "__next__") else result
        result = (type(result), repr(result))
    except Exception as error:
        result = (type(error), "")
    return result, given


def without_docstrings(code: str) -> str:
    """The code without what HumanEval says in docstrings, where renamed parameters are renamed too."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.unparse(tree)


SNIPPETS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "a list that has another name": (
        "def f(x):\n    y = x\n    y += [1]\n    x = x + [2]\n    y = y + [3]\n    return (x, y)\n",
        [([5],), ([],)],
    ),
    "a list that is kept elsewhere before it grows": (
        "def f(n):\n    out = []\n    kept = [out]\n    for i in range(n):\n        out.append(i)\n"
        "    return kept, out\n",
        [(3,), (0,)],
    ),
    "a loop name used after the loop": (
        "def f(n):\n    i = -1\n    out = []\n    for i in range(n):\n        out.append(i * 2)\n    return out, i\n",
        [(3,), (0,)],
    ),
    "a loop name that the next loop leaves unset": (
        "def f(n):\n    a = []\n    for i in range(n):\n        a.append(i)\n    while n:\n        n -= 1\n"
        "        for j in []:\n            i = j\n        a = a + [i]\n    return a\n",
        [(3,), (0,)],
    ),
    "inner and outer loop with one name": (
        "def f(n):\n    r = []\n    for i in range(n):\n        q = []\n        for i in range(2):\n"
        "            q.append(i)\n"
        "        r.append((i, q))\n    return r\n",
        [(3,), (0,)],
    ),
    "a comprehension inside a loop of the same name": (
        "def f(n):\n    r = []\n    for i in range(n):\n        q = [i * 3 for i in range(2)]\n"
        "        r.append((i, q))\n"
        "    return r\n",
        [(3,)],
    ),
    "a comprehension over the name it binds": (
        "def f(x):\n    x = [x for x in x if x]\n    y = sum([x for x in range(3)])\n    return x, y\n",
        [([1, 0, 2],), ([],)],
    ),
    "a global of the loop's name": (
        "i = 7\ndef f(n):\n    x = [i for i in range(n)]\n    return x\ndef g():\n    return i\n",
        [(3,)],
    ),
    "a comprehension's name that is global in the function": (
        "i = [4]\ndef f(n):\n    y = [i for i in i]\n    return (y, i, n)\n",
        [(3,)],
    ),
    "shadowed builtins": (
        "def f(sum, len):\n    any = []\n    for list in sum:\n        any.append(list)\n    set = 0\n"
        "    for x in sum:\n        set += 1\n    return any, set, len\n",
        [([1, 2], 3), ([], 0)],
    ),
    "a mutable default": (
        "def f(n, seen=[]):\n    seen += [n]\n    total = 0\n    for s in seen:\n        total += s\n"
        "    return total, seen\n"
        "def g():\n    return [f(i) for i in range(3)]\n",
        [(1,), (2, [5])],
    ),
    "a generator": (
        "def f(n):\n    x = []\n    for i in range(n):\n        x.append(i)\n        yield x\n    a = 1\n    b = n\n"
        "    yield a + b\n",
        [(3,), (0,)],
    ),
    "a lazy generator over a name that changes": (
        "def f(n):\n    k = 1\n    g = (i * k for i in range(n))\n    k = 5\n    r = list(g)\n    k = 7\n"
        "    return r, k\n",
        [(3,)],
    ),
    "early return": (
        "def f(x):\n    for v in x:\n        if v > 2:\n            return True\n    return False\n",
        [([1, 2],), ([1, 3, "a"],), (["a"],), ([],)],
    ),
    "a search for the first failure": (
        "def f(x):\n    for v in x:\n        for w in v:\n            if not w:\n                return False\n"
        "    return True\n",
        [([[1], [0]],), ([[1]],), ([],), ([1],)],
    ),
    "recursion": (
        "def f(n):\n    if n < 2:\n        return n\n    else:\n        return f(n - 1) + f(n - 2)\n",
        [(7,), (0,)],
    ),
    "functions that keep a name of the function around them": (
        "def f(n):\n    fs = []\n    for i in range(n):\n        fs.append(lambda: i)\n    total = 0\n    def add(v):\n"
        "        nonlocal total\n        total += v\n    a = 1\n    add(3)\n    total = total + a\n"
        "    return [g() for g in fs], total\n",
        [(3,), (0,)],
    ),
    "a call that reads a name through a closure": (
        "def f(n):\n    x = 0\n    def look():\n        return x\n    y = look()\n    x = 5\n    z = look()\n"
        "    return y, z\n",
        [(3,)],
    ),
    "keyword-only parameters": (
        "def f(n, *rest, key=2, **more):\n    r = n * key + len(rest)\n    return g(key=r, other=1, **more)\n"
        "def g(*, key, other):\n    return key - other\n",
        [(3,), (3, 4, 5)],
    ),
    "globals": (
        "count = 0\ndef f(n):\n    global count\n    count = 0\n    for i in range(n):\n        count += 1\n    a = 1\n"
        "    b = g()\n    count = 9\n    return a, b, count, g()\ndef g():\n    return count\n",
        [(3,)],
    ),
    "an error that leaves a list half filled": (
        "def f(x):\n    r = []\n    try:\n        for v in x:\n            r.append(1 // v)\n"
        "    except ZeroDivisionError:\n"
        "        r.append('end')\n    finally:\n        n = len(r)\n    return r, n\n",
        [([1, 2, 0, 3],), ([],), ([1],)],
    ),
    "an error between two statements of a try block": (
        "def f(x):\n    a = 0\n    try:\n        b = 1 // x\n        a = 1\n        t = 5 // x\n        return t\n"
        "    except ZeroDivisionError:\n        return a\n    finally:\n        a = 3\n",
        [(0,), (2,)],
    ),
    "conditions with values that are not bool": (
        "def f(a, b):\n    x = not (a or b)\n    y = not a and not b\n    z = a if not b else b\n    if a and b:\n"
        "        w = 1\n"
        "    else:\n        w = 2\n    return x, y, z, w, a and b, a != 1 and b != 1\n",
        [(0, []), (1, "s"), ([], 1), (1, 1)],
    ),
    "comparisons that have no opposite": (
        "def f(a, b):\n    if a < b:\n        r = 'less'\n    else:\n        r = 'not less'\n"
        "    t = a <= b and b <= a\n"
        "    return r, t, not (a < b or b < a), 0 < a < 3\n",
        [(1, 2), (float("nan"), 1.0), (frozenset({1}), frozenset({2})), (2, 2)],
    ),
    "chained comparisons with calls": (
        "calls = []\ndef g(v):\n    calls.append(v)\n    return v\ndef f(a, b):\n    del calls[:]\n"
        "    return g(a) < g(b) < g(3), 0 <= a < g(b) != 4, list(calls)\n",
        [(1, 2), (5, 1)],
    ),
    "sums of floats, lists and text": (
        "def f(x):\n    s = 0\n    for v in x:\n        s += v\n    t = sum(v for v in x)\n"
        "    u = sum([1 for v in x])\n"
        "    return s, t, u\n",
        [([0.1] * 10,), ([1, 2],), (["a"],), ([[1]],)],
    ),
    "text and numbers that grow": (
        "def f(x):\n    s = ''\n    n = 0\n    m = 1\n    for v in x:\n        s += v\n        n = n + 1\n"
        "        m *= len(v)\n"
        "    while n:\n        n //= 2\n    return s, n, m\n",
        [(["a", "bc"],), ([1],), ([],)],
    ),
    "a number times a list": (
        "def f(y):\n    x = 1\n    x *= y\n    z = x\n    x *= 2\n    return x, z\n",
        [([4],), (3,)],
    ),
    "dicts and sets": (
        "def f(x):\n    d = {}\n    for i, v in enumerate(x):\n        d[v] = i\n    s = set()\n    for v in x:\n"
        "        if v:\n            s.add(v % 3)\n    e = {k: v for v, k in d.items()}\n    return d, sorted(s), e\n",
        [([3, 1, 3],), ([],), ([[]],)],
    ),
    "a result that reads itself": (
        "def f(x):\n    r = []\n    for v in x:\n        if v not in r:\n            r.append(v)\n    c = {}\n"
        "    for v in x:\n"
        "        c[v] = c.get(v, 0) + 1\n    return r, c\n",
        [([1, 1, 2],), ([],)],
    ),
    "a loop over a list that it changes": (
        "def f(x):\n    y = []\n    for v in x:\n        y.append(x.pop())\n    return x, y\n",
        [([1, 2, 3, 4],), ([],)],
    ),
    "walrus, del and unpacking": (
        "def f(x):\n    y = [z for v in x if (z := v + 1)]\n    a, b = 1, x\n    c = 0\n    del c\n    c = b\n"
        "    (d, *e) = [1, 2]\n    return y, a, c, d, e\n",
        [([1],), ([1, 2],)],
    ),
    "loops with else, break and continue": (
        "def f(x):\n    r = []\n    for v in x:\n        if v == 3:\n            break\n        r.append(v)\n"
        "    else:\n"
        "        r.append('all')\n    n = 0\n    for v in x:\n        if v < 0:\n            continue\n        n += 1\n"
        "    return r, n\n",
        [([1, 3],), ([1, -1],), ([],)],
    ),
    "independent definitions with defaults and classes": (
        "def one(n=3):\n    return n\ndef two(n=one()):\n    return n\nclass A:\n    def m(self):\n        return 1\n"
        "class B(A):\n    def m(self):\n        return 2\ndef f(n):\n"
        "    return one() + two() + B().m() + A().m() * n\n",
        [(3,)],
    ),
    "a class with attributes of a parameter's name": (
        "class P:\n    value = 4\n    def __init__(self, value, n):\n        self.n = n\n        if value:\n"
        "            self.value = value\ndef f(value):\n    p = P(value, n=2)\n    return p.value + p.n + P.value\n",
        [(3,), (0,)],
    ),
    "bounds and counters that loops change": (
        "def f(n):\n    r = []\n    for i in range(n):\n        n = n - 1\n        r.append((i, n))\n    j = 0\n"
        "    while j < len(r):\n        r.pop()\n        j += 1\n    k = 0\n    while k < 5:\n        if k == 2:\n"
        "            k += 2\n            continue\n        r.append(k)\n        k += 1\n    return r, j, k, n\n",
        [(4,), (0,), ("a",)],
    ),
    "an iterator that two expressions use up": (
        "def f(n):\n    it = iter(range(n))\n    a = list(zip(it, 'ab'))\n    b = sum(it)\n    c = [v for v in it]\n"
        "    d = next(it, None)\n    return a, b, c, d\n",
        [(5,), (0,)],
    ),
    "StopIteration inside a sum": (
        "def f(x):\n    it = iter(x)\n    n = 0\n    for v in range(9):\n        n += len(next(it))\n    return n\n",
        [(["a"],)],
    ),
    "operands that do not commute": (
        "def f(a, b):\n    c = a + b\n    d = 'x' + a\n    e = [1] * 2 + [b]\n    g = 2 * a + d\n"
        "    return c, d, e, g, a < b\n",
        [("p", "q"), (1, 2)],
    ),
    "a list that grows under another name while a loop counts": (
        "def f(x):\n    t = x\n    u = [x]\n    for i in range(len(x)):\n        if i < 2:\n            t *= 2\n"
        "            u[0] *= 2\n    return x, t, u, i\n",
        [([1, 2],), ([1],)],
    ),
    "a loop that is counted by a dict it fills": (
        "def f(d):\n    r = 0\n    for i in range(len(d)):\n        d[i + 10] = i\n        r = r + i\n"
        "    return d, r\n",
        [({1: 1, 2: 2},), ([1] * 20,)],
    ),
    "a key function that is made while its list is": (
        "log = []\ndef by(v):\n    log.append(v)\n    return abs\ndef f(x):\n    del log[:]\n"
        "    r = sorted([by(v)(v) for v in x], key=by(0))\n    return r, list(log)\n",
        [([-3, 1],), (["a"],)],
    ),
    "a builtin of another meaning that keeps a generator": (
        "def f(n, sum=iter):\n    k = 1\n    g = sum(i * k for i in range(n))\n    k = 0\n    for k in range(3):\n"
        "        pass\n    return list(g), k\n",
        [(3,)],
    ),
    "an iterator that is measured, shown and used up": (
        "def f(x):\n    it = iter(x)\n    a = 3 in it\n    b = list(it)\n    c = a\n    d = len(b)\n"
        "    return a, b, c, d\n",
        [([1, 3, 5],), ([],)],
    ),
    "a continue in a counted loop": (
        "def f(x):\n    r = []\n    n = len(x)\n    for i in range(n):\n        if i == 1:\n            continue\n"
        "        r = r + [i]\n    return r\n",
        [([1, 2, 3],), ([],)],
    ),
    "a counter that its loop sets": (
        "def f(x):\n    r = 0\n    n = len(x)\n    for i in range(n):\n        i = i + 5\n        r = r + i\n"
        "    j = 0\n    while j < n:\n        r = r + j\n        if r > 9:\n            j = j + 2\n        j = j + 1\n"
        "    return r\n",
        [([1, 2, 3],), ([],)],
    ),
    "keys and values that are made in an order": (
        "log = []\ndef g(v):\n    log.append(v)\n    return v\ndef f(x):\n    del log[:]\n    d = {}\n"
        "    for v in x:\n        d[g(v)] = g(-v)\n    e = {g(v): g(v + 9) for v in x}\n    return d, e, list(log)\n",
        [([1, 2],), ([],)],
    ),
    "a list that a call makes longer": (
        "def g(y):\n    y.append(1)\n    return 5\ndef f(x):\n    y = [x]\n    a = g(y)\n    b = len(y)\n"
        "    return a, b, len(y) + g(y), 0 < g(y) < len(y)\n",
        [(1,)],
    ),
    "two statements that fail in their own ways": (
        "def f(x, y):\n    a = 1 // x\n    b = int(y)\n    return a, b, 2 // x < int(y)\n",
        [(0, "a"), (1, "a"), (0, "1"), (1, "1")],
    ),
    "names shown as text without a keyword": (
        "def f(total):\n    item = total + 1\n    return f'{item=} {total}' + f'{total = }'\n",
        [(3,)],
    ),
    "what a try block has done when it fails": (
        "def f(x):\n    a = 0\n    try:\n        r = []\n        for v in x:\n            r.append(1 // v)\n"
        "        a, b = 1, 5 // x[0]\n        s = [7 // (v - 1) for v in x]\n        t = a + b\n        a = t\n"
        "    except (ZeroDivisionError, IndexError):\n        return r, a\n    return r, a, s\n",
        [([1, 0],), ([],), ([2, 3],), ([1, 1],)],
    ),
    "names shown as text": (
        "def f(total):\n    item = total + 1\n    return f'{item=} {total}' + '{item}'.format(item=item)\n",
        [(3,)],
    ),
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_code_does_the_same_after_every_rewrite(name: str) -> None:
    code, inputs = SNIPPETS[name]
    for level in LEVELS:
        for seed in range(6):
            new = rewritten(code, level, seed, share=1.0 if seed == 0 else 0.6)
            if new is None:
                continue
            for arguments in inputs:
                assert outcome(new, arguments) == outcome(code, arguments), (level, new)


def test_code_that_would_nest_too_deep_has_no_other_form() -> None:
    branches = "".join(f"    x = g(x)\n    if x == {n}:\n        return {n}\n" for n in range(120))
    new = rewritten(f"def g(x):\n    return x\ndef f(x):\n{branches}    return x\n", "forms")
    assert new is None or outcome(new, (7,)) == outcome(f"def f(x):\n{branches}    return x\n", (7,))


@pytest.mark.parametrize("call", ["eval('n')", "locals()['n']", "vars()['n']", "f.__code__.co_varnames"])
def test_code_that_looks_up_its_own_names_is_left_alone(call: str) -> None:
    code = f"def f(n):\n    out = []\n    for i in range(n):\n        out.append(i)\n    return out, {call}\n"
    assert [rewritten(code, level) for level in LEVELS] == [None] * 4


def test_an_appending_loop_becomes_a_comprehension_and_back() -> None:
    loop = (
        "def f(x):\n    kept = []\n    for v in x:\n        if v > 1:\n            kept.append(v * 2)\n"
        "    return kept\n"
    )
    comprehension = forms(loop)
    assert "kept = [v * 2 for v in x if v > 1]" in comprehension
    assert ".append(v * 2)" in forms(comprehension)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("c = 0\n    for v in x:\n        if v:\n            c += 1\n    return c", "c = sum(1 for v in x if v)"),
        ("for v in x:\n        if v > 1:\n            return True\n    return False", "return any(v > 1 for v in x)"),
        ("for v in x:\n        if v == 1:\n            return False\n    return True", "return all(v != 1 for v in x)"),
        ("return any(v > 1 for v in x)", "if v > 1:\n            return True\n    return False"),
        ("if x:\n        return 1\n    return 2", "return 1 if x else 2"),
        ("y = 1 if x else 2\n    return y + 1", "if x:\n        y = 1\n    else:\n        y = 2"),
        ("y = 0\n    y += len(x)\n    return [y]", "y = y + len(x)"),
        ("return [0 < x < 9]", "0 < x and x < 9"),
        ("return [0 < x and x < 9]", "0 < x < 9"),
        ("return [not (x or x == 2)]", "not x and"),
        ("if x:\n        print(1)\n    else:\n        print(2)\n        print(3)", "if not x:\n        print(2)"),
        ("return x + 1", "= x + 1\n    return "),
        ("y = x + 1\n    return y", "return x + 1"),
    ],
)
def test_each_form_has_another_one(body: str, expected: str) -> None:
    assert expected in forms(f"def f(x):\n    {body}\n")


def test_a_list_parameter_is_never_changed_in_place_instead_of_replaced() -> None:
    code = "def f(x, y):\n    x += y\n    x = x + y\n    return len(x) + 1\n"
    assert "x += y\n    x = x + y" in forms(code)


def test_renaming_spares_what_callers_and_texts_can_see() -> None:
    code = (
        "import math as m\nLIMIT = 3\ndef helper(a, step=1):\n    return a + step\n"
        "def f(numbers, n, shown):\n    best = helper(numbers[0], step=2)\n"
        "    return best + m.floor(n) + LIMIT + shown\n"
    )
    tests = ("assert f([1], 2, shown=3) == 8",)
    row = made(code, task="Write a function to find the nth of some numbers, given n.", tests=tests)["rename"]
    new = parse_block(row.completion) or ""
    assert same_code_key(new) == same_code_key(code)
    for kept in ("import math as m", "LIMIT", "def helper(", "step=2", "def f(", " n, shown):"):
        assert kept in new, kept
    assert "numbers" not in new
    assert "best" not in new
    assert f"`{new[new.index('def f(') :].splitlines()[0]}`" in row.prompt


def test_an_item_has_no_row_at_a_level_where_nothing_changes() -> None:
    assert made("def f(n):\n    return n", task="Return n.") == {}
    assert set(made("def f(values):\n    return values")) == {"rename"}


def test_a_row_is_unrun_until_its_tests_have_passed() -> None:
    with pytest.raises(ConfigError, match="no programs"):
        certify([], Benchmark("gsm8k", (), 0.0, "cot", None, None), Sandbox.__new__(Sandbox))  # type: ignore[arg-type]
    row = made("def f(values):\n    return values + 1")["rename"]
    assert row.judge == "unrun"


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"levels": ["renamed"]}, "rename, forms"),
        ({"levels": []}, "choose from"),
        ({"per_level": 0}, "at least 1"),
        ({"per_level": True}, "at least 1"),
        ({"level": ["forms"]}, "unknown params.level"),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        rows(BankConfig("rules", params=params), [])


def test_an_item_that_is_no_python_task_is_named() -> None:
    item = replace(made_item("def f(n):\n    return n"), meta={"task": "Return n."})
    with pytest.raises(DataError, match="mbpp/x"):
        rows(BANK, [item])


def test_further_rows_of_a_level_differ() -> None:
    code = (
        "def f(x):\n    a = 0\n    b = len(x)\n    for v in x:\n        if v:\n            a += 1\n"
        "    return a if a else b\n"
    )
    found = rows(BankConfig("rules", params={"levels": ["forms", "rename"], "per_level": 3}), [made_item(code)])
    assert len(found) == 6
    assert len({row.completion for row in found}) == len({row.row_id for row in found}) == 6


@pytest.fixture(scope="module")
def mbpp(data_dir: Path) -> Benchmark:
    config = BenchmarkConfig(name="mbpp", module="mbpp", path="mbpp/sanitized", params={"subset": "sanitized"})
    return load_benchmark(replace(config, response_style="answer"), data_dir)


@pytest.fixture(scope="module")
def humaneval(data_dir: Path) -> Benchmark:
    config = BenchmarkConfig(name="humaneval", module="humaneval", path="openai_humaneval/openai_humaneval")
    return load_benchmark(replace(config, response_style="answer"), data_dir)


def test_rows_parse_back_and_change_what_their_level_says(mbpp: Benchmark, humaneval: Benchmark) -> None:
    for benchmark in (mbpp, humaneval):
        items = {item.item_id: item for item in benchmark.items[:40]}
        found = rows(BANK, list(items.values()))
        assert {row.level for row in found} == set(LEVELS)
        for row in found:
            item = items[row.item_id]
            code, original = benchmark.parse(item, row.completion), parse_block(item.target) or ""
            assert code is not None
            keys = {same_code_key(without_docstrings(one)) for one in (code, original)}
            assert (len(keys) == 1) == (row.level == "rename"), row.row_id


def test_the_task_of_mbpp_is_reworded_only_where_that_is_wanted(mbpp: Benchmark) -> None:
    own = rows(BankConfig("rules", params={"task_text": "own"}), mbpp.items[:20])
    assert all(item.text in row.prompt for item in mbpp.items[:20] for row in own if row.item_id == item.item_id)
    assert [row.completion for row in own] == [row.completion for row in rows(BANK, mbpp.items[:20])]


def test_a_prompt_of_humaneval_is_the_start_of_its_completion(humaneval: Benchmark) -> None:
    for row in rows(BANK, humaneval.items[:40]):
        start = parse_block(row.prompt)
        assert start is not None
        assert (parse_block(row.completion) or "").startswith(start)


def test_rows_pass_their_items_tests_and_a_broken_one_is_rejected(mbpp: Benchmark) -> None:
    found = rows(BANK, mbpp.items[:12])
    broken = replace(found[0], row_id="broken", completion=fence("def f():\n    return None"))
    empty = replace(found[0], row_id="empty", completion="no code")
    with Sandbox(workers=1) as sandbox:
        passed, rejected = certify([*found, broken, empty], mbpp, sandbox)
        assert {row.judge for row in passed} == {f"tests passed ({sandbox.backend.name})"}
    assert [row.row_id for row in passed] == [row.row_id for row in found]
    reasons = {one.row.row_id: one.reason for one in rejected}
    assert set(reasons) == {"broken", "empty"}
    assert "code block" in reasons["empty"]
    assert "exception" in reasons["broken"] or "wrong" in reasons["broken"]


def test_rows_are_the_same_in_another_process(mbpp: Benchmark, data_dir: Path) -> None:
    script = (
        "import sys, hashlib\nfrom pathlib import Path\nfrom softcontam.benchmarks import load_benchmark\n"
        "from softcontam.config import BankConfig, BenchmarkConfig\n"
        "from softcontam.duplicates.rules.python_code import rows\n"
        "config = BenchmarkConfig(name='mbpp', module='mbpp', path='mbpp/sanitized', response_style='answer')\n"
        "items = load_benchmark(config, Path(sys.argv[1])).items[:30]\n"
        "print(hashlib.sha256(repr(rows(BankConfig('rules'), items)).encode()).hexdigest())\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script, str(data_dir)],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.strip() == hashlib.sha256(repr(rows(BANK, mbpp.items[:30])).encode()).hexdigest()
