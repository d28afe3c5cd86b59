"""The jail: gives up every power step by step, proves that it is gone, then executes the listing.

Run in a fresh interpreter by `kb.introspect.run` and by nobody else. It reports
over the file descriptor that SPEC names, one JSON document a line: first what protects, then (from
the listing) the answer. Whatever cannot be set up ends the process before a line of the application
has run.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from kb.introspect import landlock, seccomp

UNAVAILABLE = 90
"""Exit status: this kind of protection cannot be set up here; nothing has run."""

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_ISOLATED = _CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWIPC | _CLONE_NEWPID | _CLONE_NEWNET

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_MOVE, _MS_REC, _MS_PRIVATE = 4096, 8192, 16384, 1 << 18
_SYS_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 1, 24, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_DEVICES = ("null", "zero", "full", "random", "urandom")

_libc = ctypes.CDLL(None, use_errno=True)


class _RefusedError(Exception):
    """A step of the protection did not work."""


def main(argv: list[str]) -> NoReturn:
    """Enter the jail that the specification asks for and become the listing; never returns."""
    spec: dict[str, Any] = json.loads(argv[1])
    try:
        _die_with_parent()
        if spec["protection"] == "namespaces":
            _enter_namespaces(spec)
        _run(spec)
    except (_RefusedError, OSError, seccomp.SeccompUnavailableError) as error:
        _report(spec, {"unavailable": f"{error}"})
        os._exit(UNAVAILABLE)


def _run(spec: dict[str, Any]) -> NoReturn:
    """Limits, capabilities, filter, proof, and then the application's own interpreter."""
    os.chdir(spec["repo"])
    _set_limits(spec["limits"])
    _drop_capabilities()
    without_domain = _enter_domain() if spec["protection"] == "seccomp" else ""
    seccomp.install(deny_writes=spec["protection"] == "seccomp")
    _prove(spec, without_domain)
    _report(spec, {"protection": _description(spec["protection"])})
    os.execve(spec["command"][0], spec["command"], spec["environment"])  # noqa: S606 - this is the jail's purpose


def _description(protection: str) -> dict[str, str]:
    if protection == "namespaces":
        network = "own network namespace without interfaces, and no sockets (seccomp)"
        files = "own mount namespace, everything read-only but a private scratch folder in memory"
        processes = "own process namespace, and no new processes (seccomp)"
    else:
        network = "no sockets (seccomp)"
        files = "no call that changes a file (seccomp)"
        processes = "no new processes, no signals to others (seccomp), none can be looked into"
    return {"kind": protection, "network": network, "files": files, "processes": processes}


def _report(spec: dict[str, Any], document: dict[str, Any]) -> None:
    os.write(spec["report_fd"], json.dumps(document).encode() + b"\n")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise _RefusedError(f"{what}: {os.strerror(ctypes.get_errno())}")


def _die_with_parent() -> None:
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "pdeathsig")


def _enter_namespaces(spec: dict[str, Any]) -> None:
    """Return only in the one process that is to become the application."""
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_ISOLATED) != 0:
        _check(_libc.unshare(_ISOLATED | _CLONE_NEWUSER), "namespaces")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _become_child()  # the first process of the new process namespace: all others die with it
    _restrict_mounts(spec["scratch"])
    _become_child()


def _become_child() -> None:
    """Fork; the parent waits and ends as the child ended."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
    _die_with_parent()


def _restrict_mounts(scratch: str) -> None:
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", scratch, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=16m,nr_inodes=1024,mode=700")
    devices = Path(scratch, "dev")
    devices.mkdir()
    _mount("tmpfs", str(devices), "tmpfs", _MS_NOSUID | _MS_NOEXEC, "size=64k,mode=755")
    for name in _DEVICES:
        (devices / name).touch()
        _mount(f"/dev/{name}", str(devices / name), None, _MS_BIND)
    _set_read_only("/", read_only=True, recursive=True)
    _mount(str(devices), "/dev", None, _MS_MOVE)
    _set_read_only(scratch, read_only=False, recursive=False)
    Path(scratch, "dev").rmdir()
    hidden = _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    try:
        _mount("proc", "/proc", "proc", hidden)
    except _RefusedError:  # a container that masks parts of /proc; an empty one shows nobody's environment
        _mount("tmpfs", "/proc", "tmpfs", hidden, "size=4k")


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    def encoded(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    result = _libc.mount(
        encoded(source), encoded(target), encoded(kind), ctypes.c_ulong(flags), encoded(options)
    )
    _check(result, f"mount {target}")


def _set_read_only(target: str, *, read_only: bool, recursive: bool) -> None:
    attributes = (ctypes.c_uint64 * 4)()  # struct mount_attr: set, clear, propagation, userns_fd
    attributes[0 if read_only else 1] = _MS_RDONLY
    flags = _AT_RECURSIVE if recursive else 0
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR), ctypes.c_int(_AT_FDCWD), os.fsencode(target),
        ctypes.c_uint(flags), ctypes.byref(attributes), size,
    )  # fmt: skip
    _check(result, f"read-only view of {target}")


def _set_limits(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        top = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (top, top))


def _drop_capabilities() -> None:
    """No capability is left in any set; root stays the owner of its files and nothing more."""
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails beyond the last one, or without power
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), "drop capabilities")


def _enter_domain() -> str:
    """Why there is no domain, "" if there is: whether other processes are out of reach `_prove` says."""
    try:
        landlock.enter()
    except landlock.LandlockUnavailableError as error:
        return f"{error}"
    return ""


def _prove(spec: dict[str, Any], without_domain: str) -> None:
    """Try what must not work; a success means that the jail leaks, and then nothing runs."""
    probe = Path(spec["repo"], f".kb-introspect-probe-{os.getpid()}")

    def write() -> None:
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        probe.unlink()

    def fork() -> None:
        if os.fork() == 0:
            os._exit(0)

    attempts: dict[str, Callable[[], object]] = {
        "a socket": lambda: socket.socket(socket.AF_INET),
        "a unix socket": lambda: socket.socket(socket.AF_UNIX),
        "a new process": fork,
        "writing in the repository": write,
    }
    if (
        spec["protection"] == "seccomp"
    ):  # in namespaces the number is another process's, perhaps the jail's own
        attempts["reading the environment of the caller"] = Path(f"/proc/{spec['caller']}/environ").read_bytes
    for what, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            continue
        reason = f" ({without_domain})" if without_domain else ""
        raise _RefusedError(f"{what} was still possible{reason}")
