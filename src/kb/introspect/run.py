"""Ask a web application for its own contract, in a process that can harm nothing.

`introspect` starts the jail (`kb.introspect.jail`), feeds nothing to it, reads at most so much from it
for at most so long, and kills whatever is left. Linux only: elsewhere, and wherever neither namespaces
nor seccomp can be had, it raises instead of running the application unprotected.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kb.errors import KbError, UsageError
from kb.introspect import listing
from kb.introspect.jail import UNAVAILABLE

Protection = Literal["namespaces", "seccomp"]

_MIB = 1 << 20
_KEPT_OUTPUT = 8192
_FATAL_SIGNAL = 128
_MOST_LEVELS = 200
"""Nesting of an answer that is read: Python's own encoder gives up at some hundreds."""
_DYING_SECONDS = 2.0
"""How long to wait for killed processes to be gone, at most."""

_IMPORT_ROOT = str(Path(__file__).parents[2])
_ENTER_JAIL = (
    "import sys; sys.path.insert(0, sys.argv[1]); from kb.introspect.jail import main; main(sys.argv[1:])"
)
"""The isolated mode ignores PYTHONPATH, so the jail is told where this very kb is."""


class SandboxUnavailableError(KbError):
    """This machine offers no protection that `kb introspect` could run an application under."""


class ApplicationContainedError(KbError):
    """The application reached a limit of the sandbox and was ended; `data["limit"]` says which."""


class ApplicationFailedError(KbError):
    """The application could not be loaded, or could not say what its routes are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use; the defaults suit an application of hundreds of routes."""

    seconds: int = 30
    """Wall clock, and CPU time of all threads together."""
    memory: int = 2048 * _MIB
    """Bytes of address space."""
    output: int = 4 * _MIB
    """Bytes on stdout and stderr together."""
    answer: int = 32 * _MIB
    """Bytes of JSON."""

    def as_rlimits(self) -> dict[str, int]:
        """Names of `resource.RLIMIT_*` without the prefix, with their values."""
        return {
            "AS": self.memory,
            "CPU": self.seconds,
            "FSIZE": 8 * _MIB,
            "NOFILE": 256,
            "CORE": 0,
        }


@dataclass(frozen=True, slots=True)
class Introspection:
    """What the application said, and under which protection it said so."""

    framework: str
    routes: list[dict[str, Any]]
    openapi: dict[str, Any] | None
    protection: dict[str, str]
    output: str = ""
    """The end of what the application printed."""


@dataclass(frozen=True, slots=True)
class Request:
    """Which application to ask, and how."""

    target: str
    """`package.module:attribute`, or a Django settings module."""
    repo: Path
    python: Path = field(default_factory=lambda: Path(sys.executable))
    """Interpreter that has the application's dependencies."""
    factory: bool = False
    """Call the attribute to get the application."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables to set; nothing is inherited."""
    limits: Limits = field(default_factory=Limits)
    protections: Sequence[Protection] = ("namespaces", "seccomp")
    """Kinds to try, best first."""


class _Ended(NamedTuple):
    status: int
    answer: bytes
    output: bytes
    limit: str | None


def introspect(request: Request) -> Introspection:
    """The application's answer.

    Raises:
        UsageError: the repository, target or interpreter does not exist as named.
        SandboxUnavailableError: none of the kinds of protection works here; nothing was run.
        ApplicationContainedError: a limit was reached; every process of the application is gone.
        ApplicationFailedError: it raised, exited, or answered nothing that could be read.
    """
    _check(request)
    reasons = []
    for protection in request.protections:
        with tempfile.TemporaryDirectory(prefix="kb-introspect-") as scratch:
            ended = _run(request, protection, scratch)
        lines = _documents(ended.answer)
        if ended.status == UNAVAILABLE and lines and "unavailable" in lines[0]:
            reasons.append(f"{protection}: {lines[0]['unavailable']}")
            continue
        return _verdict(request, ended, lines)
    raise SandboxUnavailableError(
        "no protection is available here, so the application was not run: " + "; ".join(reasons),
        hint="run on Linux (x86_64 or aarch64) with seccomp, or allow user namespaces",
    )


def _check(request: Request) -> None:
    if not request.repo.is_dir():
        raise UsageError(f"{request.repo} is not a folder")
    if not request.python.exists():
        raise UsageError(f"there is no interpreter at {request.python}")
    parts = request.target.split(":")
    if len(parts) > 2 or not all(name.isidentifier() for part in parts for name in part.split(".")):
        raise UsageError(
            f"{request.target!r} names no application",
            hint="use package.module:attribute, or the name of a Django settings module",
        )


def _run(request: Request, protection: Protection, scratch: str) -> _Ended:
    report_read, report_write = os.pipe()
    repo = request.repo.resolve()
    environment = {
        "PATH": "/usr/bin:/bin", "HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1", **request.environment,
    }  # fmt: skip
    if ":" not in request.target:
        environment["DJANGO_SETTINGS_MODULE"] = request.target
    question = {
        "target": request.target,
        "factory": request.factory,
        "paths": [str(repo), *(str(path) for path in (repo / "src",) if path.is_dir())],
        "report_fd": report_write,
    }
    spec = {
        "protection": protection,
        "caller": os.getpid(),
        "repo": str(repo),
        "scratch": scratch,
        "limits": request.limits.as_rlimits(),
        "environment": environment,
        # absolute, but not resolved: the link is how an interpreter knows its virtual environment
        "command": [str(request.python.absolute()), "-I", "-B", listing.__file__, json.dumps(question)],
        "report_fd": report_write,
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", _ENTER_JAIL, _IMPORT_ROOT, json.dumps(spec)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(report_write,),
        start_new_session=True,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        cwd="/",
    )
    os.close(report_write)
    assert process.stdout is not None
    try:
        return _listen(process, report_read, request.limits)
    finally:
        _kill(process)
        process.stdout.close()
        os.close(report_read)


def _listen(process: subprocess.Popen[bytes], report: int, limits: Limits) -> _Ended:
    """Read both pipes until they close or a limit is reached."""
    assert process.stdout is not None
    stdout = process.stdout.fileno()
    seen = {report: 0, stdout: 0}
    allowed = {report: limits.answer, stdout: limits.output}
    answer, output = bytearray(), bytearray()
    limit: str | None = None
    deadline = time.monotonic() + limits.seconds
    with selectors.DefaultSelector() as selector:
        for source in seen:
            selector.register(source, selectors.EVENT_READ)
        while selector.get_map() and limit is None:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready and time.monotonic() >= deadline:
                limit = "time"
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fd)
                seen[key.fd] += len(chunk)
                if seen[key.fd] > allowed[key.fd]:
                    limit = "output"
                if key.fd == report:
                    answer += chunk
                else:
                    output = (output + chunk)[-_KEPT_OUTPUT:]
    if limit is None:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            limit = "time"
    _kill(process)
    return _Ended(process.returncode, bytes(answer), bytes(output), limit)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the jail and all in it: the jail's first process takes its namespace along."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    process.wait()
    # Only the outermost process is ours to wait for; those inside die on their own, a moment later.
    deadline = time.monotonic() + _DYING_SECONDS
    while _has_members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.002)


def _has_members(group: int) -> bool:
    """Whether a process of the group still runs; one that is dead and that nobody has collected does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):  # gone meanwhile
            continue
        if int(its_group) == group and state not in "ZX":
            return True
    return False


def _documents(answer: bytes) -> list[dict[str, Any]]:
    documents = []
    for line in answer.splitlines():
        try:
            document = json.loads(line, parse_constant=_no_json)
        except (ValueError, RecursionError):  # whoever runs in the jail may write what they like
            continue
        if isinstance(document, dict):
            documents.append(document)
    return documents


def _no_json(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _is_answer(answer: dict[str, Any]) -> bool:
    """Whether an answer has the shape that `kb.introspect.listing` gives it, and can be printed."""
    routes, openapi = answer.get("routes"), answer.get("openapi")
    return (
        isinstance(answer["framework"], str)
        and isinstance(routes, list | None)
        and all(isinstance(route, dict) for route in routes or ())
        and isinstance(openapi, dict | None)
        and _is_flat_enough(answer)
    )


def _is_flat_enough(value: Any) -> bool:
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return not level


def _verdict(request: Request, ended: _Ended, lines: list[dict[str, Any]]) -> Introspection:
    printed = ended.output.decode("utf-8", "replace")
    protection = lines[0].get("protection") if lines else None
    if not isinstance(protection, dict):
        raise SandboxUnavailableError(
            f"the sandbox did not come up: {printed.strip()[-500:] or ended.status}"
        )
    if ended.limit is not None:
        raise _contained(request.limits, ended.limit, protection, printed)
    answer = lines[1] if len(lines) > 1 else None
    if answer is None and ended.status in (_FATAL_SIGNAL + signal.SIGXCPU, -signal.SIGXCPU):
        raise _contained(request.limits, "cpu", protection, printed)
    if answer is None and ended.status in (_FATAL_SIGNAL + signal.SIGKILL, -signal.SIGKILL):
        raise _contained(request.limits, "cpu", protection, printed)
    if answer is None or "framework" not in answer or not _is_answer(answer):
        reason = f"it ended with status {ended.status} and without an answer"
        if answer is not None and "framework" in answer:
            reason = "what it answered is no list of routes and no OpenAPI document"
        elif answer is not None and answer.get("error"):
            reason = str(answer["error"])
        raise ApplicationFailedError(
            f"{request.target} could not be read: {reason}",
            traceback=str((answer or {}).get("traceback", "")),
            output=printed,
            protection=protection,
        )
    return Introspection(
        answer["framework"], answer.get("routes") or [], answer.get("openapi"), protection, printed
    )


def _contained(
    limits: Limits, limit: str, protection: dict[str, str], printed: str
) -> ApplicationContainedError:
    said = {
        "time": f"it was not done after {limits.seconds} s",
        "cpu": f"it used more than {limits.seconds} s of CPU time",
        "output": f"it wrote more than {_size(limits.output)} of output or {_size(limits.answer)} of answer",
    }
    return ApplicationContainedError(
        f"the application was ended: {said[limit]}", limit=limit, protection=protection, output=printed
    )


def _size(count: int) -> str:
    return f"{count // _MIB} MiB" if count >= _MIB else f"{count} bytes"
