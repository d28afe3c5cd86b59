"""Hostile applications are contained and reported, under each kind of protection."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kb.introspect import jail
from kb.introspect.run import (
    ApplicationContainedError,
    ApplicationFailedError,
    Introspection,
    Limits,
    Protection,
    Request,
    SandboxUnavailableError,
    introspect,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux only")

PROTECTIONS: tuple[Protection, ...] = ("namespaces", "seccomp")
SHORT = Limits(seconds=3, memory=512 << 20, output=256 << 10)
PATIENT = Limits(seconds=60, memory=512 << 20, output=256 << 10)
"""For what reaches another limit first, however busy the machine is."""

# An "application" of no framework: whatever `url_map` yields is listed like Flask's.
INNOCENT = """
class App:
    view_functions = {}
    class url_map:
        @staticmethod
        def iter_rules():
            return ()
app = App()
"""


@pytest.fixture(params=PROTECTIONS)
def protection(request: pytest.FixtureRequest) -> Protection:
    return request.param


def ask(folder: Path, protection: Protection, source: str, limits: Limits = SHORT) -> Introspection:
    """Run `source` as the application; a machine without this kind of protection skips the case."""
    (folder / "hostile.py").write_text(textwrap.dedent(source) + INNOCENT)
    try:
        return introspect(Request("hostile:app", folder, limits=limits, protections=(protection,)))
    except SandboxUnavailableError as error:
        pytest.skip(f"{protection} cannot be had here: {error}")


def processes_that_mention(folder: Path) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(folder) in command:
                found.add(int(entry.name))
    return found


@contextmanager
def listening_server() -> Iterator[tuple[socket.socket, int]]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        yield server, server.getsockname()[1]


def test_an_innocent_application_is_answered_and_the_protection_is_named(
    tmp_path: Path, protection: Protection
) -> None:
    answer = ask(tmp_path, protection, "")
    assert (answer.framework, answer.routes, answer.openapi) == ("flask", [], None)
    assert answer.protection["kind"] == protection
    assert set(answer.protection) == {"kind", "network", "files", "processes"}


def test_a_fork_bomb_starts_no_process(tmp_path: Path, protection: Protection) -> None:
    with pytest.raises(ApplicationFailedError, match="PermissionError"):
        ask(tmp_path, protection, "import os\nwhile True:\n    os.fork()\n")
    assert processes_that_mention(tmp_path) == set()


def test_a_subprocess_is_refused(tmp_path: Path, protection: Protection) -> None:
    with pytest.raises(ApplicationFailedError, match="PermissionError"):
        ask(tmp_path, protection, "import subprocess\nsubprocess.run(['/bin/true'])\n")


def test_a_bomb_of_threads_ends_at_the_memory_limit(tmp_path: Path, protection: Protection) -> None:
    source = """
    import threading, time
    while True:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    """
    with pytest.raises((ApplicationFailedError, ApplicationContainedError)):
        ask(tmp_path, protection, source)
    assert processes_that_mention(tmp_path) == set()


def test_a_network_call_reaches_nobody(tmp_path: Path, protection: Protection) -> None:
    with listening_server() as (server, port):
        source = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=1)\n"
        with pytest.raises(ApplicationFailedError, match=r"OSError|PermissionError"):
            ask(tmp_path, protection, source)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_unix_socket_of_the_machine_cannot_be_reached(tmp_path: Path, protection: Protection) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        source = "import socket\nsocket.socket(socket.AF_UNIX).connect('s')\n"
        with pytest.raises(ApplicationFailedError, match="PermissionError"):
            ask(tmp_path, protection, source)


@pytest.mark.parametrize(
    "attack",
    [
        "open({victim!r}, 'w').write('gone')",
        "open({victim!r}, 'a').write('more')",
        "os.close(os.open({victim!r}, os.O_RDONLY | os.O_TRUNC))",
        "os.truncate({victim!r}, 0)",
        "os.unlink({victim!r})",
        "os.rename({victim!r}, {victim!r} + '.x')",
        "os.chmod({victim!r}, 0o777)",
        "os.utime({victim!r}, (0, 0))",
        "os.link({victim!r}, {victim!r} + '.x')",
        "os.symlink('x', {victim!r} + '.x')",
        "os.mkdir({victim!r} + '.x')",
        "os.setxattr({victim!r}, 'user.x', b'1')",
        "os.mkfifo({victim!r} + '.x')",
        "open('/proc/sys/kernel/hostname', 'w').write('x')",
    ],
)
def test_nothing_outside_can_be_changed(tmp_path: Path, protection: Protection, attack: str) -> None:
    repo, outside = tmp_path / "repo", tmp_path / "outside"
    repo.mkdir()
    outside.mkdir()
    victim = outside / "victim"
    victim.write_text("intact")
    before = victim.stat()
    with pytest.raises(ApplicationFailedError, match="Error"):
        ask(repo, protection, f"import os\n{attack.format(victim=str(victim))}\n")
    after = victim.stat()
    assert victim.read_text() == "intact"
    assert (before.st_mode, before.st_mtime_ns, before.st_nlink) == (
        after.st_mode,
        after.st_mtime_ns,
        after.st_nlink,
    )
    assert [path.name for path in outside.iterdir()] == ["victim"]


def test_the_repository_itself_is_read_only(tmp_path: Path, protection: Protection) -> None:
    with pytest.raises(ApplicationFailedError, match=r"Read-only|PermissionError"):
        ask(tmp_path, protection, "open('new.py', 'w')\n")
    assert not (tmp_path / "new.py").exists()


def test_scratch_space_is_in_memory_and_bounded(tmp_path: Path) -> None:
    source = """
    import os, tempfile
    with tempfile.NamedTemporaryFile() as small:
        small.write(b'x' * 1000)
    folder = tempfile.mkdtemp()
    try:
        for number in range(64):
            with open(os.path.join(folder, str(number)), 'wb') as big:
                big.write(b'x' * (1 << 20))
    except OSError as error:
        raise SystemExit(f"stopped: {error.strerror}")
    """
    with pytest.raises(ApplicationFailedError, match="stopped: No space left on device"):
        ask(tmp_path, "namespaces", source)


def test_an_endless_loop_ends_at_the_time_limit(tmp_path: Path, protection: Protection) -> None:
    with pytest.raises(ApplicationContainedError) as caught:
        ask(tmp_path, protection, "while True:\n    pass\n", Limits(seconds=1))
    assert caught.value.data["limit"] in ("time", "cpu")
    assert processes_that_mention(tmp_path) == set()


def test_an_application_that_waits_forever_and_ignores_signals_is_ended(
    tmp_path: Path, protection: Protection
) -> None:
    source = """
    import signal, time
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)
    """
    with pytest.raises(ApplicationContainedError) as caught:
        ask(tmp_path, protection, source, Limits(seconds=1))
    assert caught.value.data["limit"] == "time"
    assert processes_that_mention(tmp_path) == set()


@pytest.mark.parametrize(
    "source",
    [
        "import os, time\nos.closerange(0, 4096)\ntime.sleep(600)\n",
        "import os\nos.closerange(0, 4096)\nwhile True:\n    pass\n",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n",
        "import threading, time\nthreading.Thread(target=lambda: time.sleep(600)).start()\ntime.sleep(600)\n",
    ],
    ids=["closes-all-and-waits", "closes-all-and-loops", "stops-itself", "waits-in-a-thread"],
)
def test_an_application_that_nothing_more_is_heard_of_is_ended(
    tmp_path: Path, protection: Protection, source: str
) -> None:
    with pytest.raises(ApplicationContainedError) as caught:
        ask(tmp_path, protection, source, Limits(seconds=1))
    assert caught.value.data["limit"] in ("time", "cpu")
    assert processes_that_mention(tmp_path) == set()


def test_errors_that_fill_from_a_thread_are_cut_off(tmp_path: Path, protection: Protection) -> None:
    source = """
    import os, threading
    def fill():
        while True:
            os.write(2, b"x" * 65536)
    filling = threading.Thread(target=fill)
    filling.start()
    filling.join()
    """
    with pytest.raises(ApplicationContainedError) as caught:
        ask(tmp_path, protection, source, PATIENT)
    assert caught.value.data["limit"] == "output"


def test_memory_that_a_thread_takes_is_limited(tmp_path: Path, protection: Protection) -> None:
    source = """
    import threading
    seen = []
    def hoard():
        kept = []
        try:
            while True:
                kept.append(bytearray(1 << 24))
        except MemoryError:
            seen.append(len(kept) * 16)
    hoarding = threading.Thread(target=hoard)
    hoarding.start()
    hoarding.join()
    print(seen[0] < 512)
    """
    assert ask(tmp_path, protection, source, PATIENT).output.split() == ["True"]


def test_huge_output_is_cut_off(tmp_path: Path, protection: Protection) -> None:
    with pytest.raises(ApplicationContainedError) as caught:
        ask(tmp_path, protection, "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n")
    assert caught.value.data["limit"] == "output"
    assert len(caught.value.data["output"]) <= 8192


def test_a_huge_answer_is_cut_off(tmp_path: Path, protection: Protection) -> None:
    source = """
    import os
    for number in range(3, 64):
        try:
            while True:
                os.write(number, b'x' * 65536)
        except OSError:
            pass
    """
    with pytest.raises(ApplicationContainedError) as caught:
        ask(tmp_path, protection, source, Limits(seconds=5, answer=1 << 20))
    assert caught.value.data["limit"] == "output"


def test_memory_is_limited(tmp_path: Path, protection: Protection) -> None:
    with pytest.raises(ApplicationFailedError, match="MemoryError"):
        ask(tmp_path, protection, "hoard = [bytearray(1 << 24) for _ in range(1000)]\n", PATIENT)


def test_an_application_cannot_become_a_daemon(tmp_path: Path, protection: Protection) -> None:
    source = """
    import os
    os.setsid()
    if os.fork():
        os._exit(0)
    os.setsid()
    """
    with pytest.raises(ApplicationFailedError):
        ask(tmp_path, protection, source)
    assert processes_that_mention(tmp_path) == set()


def test_it_cannot_signal_the_process_that_started_it(tmp_path: Path, protection: Protection) -> None:
    source = f"import os, signal\nos.kill({os.getpid()}, signal.SIGTERM)\n"
    with pytest.raises(ApplicationFailedError, match=r"PermissionError|ProcessLookupError"):
        ask(tmp_path, protection, source)


def test_the_environment_of_the_caller_stays_unseen(
    tmp_path: Path, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_DB_URL", "a-secret")
    answer = ask(tmp_path, protection, "import os\nprint(sorted(os.environ.values()))\n")
    assert "a-secret" not in answer.output


def test_an_application_that_exits_at_import_is_reported(tmp_path: Path, protection: Protection) -> None:
    with pytest.raises(ApplicationFailedError, match="SystemExit: 3"):
        ask(tmp_path, protection, "raise SystemExit(3)\n")


def test_an_application_that_ends_its_process_is_reported(tmp_path: Path, protection: Protection) -> None:
    with pytest.raises(ApplicationFailedError, match="status 7 and without an answer"):
        ask(tmp_path, protection, "import os\nos._exit(7)\n")


def test_a_question_to_a_name_server_reaches_nobody(tmp_path: Path, protection: Protection) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setblocking(False)
        address = server.getsockname()
        source = f"""
        import socket
        header = b"\\x00\\x01\\x01\\x00" + b"\\x00\\x01" + bytes(6)
        question = b"\\x06secret\\x07example\\x00" + b"\\x00\\x01\\x00\\x01"
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(header + question, {address!r})
        """
        with pytest.raises(ApplicationFailedError, match=r"OSError|PermissionError"):
            ask(tmp_path, protection, source)
        with pytest.raises(BlockingIOError):
            server.recv(512)


def test_a_number_that_is_the_callers_outside_and_the_jails_inside_is_no_leak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(tmp_path, "namespaces", "")  # skips where there are none
    monkeypatch.setattr(os, "getpid", lambda: 2)  # what the application itself is in its own namespace
    request = Request("hostile:app", tmp_path, limits=SHORT, protections=("namespaces",))
    assert introspect(request).protection["kind"] == "namespaces"


def test_a_caller_that_could_be_read_without_a_domain_is_refused_with_the_domains_reason(
    tmp_path: Path,
) -> None:
    ask(tmp_path, "seccomp", "")  # skips where there is no filter
    script = """
    import sys
    from kb.introspect import jail, landlock

    def enter():
        raise landlock.LandlockUnavailableError("landlock: turned off")

    landlock.enter = enter
    jail.main(sys.argv)
    """
    spec = {
        "protection": "seccomp",
        "repo": str(tmp_path),
        "limits": {},
        "report_fd": 1,
        "caller": "self",
        "command": ["/bin/false"],
        "environment": {},
    }
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), json.dumps(spec)], stdout=subprocess.PIPE, check=False
    )
    assert (ended.returncode, json.loads(ended.stdout)) == (
        jail.UNAVAILABLE,
        {"unavailable": "reading the environment of the caller was still possible (landlock: turned off)"},
    )


def test_no_kind_of_socket_can_be_made(tmp_path: Path, protection: Protection) -> None:
    source = """
    import itertools, socket
    for family, kind in itertools.product(range(46), (1, 2, 3, 5)):
        try:
            socket.socket(family, kind)
        except OSError:
            continue
        print("made", family, kind)
    """
    assert "made" not in ask(tmp_path, protection, source).output


def test_descriptors_of_the_caller_are_not_inherited(tmp_path: Path, protection: Protection) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a-secret")
    with secret.open() as kept:
        os.set_inheritable(kept.fileno(), True)
        source = """
        import os
        for name in os.listdir("/proc/self/fd"):
            try:
                print(os.readlink(f"/proc/self/fd/{name}"))
            except OSError:
                pass
        """
        answer = ask(tmp_path, protection, source)
    opened = [line for line in answer.output.splitlines() if not line.startswith("pipe:")]
    assert opened == ["/dev/null"]


@pytest.mark.parametrize("what", ["environ", "mem", "maps", "fd/0", "cwd"])
def test_the_process_that_started_it_cannot_be_looked_into(
    tmp_path: Path, protection: Protection, what: str
) -> None:
    path = f"/proc/{os.getpid()}/{what}"
    source = (
        f"import os\nos.readlink({path!r}) if {what!r} in ('fd/0', 'cwd') else open({path!r}, 'rb').read(1)\n"
    )
    with pytest.raises(ApplicationFailedError, match=r"PermissionError|FileNotFoundError"):
        ask(tmp_path, protection, source)


def test_it_cannot_trace_or_read_another_process(tmp_path: Path, protection: Protection) -> None:
    source = f"""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    attach, seize = 16, 0x4206
    print(libc.ptrace(attach, {os.getpid()}, 0, 0), libc.ptrace(seize, {os.getpid()}, 0, 0))
    """
    assert ask(tmp_path, protection, source).output.split() == ["-1", "-1"]


@pytest.mark.parametrize("owner", ["os.getppid()", "{caller}", "-os.getpgid(0)"])
def test_it_cannot_have_the_kernel_signal_another_process(
    tmp_path: Path, protection: Protection, owner: str
) -> None:
    source = f"""
    import fcntl, os, signal
    F_SETSIG = 10
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, {owner.format(caller=os.getpid())})
    fcntl.fcntl(reading, F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writing, b"x")
    """
    with pytest.raises(ApplicationFailedError, match="PermissionError"):
        ask(tmp_path, protection, source)


@pytest.mark.parametrize(
    "attack",
    [
        "os.setpriority(os.PRIO_PROCESS, {pid}, 19)",
        "os.setpriority(os.PRIO_USER, os.getuid(), 19)",
        "os.sched_setaffinity({pid}, [0])",
        "os.sched_setscheduler({pid}, os.SCHED_IDLE, os.sched_param(0))",
    ],
)
def test_it_cannot_slow_other_processes_down(tmp_path: Path, protection: Protection, attack: str) -> None:
    before = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0))
    with pytest.raises(ApplicationFailedError, match="PermissionError"):
        ask(tmp_path, protection, f"import os\n{attack.format(pid=os.getpid())}\n")
    assert (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)) == before


def test_a_shell_that_it_becomes_is_in_the_same_jail(tmp_path: Path, protection: Protection) -> None:
    source = f"""
    import os
    os.execv("/bin/sh", ["/bin/sh", "-c", "echo x > {tmp_path}/new; sleep 60 & exit 3"])
    """
    with pytest.raises(ApplicationFailedError):
        ask(tmp_path, protection, source)
    assert not (tmp_path / "new").exists()
    assert processes_that_mention(tmp_path) == set()


@pytest.mark.parametrize(
    "answer",
    [
        """b'{"a":' * 200000""",
        """b'{"framework": "x", "openapi": ' + b'{"a":' * 400 + b'1' + b'}' * 401""",
        """b'{"framework": "x", "openapi": {"a": NaN}}'""",
        """b'{"framework": 5, "routes": 7}'""",
        """b'{"framework": "flask", "routes": [1, null]}'""",
        """b'{"error": {"a": 1}, "traceback": 5}'""",
        """b'9' * 100000""",
    ],
)
def test_an_answer_that_the_application_forges_is_no_defect_of_kb(
    tmp_path: Path, protection: Protection, answer: str
) -> None:
    source = f"""
    import os
    for number in range(3, 64):
        try:
            os.write(number, {answer} + b"\\n")
        except OSError:
            pass
    os._exit(0)
    """
    with pytest.raises(ApplicationFailedError, match="could not be read"):
        ask(tmp_path, protection, source)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{'a': float('nan')}", "ValueError: .*float"),
        ("cycle", "ValueError: Circular reference"),
        ("deep", "RecursionError"),
        ("{'a': Unsaid()}", "KeyError: 'unsaid'"),
    ],
)
def test_a_document_that_cannot_be_written_is_told_with_its_reason(
    tmp_path: Path, protection: Protection, document: str, reason: str
) -> None:
    source = f"""
    import fastapi
    class Unsaid:
        def __str__(self):
            raise KeyError("unsaid")
    cycle = {{}}
    cycle["a"] = cycle
    deep = {{}}
    for _ in range(100000):
        deep = {{"a": deep}}
    made = fastapi.FastAPI()
    made.openapi = lambda: {document}
    """
    (tmp_path / "hostile.py").write_text(textwrap.dedent(source))
    ask_made = Request("hostile:made", tmp_path, limits=PATIENT, protections=(protection,))
    try:
        with pytest.raises(ApplicationFailedError, match=reason):
            introspect(ask_made)
    except SandboxUnavailableError as error:
        pytest.skip(f"{protection} cannot be had here: {error}")
