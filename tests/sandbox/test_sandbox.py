"""What a program and its tests make of each other: verdicts, values that cross, limits."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from backends import first

from softcontam.errors import ConfigError, SandboxError
from softcontam.sandbox import AssertTests, Limits, Sandbox, StdioTests, Submission, Verdict, execute
from softcontam.sandbox.backends import BACKENDS, Backend, choose
from softcontam.sandbox.cage import Cage

IMPORTS = "".join(f"from {name} import *\n" for name in ("collections", "decimal", "fractions", "datetime"))

PLAIN = (
    """
None; True; 2 ** 20000; -0.1; float('inf'); 1 + 2j; 'naïve \\ud800 \\n'; b'\\xff\\x00'; bytearray(b'a'); (1,); ()
[1, [2, (3, 'x')], {4}]; {'a': [1], (1, 2): {3: None}}; {1, 2, 'a'}; frozenset([1]); range(3, 9, 2); {1: 2}.keys()
Counter('aab'); OrderedDict([(1, 2)]); defaultdict(list, {1: [2]}); deque([1, 2]); Decimal('1.10'); Fraction(1, 3)
datetime(2020, 1, 2, 3, 4); date(2020, 1, 2); timedelta(days=1, seconds=2); int; NotImplemented; ...
""".strip()
    .replace("\n", "; ")
    .split("; ")
)

QUICK = Limits(cpu_s=1, wall_factor=1.5, memory_mib=512)


def run(program: str, tests: str, **kwargs: object) -> Verdict:
    return first().execute(Submission(program, AssertTests(tests), QUICK))


class TestVerdicts:
    @pytest.mark.parametrize(
        ("program", "tests", "category"),
        [
            ("def f(x): return x + 1", "assert f(1) == 2", "pass"),
            ("def f(x): return x", "assert f(1) == 2", "wrong"),
            ("def f(x): return 1 / 0", "assert f(1) == 2", "exception"),
            ("def f(x:", "assert f(1) == 2", "exception"),
            ("", "assert f(1) == 2", "exception"),
            ("def f(x): assert x == 2", "f(1)", "exception"),
            ("def f(x):\n while True: pass", "f(1)", "timeout"),
            ("while True: pass", "f(1)", "timeout"),
            ("import time\ndef f(x): time.sleep(99)", "f(1)", "timeout"),
            ("def f(x): return bytearray(2 ** 40)", "f(1)", "memory"),
            ("x = bytearray(2 ** 40)", "f(1)", "memory"),
            ("def f(x):\n while True: print('x' * 10 ** 5)", "f(1)", "output_limit"),
            ("import os\nos._exit(0)", "f(1)", "exception"),
        ],
    )
    def test_each_end_has_its_category(self, each: Sandbox, program: str, tests: str, category: str) -> None:
        verdict = each.execute(Submission(program, AssertTests(tests), QUICK))
        assert (verdict.category, verdict.backend) == (category, each.backend.name), verdict.detail

    def test_output_beyond_the_limit_is_noticed_however_fast_it_is_printed(self, each: Sandbox) -> None:
        program = "import sys\nsys.stdout.write('x' * 2 * 2 ** 20)\nsys.stdout.flush()\ndef f(): return 1"
        for _ in range(3):
            verdict = each.execute(Submission(program, AssertTests("assert f() == 1"), QUICK))
            assert verdict.category == "output_limit", verdict.detail

    def test_limits_of_a_problem_replace_only_what_they_state(self) -> None:
        program = "print('x' * 1_400_000)"
        tests = StdioTests((("", "x" * 1_400_000),))
        with Sandbox(first().backend.name, limits=Limits(output_kib=2048), workers=1) as roomy:
            assert roomy.execute(Submission(program, tests, cpu_s=2, memory_mib=300)).passed
        assert first().execute(Submission(program, tests, cpu_s=2)).category == "output_limit"

    def test_the_detail_names_the_failed_test_and_the_exception(self) -> None:
        assert "assert f(2) == 5" in run("def f(x): return x + 2", "assert f(1) == 3\nassert f(2) == 5").detail
        assert "ZeroDivisionError" in run("def f(x): return 1 / 0", "assert f(1) == 2").detail

    def test_tests_that_are_no_code_are_not_held_against_the_program(self) -> None:
        assert run("def f(x): return 1", "assert f(1) ==").category == "sandbox_error"

    @pytest.mark.parametrize("endless", ["while True: pass", "import time\ntime.sleep(99)", "9 ** 9 ** 9"])
    def test_tests_without_end_time_out_and_the_next_program_is_judged(self, each: Sandbox, endless: str) -> None:
        assert each.execute(Submission("", AssertTests(endless), QUICK)).category == "timeout"
        assert each.execute(Submission("def f(): return 1", AssertTests("assert f() == 1"))).passed

    def test_a_timeout_is_run_again_and_says_so(self) -> None:
        assert run("while True: pass", "f(1)").retried
        assert not run("def f(x): return x", "assert f(1) == 2").retried

    def test_a_program_that_ran_out_of_time_once_is_judged_by_its_second_run(self, monkeypatch: object) -> None:
        first_run, calls = Verdict("timeout", "", "x"), []

        class Slow(Sandbox):
            def __init__(self) -> None:
                self.backend = BACKENDS["unsafe"]
                self.cages = [self]  # type: ignore[list-item]

            def run(self, submission: Submission) -> Verdict:
                calls.append(submission)
                return first_run if len(calls) == 1 else Verdict("pass", "", "x")

        assert Slow().execute(Submission("", AssertTests(""))) == Verdict("pass", "", "x", retried=True)

    def test_execute_takes_one_text_or_several(self) -> None:
        first()
        assert execute("def f(x): return x", "assert f(1) == 1").passed
        assert execute("def f(x): return x", ["assert f(1) == 1", "assert f(2) == 3"]).category == "wrong"


class TestValues:
    @pytest.mark.parametrize("value", PLAIN)
    def test_plain_values_cross_both_ways(self, value: str) -> None:
        program = f"{IMPORTS}def give(): return {value}\ndef back(x): return x\n"
        same = "found == v and type(found) is type(v)"
        tests = f"{IMPORTS}v = {value}\nfor found in (give(), back(v)):\n    assert {same}, found"
        verdict = run(program, tests)
        assert verdict.passed, verdict.detail

    def test_not_a_number_stays_one(self) -> None:
        assert run("def f(): return float('nan')", "import math\nassert math.isnan(f())").passed

    @pytest.mark.parametrize(
        "made", ["(i for i in (1, 2))", "map(int, '12')", "iter([1, 2])", "zip([1, 2])", "{1: 1, 2: 2}.values()"]
    )
    def test_an_iterator_stays_one(self, made: str) -> None:
        listed = "[(1,), (2,)]" if "zip" in made else "[1, 2]"
        assert run(f"def f(): return {made}", f"assert list(f()) == {listed}\nassert f() != {listed}").passed

    def test_a_subclass_crosses_as_the_type_it_is_made_of(self) -> None:
        program = "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(): return P(1, 2)"
        assert run(program, "assert f() == (1, 2)\nassert type(f()) is tuple").passed

    def test_what_a_function_does_to_its_arguments_is_seen(self) -> None:
        program = "def f(xs, d, s):\n xs.sort(); d['a'] = 1; s.add(3); return None"
        tests = "xs, d, s = [2, 1], {}, {4}\nf(xs, d, s)\nassert (xs, d, s) == ([1, 2], {'a': 1}, {3, 4})"
        assert run(program, tests).passed

    def test_what_it_does_to_named_arguments_and_before_it_raises_is_seen(self) -> None:
        program = (
            "def f(xs, count=None):\n xs.append(1)\n if count is not None: count['a'] += 1\n else: raise KeyError('x')"
        )
        tests = (
            "from collections import defaultdict\nxs, count = [], defaultdict(int)\nf(xs=xs, count=count)\n"
            "assert xs == [1] and count == {'a': 1}\n"
            "try:\n    f(xs)\nexcept KeyError as e:\n    assert e.args == ('x',)\nassert xs == [1, 1]\n"
        )
        verdict = run(program, tests)
        assert verdict.passed, verdict.detail

    def test_functions_of_the_tests_can_be_handed_over(self) -> None:
        program = "def f(g, xs): return [g(x) for x in xs]"
        assert run(program, "assert f(lambda x: x * 2, [1, 2]) == [2, 4]\nassert f(str, [1]) == ['1']").passed

    def test_objects_of_the_program_are_handles_with_attributes_and_methods(self) -> None:
        program = (
            "class P:\n"
            "    def __init__(self, x): self.x = x\n"
            "    def double(self): return self.x * 2\n"
            "    def __len__(self): return 3\n"
            "    def __repr__(self): return f'P({self.x})'\n"
            "    def __getitem__(self, i): return [self.x, i]\n"
            "    def __iter__(self): return iter([1, 2])\n"
            "def f(p): return p.x + 1\n"
        )
        tests = (
            "p = P(4)\np.x = 5\nassert p.x == 5 and p.double() == 10 and len(p) == 3 and p[7] == [5, 7]\n"
            "assert repr(p) == 'P(5)' and list(p) == [1, 2] and f(p) == 6 and p == p and p != P(5) and 2 in p\n"
        )
        verdict = run(program, tests)
        assert verdict.passed, verdict.detail

    def test_an_exception_reaches_the_tests_as_the_builtin_of_its_name(self) -> None:
        program = "class Odd(Exception): pass\ndef f(x):\n raise ValueError('no') if x else Odd('odd')"
        tests = "try:\n    f(1)\nexcept ValueError as e:\n    assert str(e) == 'no'\nelse:\n    assert False\n"
        assert run(program, tests).passed
        assert "Odd: odd" in run(program, "f(0)").detail

    def test_an_exception_of_a_class_of_its_own_is_caught_as_the_nearest_builtin(self) -> None:
        program = "import json\nclass Odd(ValueError): pass\ndef f(x):\n if x: json.loads('{')\n raise Odd('odd')"
        tests = "for x in (0, 1):\n    try:\n        f(x)\n    except ValueError:\n        pass\n"
        assert run(program, tests).passed

    def test_what_stands_under_main_is_not_run(self) -> None:
        program = "def f(x): return x\nif __name__ == '__main__':\n    print(f(int(input())))"
        assert run(program, "assert f(1) == 1").passed

    def test_dataclasses_threads_and_the_null_device_work(self, each: Sandbox) -> None:
        if each.backend.name == "wasi":
            pytest.skip("WebAssembly has no threads and no devices")
        program = (
            "import dataclasses, os, threading, typing\n"
            "@dataclasses.dataclass\nclass P:\n    x: int\n"
            "    ys: typing.List[int] = dataclasses.field(default_factory=list)\n"
            "def f(n):\n    found = []\n"
            "    threads = [threading.Thread(target=found.append, args=(P(i).x,)) for i in range(n)]\n"
            "    for t in threads: t.start()\n    for t in threads: t.join()\n"
            "    with open(os.devnull, 'w') as null: print(found, file=null)\n    return sorted(found)\n"
        )
        verdict = each.execute(Submission(program, AssertTests("assert f(50) == list(range(50))")))
        assert verdict.passed, verdict.detail

    def test_names_of_modules_of_other_systems_and_of_set_up_code_are_no_modules(self) -> None:
        tests = AssertTests("winreg = 1\nassert f(winreg) == 1\nassert f(queue) == [9]", setup="queue = [9]")
        verdict = first().execute(Submission("def f(x): return x", tests))
        assert verdict.passed, verdict.detail

    def test_set_up_code_runs_with_the_program_and_its_names_are_seen(self) -> None:
        program = "class Node:\n    def __init__(self, v): self.v = v\ndef value(n): return n.v"
        tests = AssertTests("assert value(root) == 4", setup="root = Node(4)")
        assert first().execute(Submission(program, tests)).passed

    def test_an_entry_point_may_have_the_name_of_a_builtin_or_a_module(self) -> None:
        program = "def sum(a, b): return a * b\ndef queue(x): return x"
        tests = AssertTests("assert sum(3, 4) == 12\nassert queue(1) == 1", entry_points=("sum",))
        assert first().execute(Submission(program, tests)).passed
        assert first().execute(Submission(program, AssertTests("assert sum([3, 4]) == 7"))).passed

    def test_a_value_that_no_message_can_carry_is_named(self) -> None:
        verdict = run("def f(x): return x", "class Own: pass\nf(Own())")
        assert (verdict.category, "type Own" in verdict.detail) == ("exception", True)

    def test_a_slice_can_be_asked_for_and_half_a_character_stays_one(self) -> None:
        program = (
            "class Own:\n    def __getitem__(self, key): return [1, 2, 3][key]\n"
            "def f(): return Own()\ndef g(): return '\\ud83d\\ude00'"
        )
        assert run(program, "assert f()[:2] == [1, 2]\nassert len(g()) == 2").passed

    def test_the_detail_can_always_be_stored(self) -> None:
        assert run("def f(): raise Exception('\\ud800')", "f()").detail.encode()

    def test_random_numbers_and_the_order_of_sets_are_the_same_each_time(self) -> None:
        program = "import random\ndef f(): raise Exception(f'{random.random()} {list({str(i) for i in range(9)})}')"
        assert run(program, "f()").detail == run(program, "f()").detail


class TestInputAndOutput:
    def test_the_program_runs_once_per_case_and_words_are_compared(self, each: Sandbox) -> None:
        tests = StdioTests((("3\n1 2 3\n", "6\n"), ("1\n5", " 5 ")))
        program = "n = int(input())\nprint(sum(map(int, input().split())))"
        assert each.execute(Submission(program, tests, QUICK)).passed

    @pytest.mark.parametrize(
        ("program", "category", "detail"),
        [
            ("print(input(), 1)", "wrong", "2 words of output, expected 1"),
            ("print(int(input()) + 1)", "wrong", "word 1 of the output is '4', expected '3'"),
            ("x = input()\nprint(x)\ny = input()", "exception", "EOFError"),
            ("import sys\nprint(3)\nsys.exit(1)", "exception", "exit status 1"),
            ("while True: pass", "timeout", ""),
            ("x = [0] * 10 ** 12", "memory", "MemoryError"),
            ("while True: print('x' * 10 ** 6)", "output_limit", ""),
        ],
    )
    def test_what_goes_wrong_is_told_with_its_case(self, program: str, category: str, detail: str) -> None:
        verdict = first().execute(Submission(program, StdioTests((("3", "3"),)), QUICK))
        assert verdict.category == category
        assert "test 1 of 1" in verdict.detail
        assert detail in verdict.detail

    def test_a_clean_exit_and_sys_stdin_are_fine(self) -> None:
        program = "import sys\nprint(sys.stdin.read().strip())\nsys.exit(0)"
        assert first().execute(Submission(program, StdioTests((("3", "3"),)), QUICK)).passed


class TestManyAtOnce:
    def test_verdicts_come_in_the_order_of_the_programs_and_progress_counts_them(self) -> None:
        numbers = range(30)
        programs = [Submission(f"def f(): return {n % 3}", AssertTests("assert f() == 0")) for n in numbers]
        seen: list[tuple[int, int]] = []
        with Sandbox(first().backend.name, workers=3) as three:
            verdicts = three.execute_many(programs, lambda done, total: seen.append((done, total)))
        assert [verdict.passed for verdict in verdicts] == [n % 3 == 0 for n in numbers]
        assert seen == [(n + 1, 30) for n in numbers]

    def test_nothing_is_left_when_it_is_closed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with Sandbox(first().backend.name, workers=2) as two:
            two.execute_many([Submission("open('x', 'w')", AssertTests(""))] * 4)
            processes = [zygote.process for cage in two.cages for zygote in cage._zygotes or ()]
            assert processes
        assert all(process.poll() is not None for process in processes)
        assert list(tmp_path.iterdir()) == []

    def test_a_sandbox_whose_process_is_killed_starts_anew(self) -> None:
        with Sandbox(first().backend.name, workers=1) as one:
            assert one.execute(Submission("", AssertTests(""))).passed
            zygotes = one.cages[0]._zygotes
            assert zygotes is not None
            zygotes[0].process.kill()
            zygotes[0].process.wait()
            assert one.execute(Submission("", AssertTests(""))).passed

    def test_its_processes_live_as_long_as_it_does(self) -> None:
        with Sandbox(first().backend.name, workers=1) as one:
            used = set()
            for _ in range(3):
                assert one.execute(Submission("", AssertTests(""))).passed
                used.add(tuple(zygote.process.pid for zygote in one.cages[0]._zygotes or ()))
            assert len(used) == 1

    def test_programs_run_side_by_side_in_threads(self) -> None:
        with Sandbox(first().backend.name, workers=2) as two:
            asleep = Submission("import time\ntime.sleep(1.5)", AssertTests(""))
            two.execute_many([Submission("", AssertTests(""))] * 4)
            begun = time.monotonic()
            two.execute_many([asleep, asleep])
            assert time.monotonic() - begun < 2.7
        assert threading.active_count() < 50


class TestChoice:
    def test_the_first_that_works_is_taken_and_unsafe_only_with_permission(self) -> None:
        broken = {"bubblewrap": "broken", "landlock": "broken", "wasi": "broken"}
        assert choose("auto", False, lambda backend: None).name in BACKENDS
        assert choose("auto", True, lambda backend: broken.get(backend.name)).name == "unsafe"
        with pytest.raises(SandboxError, match=r"(?s)no sandbox works.*landlock: .*allow_unsafe=true"):
            choose("auto", False, lambda backend: broken.get(backend.name))
        with pytest.raises(ConfigError, match="allow_unsafe=true"):
            choose("unsafe", False, lambda backend: None)
        with pytest.raises(ConfigError, match="sandbox.backend=jail is unknown"):
            choose("jail", False, lambda backend: None)

    def test_a_back_end_that_does_not_start_says_why(self) -> None:
        silent = Backend("silent", lambda control, folder, limits: ["/bin/sh", "-c", "echo no luck >&2; exit 3"])
        with pytest.raises(SandboxError, match="no luck"):
            Cage(silent, Limits()).run(Submission("", AssertTests("")))

    def test_without_isolation_limits_still_hold(self) -> None:
        with Sandbox("unsafe", allow_unsafe=True, workers=1) as unsafe:
            for program, category in (("while True: pass", "timeout"), ("x = bytearray(2 ** 40)", "memory")):
                assert unsafe.execute(Submission(program, AssertTests(""), QUICK)).category == category
            assert unsafe.execute(Submission("import os\nx = os.getcwd()", AssertTests("assert x != '/'"))).passed


def test_the_working_folder_and_the_environment_are_private(each: Sandbox) -> None:
    program = "import os\nopen('a', 'w').write('x')\nfound = (os.listdir('.'), sorted(os.environ))"
    names = ["HOME", "LANG", "LC_CTYPE", "MALLOC_ARENA_MAX", "PATH", "PWD", "PYTHONHASHSEED"]
    tests = f"listed, names = found\nassert listed == ['a'], listed\nassert set(names) <= set({names}), names"
    verdict = each.execute(Submission(program, AssertTests(tests)))
    assert verdict.passed, verdict.detail
    assert not Path("a").exists()
