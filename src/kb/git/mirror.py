"""Bare mirrors of remote repositories, made and refreshed with the `git` program.

The mirror appears whole or not at all, one process fetches at a time, and credentials live in the
environment of that one git process: never in its arguments, the mirror's configuration or a message.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kb.errors import RepositoryError
from kb.git.failures import one_line
from kb.git.urls import RemoteUrl, parse_url

REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
KEPT_VARIABLES = frozenset(
    {
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "GIT_SSL_KEY",
        "GIT_SSL_NO_VERIFY",
        "GIT_PROXY_COMMAND",
        "GIT_PROXY_SSL_CAINFO",
        "GIT_EXEC_PATH",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
    }
)
FIXED_SETTINGS = (
    "protocol.ext.allow=never",
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.askPass=",
    "fetch.recurseSubmodules=false",
    "fetch.fsckObjects=false",
    "gc.autoDetach=false",
    # Commits that a force-push dropped stay readable: snapshots of them may exist.
    "gc.pruneExpire=never",
)
CREDENTIAL_HELPER = '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$KB_URL_USERNAME" "$KB_URL_PASSWORD"; }; f'
LOCK_POLL_SECONDS = 0.05
UNCLAIMED = "kb-unclaimed"
"""A file in a mirror that no repository has been registered for yet, in whichever database."""
EMPTY_COMPLAINT = "fatal: Could not read from remote repository"


def mirror_path(home: Path, url: RemoteUrl) -> Path:
    """Where kb keeps the mirror of a remote: named by its location, whatever characters that has."""
    return home / "mirrors" / hashlib.sha256(url.location.encode("utf-8")).hexdigest()[:32]


def update_mirror(home: Path, url: RemoteUrl, timeout: float | None = None) -> Path:
    """The mirror's folder, cloned if it was absent and brought up to date otherwise.

    `timeout` is in seconds, for each git process and for waiting until another process has fetched.

    Raises:
        RepositoryError: git is missing, or the remote cannot be read; the mirror is as it was before.
    """
    mirror = mirror_path(home, url)
    mirror.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _only_one(mirror, url, timeout):
        if mirror.is_dir():
            _fetch(mirror, url, timeout)
        else:
            _clone(mirror, url, timeout)
    return mirror


def claim(mirror: Path) -> None:
    """Says that a registered repository is read from the mirror, so that `discard` leaves it."""
    (mirror / UNCLAIMED).unlink(missing_ok=True)


def left_behind(home: Path, registered: Iterable[str]) -> list[Path]:
    """What killed runs left below `home`: unfinished clones, and mirrors of nothing that is registered.

    A mirror that was claimed stays also where `registered` (locations of remotes) has it not: several
    databases may share a home.
    """
    mirrors = home / "mirrors"
    used = {mirror_path(home, parse_url(location)) for location in registered}
    unclaimed = {marker.parent for marker in mirrors.glob(f"*/{UNCLAIMED}")}
    return sorted([*(unclaimed - used), *mirrors.glob("*.new-*")])


def discard(folder: Path) -> bool:
    """Removes one of `left_behind`, unless a process fetches there now; whether it did.

    The caller sees to it that nobody is about to claim it: holds the collector's lock.
    """
    name = folder.name.partition(".")[0]
    with folder.with_name(f"{name}.lock").open("a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if folder.name == name and not (folder / UNCLAIMED).exists():
            return False
        shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _clone(mirror: Path, url: RemoteUrl, timeout: float | None) -> None:
    for left_behind in mirror.parent.glob(f"{mirror.name}.new-*"):
        shutil.rmtree(left_behind, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{mirror.name}.new-", dir=mirror.parent))
    try:
        target = unfinished / "mirror"
        command = ["clone", "--quiet", "--bare", "--template=", "--no-recurse-submodules"]
        _git([*command, "--", url.fetch_url, str(target)], url, timeout)
        (target / UNCLAIMED).touch()
        target.rename(mirror)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _fetch(mirror: Path, url: RemoteUrl, timeout: float | None) -> None:
    _sweep(mirror)
    at = [f"--git-dir={mirror}"]
    command = ["fetch", "--quiet", "--prune", "--no-write-fetch-head", "--no-recurse-submodules", "--no-tags"]
    _git([*at, *command, "--", url.fetch_url, *REFSPECS], url, timeout)
    head = _git([*at, "ls-remote", "--symref", "--", url.fetch_url, "HEAD"], url, timeout)
    for line in head.splitlines():
        if line.startswith("ref: refs/heads/"):
            _git([*at, "symbolic-ref", "HEAD", line.removeprefix("ref: ").split("\t")[0]], url, timeout)
            return
    detached = head.split("\t")[0].strip()
    if detached:
        _git([*at, "update-ref", "--no-deref", "HEAD", detached], url, timeout)


def _sweep(mirror: Path) -> None:
    """Removes what a killed git left in the mirror: nobody else writes there while the lock is held."""
    for pattern in ("*.lock", "refs/**/*.lock", "objects/info/**/*.lock", "objects/pack/tmp_*"):
        for left_behind in mirror.glob(pattern):
            left_behind.unlink(missing_ok=True)


@contextmanager
def _only_one(mirror: Path, url: RemoteUrl, timeout: float | None) -> Iterator[None]:
    """Holds the mirror's lock; the lock dies with its process, so a killed fetch blocks nobody."""
    deadline = None if timeout is None else time.monotonic() + timeout
    with mirror.with_name(f"{mirror.name}.lock").open("a", encoding="utf-8") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if deadline is not None and time.monotonic() > deadline:
                    raise RepositoryError(
                        f"another process has been fetching {url.location} for {timeout:g} s",
                        hint="try again when it is done",
                    ) from None
                time.sleep(LOCK_POLL_SECONDS)
        yield


def _environment(url: RemoteUrl) -> dict[str, str]:
    """The user's environment without what would redirect git, and with this fetch's credentials."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "KB_")) or name in KEPT_VARIABLES
    }
    environment |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_ALLOW_PROTOCOL": "https:ssh:git:file",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    if url.username or url.password:
        scheme_and_host = "/".join(url.fetch_url.split("/", 3)[:3])
        key = f"credential.{scheme_and_host}.helper"
        # The empty entry forgets the user's helpers: they would be asked to store what is used only once.
        environment |= {
            "KB_URL_USERNAME": url.username,
            "KB_URL_PASSWORD": url.password,
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": key,
            "GIT_CONFIG_VALUE_0": "",
            "GIT_CONFIG_KEY_1": key,
            "GIT_CONFIG_VALUE_1": CREDENTIAL_HELPER,
        }
    return environment


def _git(arguments: list[str], url: RemoteUrl, timeout: float | None) -> str:
    settings = [part for setting in FIXED_SETTINGS for part in ("-c", setting)]
    try:
        process = subprocess.Popen(
            ["git", *settings, *arguments],
            env=_environment(url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A session of its own has no terminal to ask for passwords on, and can be ended as a whole.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise RepositoryError(
            "the program git was not found", hint="install git: kb needs it to fetch from a URL"
        ) from None
    try:
        output, complaint = process.communicate(timeout=timeout)
    except BaseException as error:
        _end(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise RepositoryError(
                f"fetching {url.location} took longer than {timeout:g} s",
                hint="try again, or allow more time",
            ) from None
        raise
    if process.returncode:
        raise _refused(url, complaint.decode("utf-8", "replace"))
    return output.decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    with process:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _reason(lines: list[str]) -> str:
    """The line of git's complaint that says why, and the next where it ends in a colon.

    What ssh says comes before git's own "Could not read from remote repository", which says nothing.
    """
    telling = [
        number
        for number, line in enumerate(lines)
        if line.startswith(("fatal:", "error:", "remote:", "ssh:")) and not line.startswith(EMPTY_COMPLAINT)
    ]
    if not telling:
        return lines[0] if lines else "git failed"
    first = telling[0]
    return " ".join(lines[first : first + 2]) if lines[first].endswith(":") else lines[first]


def _refused(url: RemoteUrl, complaint: str) -> RepositoryError:
    lines = [line.strip() for line in url.redact(complaint).splitlines() if line.strip()]
    said = _reason(lines)
    lowered = complaint.lower()
    if "authentication" in lowered or "username" in lowered or "permission denied" in lowered:
        hint = "check the credentials: an ssh key, a credential helper, or user:token@ in the URL"
    elif "dubious ownership" in lowered:
        hint = "the repository belongs to another user: see git's setting safe.directory"
    elif "not found" in lowered or "does not appear to be" in lowered or "does not exist" in lowered:
        hint = "check the address"
    else:
        hint = "check the address and the network"
    return RepositoryError(f"cannot fetch {url.location}: {one_line(said)}", hint=hint)
