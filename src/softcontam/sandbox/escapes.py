"""Attempts to get out of the sandbox or to be scored as right without being right.

``python -m softcontam.sandbox escapes`` runs them here. Each is a program that means harm and tells about it in the text
of an exception, or by a trace outside: a secret read, a file made, a connection, a process killed. Each is also a wrong
answer: what passes its tests has escaped as well.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

from softcontam.sandbox.pool import Sandbox
from softcontam.sandbox.verdict import AssertTests, Limits, Submission, Verdict

LIMITS = Limits(cpu_s=2, wall_factor=2, memory_mib=512, output_kib=256, files_mib=8)
"""Limits that the attempts are run with."""

SQUARES = "assert f(3) == 9\nassert f(4) == 16"
"""What ``f`` has to do; none of the programs does."""

_TELL = '''
import os, sys, time, signal, gc
for _name in ("ctypes", "socket", "resource"):  # an interpreter may lack them, as that of WebAssembly does
    try:
        globals()[_name] = __import__(_name)
    except ImportError:
        globals()[_name] = None
def tell(harm):
    raise Exception("ESCAPED " + str(harm)[:150])
def tried(*actions):
    """Do all of them; tell what the first that works gives."""
    for action in actions:
        try:
            found = action()
        except BaseException:
            continue
        if found:
            tell(found)
'''


@dataclass(frozen=True)
class Escape:
    """One attempt. ``program`` may name @SECRET@, @OUTSIDE@, @TCP@, @UDP@, @UNIX@, @VICTIM@ of the :class:`World`.

    ``cheats``: means no harm to the machine, only to the score, and may be run without isolation.
    """

    name: str
    program: str
    tests: str = SQUARES
    cheats: bool = False
    entry_points: tuple[str, ...] = ("f",)


@dataclass
class World:
    """What an attempt may harm: a file with a secret, a place to write to, servers, a process."""

    folder: Path
    secret: str
    servers: Mapping[str, socket.socket]
    victim: subprocess.Popen[bytes]
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def secret_file(self) -> Path:
        """The file that holds the secret."""
        return self.folder / "secret.txt"

    def harm(self) -> str | None:
        """What has happened to it so far, or None."""
        file = self.secret_file
        if not file.exists() or file.read_text() != self.secret or file.stat().st_mode & 0o777 != 0o600:
            return "changed a file outside"
        made = [path.name for path in self.folder.iterdir() if path.name not in ("secret.txt", "unix", "datagram")]
        if made:
            return f"made {made[0]} outside"
        if self.victim.poll() is not None:
            return "ended another process"
        for name, server in self.servers.items():
            with contextlib.suppress(BlockingIOError):
                if name in ("udp", "datagram"):
                    server.recv(1)
                else:
                    server.accept()
                return f"reached a {name} socket"
        return None


@dataclass(frozen=True)
class Attempt:
    """How one attempt ended: ``escaped`` is what it achieved, or None."""

    escape: Escape
    verdict: Verdict
    escaped: str | None


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Set the world up in the user's home (or the temporary folder), and clean it away."""
    home = Path.home() if os.access(Path.home(), os.W_OK) else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix=".softcontam-escapes-", dir=home) as name, contextlib.ExitStack() as stack:
        folder, secret = Path(name), "SECRET" + secrets.token_hex(8)
        (folder / "secret.txt").write_text(secret)
        (folder / "secret.txt").chmod(0o600)
        kinds: dict[str, tuple[int, int, Any]] = {
            "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "datagram": (socket.AF_UNIX, socket.SOCK_DGRAM, str(folder / "datagram")),
            "unix": (socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "unix")),
            "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, "\0softcontam-" + secret),
        }
        servers = {}
        for kind, (family, type_, address) in kinds.items():
            servers[kind] = stack.enter_context(socket.socket(family, type_))
            servers[kind].bind(address)
            servers[kind].setblocking(False)
            if type_ == socket.SOCK_STREAM:
                servers[kind].listen()
        victim = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        names = {
            "@SECRET@": str(folder / "secret.txt"),
            "@OUTSIDE@": str(folder / "made"),
            "@TCP@": str(servers["tcp"].getsockname()[1]),
            "@UDP@": str(servers["udp"].getsockname()[1]),
            "@UNIX@": str(folder / "unix"),
            "@DATAGRAM@": str(folder / "datagram"),
            "@ABSTRACT@": "softcontam-" + secret,
            "@VICTIM@": str(victim.pid),
        }
        yield World(folder, secret, servers, victim, names)


def attempt(escape: Escape, sandbox: Sandbox) -> Attempt:
    """Run one attempt in a world of its own."""
    with world() as around:
        program = _TELL + dedent(escape.program)
        for name, value in around.names.items():
            program = program.replace(name, value)
        tests = AssertTests(escape.tests, entry_points=escape.entry_points)
        os.environ["SOFTCONTAM_TEST_SECRET"] = around.secret
        try:
            verdict = sandbox.execute(Submission(program, tests, LIMITS))
        finally:
            del os.environ["SOFTCONTAM_TEST_SECRET"]
        told = re.search(r"ESCAPED (.*)", verdict.detail)
        if told or "daemon" in escape.name:
            time.sleep(0.5)  # for what shows a little later: a process that ends, a file that is written
        read = around.secret in verdict.detail or "root:x:" in verdict.detail
        escaped = (
            ("was scored as right" if verdict.passed else None)
            or around.harm()
            or ("read a secret" if read else None)
            or (told[1] if told else None)
        )
        return Attempt(escape, verdict, escaped)


def _attempts(text: str) -> Sequence[Escape]:
    """Programs from one text: ``## name``, then the code; names that begin with ``score`` only cheat."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
    made = []
    for name, code in zip(parts[::2], parts[1::2], strict=True):
        program, _, tests = code.partition("# tests\n")
        made.append(Escape(name.strip(), program, tests or SQUARES, name.startswith("score")))
    return made


ESCAPES: Sequence[Escape] = _attempts(r"""
## read /etc/passwd: open, io, os, pathlib
import io, pathlib
def f(x):
    p = "/etc/passwd"
    tried(lambda: open(p).read(), lambda: io.FileIO(p).read(200), lambda: os.read(os.open(p, 0), 200),
          lambda: pathlib.Path(p).read_text(), lambda: io.open_code(p).read(200))

## read /etc/passwd: import machinery, linecache, mmap, symlink, hard link
import importlib.machinery, linecache, mmap
def f(x):
    p = "/etc/passwd"
    def linked(make):
        make(p, "copy")
        return open("copy").read()
    tried(lambda: importlib.machinery.SourceFileLoader("a", p).get_data(p), lambda: "".join(linecache.getlines(p)),
          lambda: mmap.mmap(os.open(p, 0), 0, prot=1)[:200], lambda: linked(os.symlink), lambda: linked(os.link),
          lambda: linked(__import__("shutil").copyfile))

## read a file of the home: open, relative path, descriptor of a folder, ctypes
def f(x):
    p = "@SECRET@"
    libc = ctypes.CDLL(None)
    def by_libc():
        buffer = ctypes.create_string_buffer(200)
        libc.read(libc.open(p.encode(), 0), buffer, 200)
        return buffer.value
    tried(lambda: open(p).read(), lambda: open("../" * 20 + p[1:]).read(),
          lambda: os.read(os.open(p[1:], 0, dir_fd=os.open("/", 0)), 200), by_libc)

## read a file of the home through /proc
def f(x):
    p = "@SECRET@"
    roots = ["/proc/self/root", "/proc/1/root", f"/proc/{os.getppid()}/root", "/proc/@VICTIM@/root", "/proc/self/cwd/../.."]
    tried(*(lambda root=root: open(root + p).read() for root in roots))

## read the environment
def f(x):
    def of(path):
        return "SOFTCONTAM_TEST_SECRET" in open(path).read()
    tried(lambda: os.environ.get("SOFTCONTAM_TEST_SECRET"), lambda: of("/proc/self/environ"),
          lambda: of(f"/proc/{os.getppid()}/environ"), lambda: of("/proc/1/environ"))

## read: list the home
def f(x):
    folder = os.path.dirname("@SECRET@")
    tried(lambda: os.listdir(folder), lambda: [e.name for e in os.scandir(folder)], lambda: __import__("glob").glob(folder + "/*"))

## run a program: system, popen, subprocess, exec, spawn
import posix, subprocess
def f(x):
    line = "/usr/bin/touch @OUTSIDE@"
    tried(lambda: posix.system(line) == 0, lambda: os.popen(line).close() is None, lambda: subprocess.run(line, shell=True).returncode == 0,
          lambda: os.posix_spawn("/bin/sh", ["sh", "-c", line], {}), lambda: os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-c", line]) == 0,
          lambda: os.posix_spawn(sys.executable, ["python", "-c", "1"], {}))
    os.execv("/bin/sh", ["sh", "-c", line])

## run a program: reload of os after its functions are gone
import importlib
for name in ("system", "fork", "kill", "popen"):
    if hasattr(os, name):
        delattr(os, name)
os = importlib.reload(os)
import posix
def f(x):
    tried(lambda: os.system("/usr/bin/touch @OUTSIDE@") == 0, lambda: sys.modules["posix"].system("/usr/bin/touch @OUTSIDE@") == 0)

## run a program: ctypes, raw system calls
def f(x):
    libc = ctypes.CDLL(None)
    args = (ctypes.c_char_p * 4)(b"sh", b"-c", b"/usr/bin/touch @OUTSIDE@", None)
    tried(lambda: libc.system(b"/usr/bin/touch @OUTSIDE@") == 0)
    libc.syscall(59, b"/bin/sh", args, None)
    libc.syscall(322, -100, b"/bin/sh", args, None, 0)
    libc.execve(b"/bin/sh", args, None)

## processes: fork bomb
def f(x):
    made = 0
    while made < 300:
        child = os.fork()
        if child == 0:
            time.sleep(1)
            os._exit(0)
        made += 1
    tell(f"made {made} processes")

## processes: clone and vfork by raw system calls
def f(x):
    libc = ctypes.CDLL(None)
    for number, arguments in ((57, ()), (58, ()), (56, (17, 0, 0, 0, 0)), (435, (b"\0" * 88, 88))):
        if number == 58:
            continue
        pid = libc.syscall(number, *arguments)
        if pid == 0:
            os._exit(0)
        if pid > 0:
            tell(f"system call {number} made a process")

## processes: multiprocessing
import multiprocessing
def f(x):
    with multiprocessing.Pool(4) as pool:
        tell(pool.map(abs, [1, 2]))

## processes: thousands of threads
import threading
def f(x):
    for _ in range(5000):
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
    tell("5000 threads")

## processes: leave a daemon behind
def f(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                try:
                    open("@OUTSIDE@", "a").write("alive")
                except OSError:
                    pass
                time.sleep(0.05)
        os._exit(0)
    time.sleep(0.3)
    tell("left a daemon")

## processes: a thread that goes on as a daemon
import threading
def forever():
    while True:
        try:
            open("@OUTSIDE@", "a").write("alive")
        except BaseException:
            pass
        time.sleep(0.01)
threading.Thread(target=forever, daemon=False).start()
def f(x):
    return 9

## network: TCP
def f(x):
    import urllib.request
    tried(lambda: socket.create_connection(("127.0.0.1", @TCP@), 1), lambda: urllib.request.urlopen("http://127.0.0.1:@TCP@", timeout=1))

## network: UDP
def f(x):
    tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", @UDP@)))

## network: unix sockets
def f(x):
    def reach(address):
        s = socket.socket(socket.AF_UNIX)
        s.connect(address)
        return True
    tried(lambda: reach("@UNIX@"), lambda: reach("\0@ABSTRACT@"))

## network: raw system calls, netlink, vsock
def f(x):
    libc = ctypes.CDLL(None)
    for family in (1, 2, 10, 16, 17, 40):
        if libc.syscall(41, family, 1 if family in (1, 2, 10, 40) else 3, 0) >= 0:
            tell(f"a socket of family {family}")

## network: connect a socket of a socketpair elsewhere
def f(x):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    tried(lambda: a.sendto(b"x", "@DATAGRAM@"), lambda: a.sendmsg([b"x"], [], 0, "@DATAGRAM@"),
          lambda: a.connect("@UNIX@") is None, lambda: a.sendto(b"x", "@UNIX@"), lambda: a.bind("here") is None,
          lambda: a.sendto(b"x", "\0@ABSTRACT@"))

## signals: kill the parent and others
def f(x):
    tried(lambda: os.kill(@VICTIM@, 9) is None)
    tried(lambda: os.kill(os.getppid(), 9) is None, lambda: os.killpg(os.getpgid(os.getppid()), 9) is None, lambda: os.kill(-1, 0) is None,
          lambda: os.kill(0, 0) is None)

## signals: raw system calls, pidfd, queue, timers
def f(x):
    libc = ctypes.CDLL(None)
    for number, arguments in ((62, (@VICTIM@, 9)), (200, (@VICTIM@, 9)), (234, (@VICTIM@, @VICTIM@, 9)), (434, (@VICTIM@, 0)),
                              (129, (@VICTIM@, 9, b"\0" * 128)), (297, (@VICTIM@, @VICTIM@, 9, b"\0" * 128))):
        if libc.syscall(number, *arguments) >= 0:
            tell(f"system call {number}")

## signals: let the kernel send them (F_SETOWN, F_SETSIG)
import fcntl
def f(x):
    a, b = socket.socketpair()
    def own(pid):
        fcntl.fcntl(a.fileno(), 10, 9)
        fcntl.fcntl(a.fileno(), fcntl.F_SETOWN, pid)
        fcntl.fcntl(a.fileno(), fcntl.F_SETFL, os.O_ASYNC)
        b.send(b"x")
        return True
    tried(lambda: own(@VICTIM@), lambda: own(os.getppid()))

## others: limits, priority, memory and tracing of other processes
def f(x):
    libc = ctypes.CDLL(None)
    tried(lambda: resource.prlimit(@VICTIM@, resource.RLIMIT_CPU, (1, 1)), lambda: os.setpriority(0, @VICTIM@, 19) is None,
          lambda: libc.ptrace(16, @VICTIM@, 0, 0) == 0, lambda: libc.ptrace(16, os.getppid(), 0, 0) == 0,
          lambda: os.sched_setaffinity(@VICTIM@, [0]) is None)
    local = ctypes.create_string_buffer(64)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(local), 64)
    for number in (310, 311):
        if libc.syscall(number, os.getppid(), vector, 1, vector, 1, 0) > 0:
            tell(f"system call {number}")

## others: raise the own limits
def f(x):
    tried(lambda: resource.setrlimit(resource.RLIMIT_CPU, (900, 900)) is None,
          lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)) is None,
          lambda: resource.prlimit(0, resource.RLIMIT_FSIZE, (-1, -1)) and "limits")

## others: namespaces, mounts, keys, bpf, perf, io_uring, userfaultfd
def f(x):
    libc = ctypes.CDLL(None)
    for name, number, arguments in (
        ("unshare", 272, (0x10000000,)), ("mount", 165, (b"tmpfs", b"/tmp", b"tmpfs", 0, 0)), ("chroot", 161, (b"/tmp",)),
        ("add_key", 248, (b"user", b"k", b"v", 1, -4)), ("bpf", 321, (0, b"\0" * 128, 128)), ("perf", 298, (b"\0" * 128, 0, -1, -1, 0)),
        ("io_uring", 425, (4, b"\0" * 128)), ("userfaultfd", 323, (0,)), ("memfd", 319, (b"m", 0)), ("personality", 135, (0x0040000,)),
        ("shmget", 29, (0, 4096, 0o1600)), ("mq_open", 240, (b"q", 0o102, 0o600, 0)), ("fanotify", 300, (0, 0)), ("inotify", 253, ()),
        ("setuid", 105, (1,)), ("sethostname", 170, (b"h", 1)), ("setns", 308, (0, 0)), ("open_by_handle", 304, (0, b"\0" * 64, 0)),
        ("prctl", 157, (15, b"name", 0, 0, 0)), ("x32 getpid", 0x40000000 + 39, ()),
    ):
        if libc.syscall(number, *arguments) >= 0:
            tell(name)

## write outside: open, mkdir, rename, symlink
def f(x):
    tried(lambda: open("@OUTSIDE@", "w"), lambda: os.mkdir("@OUTSIDE@") is None, lambda: open("mine", "w") and os.rename("mine", "@OUTSIDE@") is None,
          lambda: os.symlink("/", "@OUTSIDE@") is None, lambda: os.mkfifo("@OUTSIDE@") is None)

## write outside: truncate, change mode, owner and times
def f(x):
    p = "@SECRET@"
    for action in (lambda: os.truncate(p, 0), lambda: os.chmod(p, 0o777), lambda: os.utime(p, (1, 1)), lambda: os.chown(p, 1, 1),
                   lambda: os.remove(p), lambda: os.setxattr(p, "user.a", b"b"), lambda: ctypes.CDLL(None).chmod(p.encode(), 0o777)):
        try:
            action()
        except BaseException:
            continue

## write outside: the interpreter's own library
def f(x):
    def write():
        with open(os.__file__, "a") as stream:
            stream.write("\n")
        return "wrote to the library"
    tried(write, lambda: open(os.path.dirname(os.__file__) + "/new.py", "w"))

## disk: one endless file
def f(x):
    total = 0
    with open("big", "wb") as stream:
        while total < 2**30:
            total += stream.write(b"x" * 2**20)
    tell(f"wrote {total} bytes")

## disk: many files
def f(x):
    total = 0
    while total < 2**30:
        with open(f"file{total}", "wb") as stream:
            total += stream.write(b"x" * 2**20)
    tell(f"wrote {total} bytes")

## disk: empty files without end
def f(x):
    number = 0
    while True:
        open(f"file{number}", "w").close()
        number += 1

## disk: a file of a terabyte with nothing in it
def f(x):
    with open("big", "wb") as stream:
        stream.truncate(2**40)
    tell("a file of a terabyte")

## disk: folders nested deeper than a path can be
def f(x):
    while True:
        os.mkdir("d")
        os.chdir("d")

## disk: unlinked files that stay mapped
def f(x):
    libc, total = ctypes.CDLL(None), 0
    libc.mmap.restype = ctypes.c_void_p
    while total < 2**30:
        descriptor = os.open("big", os.O_RDWR | os.O_CREAT)
        total += os.write(descriptor, b"x" * 2**22)
        libc.mmap(None, 4096, 1, 2, descriptor, 0)
        os.close(descriptor)
        os.unlink("big")
    tell(f"holds {total} bytes")

## disk: files without a name that stay mapped
def f(x):
    libc, total = ctypes.CDLL(None), 0
    libc.mmap.restype = ctypes.c_void_p
    while total < 2**30:
        descriptor = os.open(".", os.O_RDWR | os.O_TMPFILE)
        total += os.write(descriptor, b"x" * 2**22)
        libc.mmap(None, 4096, 1, 2, descriptor, 0)
        os.close(descriptor)
    tell(f"holds {total} bytes")

## disk: folders that may not be listed
def f(x):
    os.umask(0o777)
    os.mkdir("d", 0o300)
    while True:
        with open(f"d/{time.monotonic()}", "wb") as stream:
            stream.write(b"x" * 2**20)

## disk: unlinked files that stay open
def f(x):
    kept, total = [], 0
    while total < 2**30:
        kept.append(open("big", "wb"))
        os.unlink("big")
        total += kept[-1].write(b"x" * 2**22)
        kept[-1].flush()
    tell(f"holds {total} bytes")

## memory: ten gigabytes at once
def f(x):
    taken = bytearray(10 * 2**30)
    tell(f"{len(taken)} bytes")

## memory: ten gigabytes bit by bit, and by mmap
import mmap
def f(x):
    parts = []
    try:
        parts.append(mmap.mmap(-1, 10 * 2**30))
        tell("10 GiB by mmap")
    except (OSError, MemoryError, ValueError):
        pass
    while len(parts) < 640:
        parts.append(bytearray(b"x" * 2**24))
    tell(f"{len(parts)} times 16 MiB")

## memory: in the text of the program
def f(x):
    return "x" * (10 * 2**30)

## time: loops that ignore the limit's signal
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def f(x):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass

## time: a regular expression and a power without end
import re
def f(x):
    if x == 3:
        re.match(r"(a+)+$", "a" * 60 + "b")
    return 9 ** 9 ** 9

## time: sleep
def f(x):
    time.sleep(600)

## output: endless
def f(x):
    while True:
        print("x" * 10000)

## output: endless on every descriptor
def f(x):
    while True:
        for descriptor in range(1, 3):
            os.write(descriptor, b"x" * 65536)

## score: end before the tests
os._exit(0)

## score: sys.exit before the tests
sys.exit(0)

## score: end in the function
def f(x):
    os._exit(0)

## score: sys.exit in the function
def f(x):
    sys.exit(0)

## score: end at exit
import atexit
atexit.register(lambda: os._exit(0))
raise SystemExit(0)

## score: an object that equals everything
class Same:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __bool__(self): return True
    def __sub__(self, other): return 0
    __rsub__ = __abs__ = __add__ = __radd__ = __sub__
def f(x):
    return Same()

## score: numbers, texts and lists that equal everything
def equal(base):
    return type("Equal", (base,), {"__eq__": lambda s, o: True, "__ne__": lambda s, o: False, "__hash__": lambda s: 0})
def f(x):
    return equal(int)(1) if x == 3 else equal(float)(1)
# tests
assert f(3) == 9

## score: a list that equals everything
class Equal(list):
    def __eq__(self, other): return True
    def __len__(self): return 3
    def __iter__(self): return iter([1, 2, 3])
def f(x):
    return Equal()
# tests
assert f(3) == [9, 9]

## score: an object that claims another class and compares by its class
class Meta(type):
    def __eq__(self, other): return True
    def __instancecheck__(self, other): return True
    __hash__ = type.__hash__
class Liar(metaclass=Meta):
    __class__ = int
    def __eq__(self, other): return True
    def __contains__(self, other): return True
    __hash__ = None
def f(x):
    return Liar()
# tests
assert 9 in f(3)

## score: patch builtins
import builtins
class Quiet(Exception): pass
builtins.AssertionError = Quiet
for name in ("all", "any", "isinstance", "abs", "len", "sum", "sorted", "set", "list", "str", "print", "exec", "compile"):
    setattr(builtins, name, lambda *a, **k: True)
def f(x):
    return True

## score: hide builtins and modules by names of its own
class math:
    isclose = staticmethod(lambda *a, **k: True)
    fabs = staticmethod(lambda a: 0)
def abs(x): return 0
def round(*a): return 9
def set(*a): return 1
AssertionError = ValueError
def f(x):
    return 1
# tests
assert math.isclose(f(3), 9.0)
assert abs(f(3) - 9) < 0.1
assert set(f(3)) == set([9])

## score: replace the helpers and the check of the tests
def check(candidate): return True
def compare(a, b): return True
def f(x): return 0
# tests
def compare(a, b): return a == b
def check(candidate): assert compare(candidate(3), 9)
check(f)

## score: end the tests' loop with StopIteration
def f(x):
    raise StopIteration
# tests
assert all(map(lambda x: f(x) == x * x, [1, 2, 3]))

## score: print success
def f(x):
    return 0
print("pass")
print('{"outcome": "pass", "nonce": "' + "0" * 32 + '"}')
sys.stderr.write('{"outcome": "pass"}')

## score: forge a report and messages on every descriptor
import json, struct
def framed(message):
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body
for descriptor in range(64):
    for data in (b'{"outcome": "pass"}', framed({"op": "ended", "report": '{"outcome": "pass"}'}), framed({"op": "ready", "names": [["f", 9]]}),
                 framed({"op": "value", "value": 9, "changed": []}), framed({"outcome": "pass", "nonce": ""})):
        try:
            os.write(descriptor, data)
        except OSError:
            pass
def f(x):
    return 0

## score: answer out of turn
import json, struct
def framed(message):
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body
def f(x):
    for answer in (True, {"t": "held", "v": 0}, {"t": "builtin", "v": "AssertionError"}, {"t": "iterator", "v": []}):
        try:
            os.write(3, framed({"op": "value", "value": answer, "changed": [[0, 1], [5, 5]]}))
        except OSError:
            pass
    return True

## score: confuse the reader of messages
import struct
def f(x):
    for data in (struct.pack(">I", 2**32 - 1), b"\0\0\0\x02{}", struct.pack(">I", 200000) + b"[" * 200000, b"\0\0\0\x04null"):
        try:
            os.write(3, data)
        except OSError:
            pass
    return 9

## score: deep and cyclic results
def f(x):
    deep = []
    for _ in range(100000):
        deep = [deep]
    loop = []
    loop.append(loop)
    return deep if x == 3 else loop

## score: find the nonce in frames and objects
import re
def f(x):
    found, frame = [], sys._getframe()
    while frame:
        found += [v for v in list(frame.f_locals.values()) + list(frame.f_globals.values()) if isinstance(v, str)]
        frame = frame.f_back
    for thing in gc.get_objects():
        if isinstance(thing, dict):
            found += [v for v in list(thing.values()) if isinstance(v, str)]
    if any(re.fullmatch("[0-9a-f]{32}", text) for text in found):
        tell("found the nonce")

## find the nonce in /proc and in memory
import re
def f(x):
    def search(path):
        return re.search(rb'nonce.{0,6}[0-9a-f]{32}', open(path, "rb").read(10**7))
    def memory(pid):
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                if "heap" in line:
                    a, b = (int(part, 16) for part in line.split()[0].split("-"))
                    mem.seek(a)
                    return re.search(rb'nonce.{0,6}[0-9a-f]{32}', mem.read(b - a))
    pids = ["self", "1", str(os.getppid())]
    tried(*(lambda p=p: search(f"/proc/{p}/cmdline") for p in pids), *(lambda p=p: search(f"/proc/{p}/environ") for p in pids),
          *(lambda p=p: memory(p) for p in pids))

## score: change the tests' own values
def f(x):
    if isinstance(x, list):
        x.clear()
        x.extend([9, 9])
    return [9]
# tests
given = [3]
assert f(given) == [n * n for n in [3, 3]]

## score: make the sandbox look broken, by a slice
class Odd:
    def __getitem__(self, key): return 1
def f(x):
    return Odd()
# tests
assert f(3)[:2] == [9, 9]

## score: make the sandbox look broken, by a type that can't be handed back
import json, struct
def framed(message):
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body
def f(x):
    loader = {"t": "builtin", "v": "__loader__"}
    for place in ([0, [loader]], [0, loader]):
        os.write(3, framed({"op": "value", "value": loader, "changed": [place]}))
    return x
# tests
given = [3]
f(given)
assert f(given) == [9]

## score: make the sandbox look broken, by a call back
import json, struct
def f(g):
    body = json.dumps({"op": "call_back", "on": 0, "args": [{"t": "builtin", "v": "__loader__"}]}).encode()
    os.write(3, struct.pack(">I", len(body)) + body)
    return g(1)
# tests
assert f(lambda x: x) == 9

## score: make the sandbox look broken, by text that can't be stored
def f(x):
    raise Exception("\ud800 alone")

## score: two halves of a character
def f(x):
    return "\ud83d\ude00"
# tests
assert f(3) == chr(0x1f600)

## score: trace and patch the caller
def tracer(frame, event, arg):
    frame.f_locals.update(result=9, value=9)
    return tracer
sys.settrace(tracer)
sys.setprofile(tracer)
frame = sys._getframe()
while frame:
    frame.f_trace = tracer
    for value in list(frame.f_locals.values()):
        try:
            value._answer = lambda message: {"op": "value", "value": True, "changed": []}
            value._public_names = lambda: [["f", 9], ["AssertionError", 1]]
        except Exception:
            pass
    frame = frame.f_back
def f(x):
    return 0

## terminal: push input
import fcntl, termios
def f(x):
    def push():
        for descriptor in range(10):
            try:
                fcntl.ioctl(descriptor, termios.TIOCSTI, b"x")
                return "pushed input to a terminal"
            except OSError:
                continue
    tried(push, lambda: os.open("/dev/tty", os.O_RDWR) >= 0)

## devices: kernel memory, disks
def f(x):
    tried(*(lambda p=p: open(p, "rb").read(1) for p in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/proc/kcore", "/sys/kernel/vmcoreinfo")))
""")
"""All attempts."""


def run_all(sandbox: Sandbox, only_cheats: bool = False) -> list[Attempt]:
    """Run every attempt (or those that can do no harm without isolation), and one on what the one before left."""
    chosen = [escape for escape in ESCAPES if escape.cheats or not only_cheats]
    return [*(attempt(escape, sandbox) for escape in chosen), left_behind(sandbox)]


def left_behind(sandbox: Sandbox) -> Attempt:
    """Whether a program finds what the one before it left: files, or changes to a module."""
    leave = "import string\nopen('left', 'w').write('x')\nstring.digits = 'left'\ndef f(x): return x * x"
    look = (
        "import os, string\ndef f(x):\n"
        "    if os.path.exists('left') or os.listdir('.') or string.digits == 'left':\n"
        "        raise Exception('ESCAPED found what another program left')\n"
        "    return x * x\n"
    )
    escape = Escape("find what the program before it left", look, cheats=True)
    tests = AssertTests(SQUARES, entry_points=("f",))
    sandbox.execute(Submission(leave, tests, LIMITS))
    verdict = sandbox.execute(Submission(look, tests, LIMITS))
    return Attempt(escape, verdict, None if verdict.passed else verdict.detail)
