"""kb's own PostgreSQL: started when it is needed, on a unix socket only, and left running.

Layout of an instance's folder: `data` (the cluster), `socket`, `server.log`, `lock`. Without root the
folder is `postgresql` in the data home. Root cannot run PostgreSQL and other users cannot read root's
home, so then programs and instances live below `/var/lib/kb` and the server runs as a user without
rights. Whoever reaches the socket is trusted; its folder is open to the owner alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from kb.errors import DatabaseError
from kb.store.accounts import ServerAccount, account_for_root
from kb.store.binaries import PROGRAM_ENVIRONMENT, Binaries, install_for_other_users, locate
from kb.store.conversion import converted_errors
from kb.store.database import Database, RoleUrls
from kb.store.server_settings import render_settings

DATABASE = "kb"
OWNER = "kb_owner"
PORT = 5432
SYSTEM_FOLDER = Path("/var/lib/kb")
_SOCKET_NAME = f".s.PGSQL.{PORT}"
_SOCKET_PATH_LIMIT = 100  # 107 bytes on Linux, 103 on macOS
_START_SECONDS = 120  # crash recovery included
_PID_FILE_SECONDS = 5  # until pg_ctl's child has written its pid file
_NO_PROCESS = 2**31 - 1
_STILL_IN_USE = "pre-existing shared memory block"
_LOG_LIMIT = 4 << 20


@dataclass(frozen=True, slots=True)
class EmbeddedStatus:
    """What is known about the embedded server, running or not."""

    running: bool
    pid: int | None
    data: Path
    log: Path
    url: str


class EmbeddedServer:
    """The embedded server of one data home.

    Args:
        home: kb's data home; two homes have two servers.
        bindir: PostgreSQL's programs, instead of the wheel's.
        system: where root keeps programs and instances.
    """

    def __init__(self, home: Path, bindir: Path | None = None, system: Path = SYSTEM_FOLDER) -> None:
        self._home = home.absolute()
        self._bindir = bindir
        self._system = system
        self._root = os.geteuid() == 0
        digest = hashlib.sha256(os.fsencode(self._home)).hexdigest()[:12]
        self.folder = system / digest if self._root else self._home / "postgresql"
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self.socket_folder = self.folder / "socket"
        if len(os.fsencode(self.socket_folder / _SOCKET_NAME)) > _SOCKET_PATH_LIMIT:
            self.socket_folder = Path("/tmp") / f"kb-{os.geteuid()}-{digest}"  # noqa: S108  (checked below)

    def urls(self) -> RoleUrls:
        """Connection URLs, one per role, whether the server runs or not."""
        host = quote(str(self.socket_folder), safe="")
        return RoleUrls(*(f"postgresql://{role}@/{DATABASE}?host={host}&port={PORT}" for role in _ROLES))

    def database(self) -> Database:
        """The server's database, started if need be."""
        return Database(self.ensure_running())

    def ensure_running(self) -> RoleUrls:
        """Connection URLs of a server that accepts connections; started, and made, if need be.

        Raises:
            DatabaseError: it cannot be made or started; the message has the end of its log.
        """
        if not self._answers():
            with self._locked():
                if not self._answers():
                    self._start()
        return self.urls()

    def stop(self) -> bool:
        """The server is down afterwards; whether it was up. Open transactions are rolled back."""
        if not self.data.exists():
            return False
        with self._locked():
            return self._stop(signal.SIGINT)  # "fast": sessions end, a checkpoint is written

    def status(self) -> EmbeddedStatus:
        """Whether the server runs, and where it keeps its things; starts nothing."""
        running = self._answers()
        pid = self._living_pid() if running else None
        return EmbeddedStatus(running, pid, self.data, self.log, self.urls().owner)

    def reset(self) -> None:
        """The server is down and everything it kept is gone; the next start makes it anew."""
        if not self.folder.exists():
            return
        with self._locked():
            self._stop(signal.SIGQUIT)  # "immediate": what would be written is deleted anyway
            shutil.rmtree(self.data, ignore_errors=True)
            shutil.rmtree(self.socket_folder, ignore_errors=True)
            self.log.unlink(missing_ok=True)

    def _answers(self) -> bool:
        """Whether something accepts connections on the socket: a millisecond, no driver, no lock."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(str(self.socket_folder / _SOCKET_NAME))
            except OSError:
                return False
        # While it recovers from a crash the server accepts and refuses: the pid file says `ready`.
        return self._pid_file()[7:8] == ["ready"]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(mode=0o755 if self._root else 0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _start(self) -> None:
        binaries, account = self._programs()
        major = binaries.major()
        if not self.data.exists():
            self._initialize(binaries, account)
        self._require_major(major)
        self._private_folder(self.socket_folder, account)
        self._write_settings(account)
        deadline = time.monotonic() + _START_SECONDS
        while not self._launched(binaries, account, deadline):
            # A server that was killed may have left a session that still works on the data; PostgreSQL
            # refuses to start beside it, rightly. It ends by itself.
            time.sleep(0.2)
        self._ensure_database()

    def _programs(self) -> tuple[Binaries, ServerAccount | None]:
        if not self._root:
            return locate(self._bindir), None
        owner = self.data.stat().st_uid if self.data.exists() else None
        account = account_for_root(owner)
        binaries = locate(self._bindir) if self._bindir else install_for_other_users(self._system)
        account.require_readable(binaries.program("postgres"))
        return binaries, account

    def _initialize(self, binaries: Binaries, account: ServerAccount | None) -> None:
        """Makes the cluster beside its place and renames it: an interrupted initdb leaves nothing behind."""
        unfinished = self.folder / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._private_folder(unfinished, account)
        # No locale of the machine's: the same order everywhere, also after an upgrade of the C library.
        arguments = [
            "--username",
            OWNER,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-instructions",
        ]
        self._run(
            [binaries.program("initdb"), "-D", str(unfinished), *arguments],
            account,
            "cannot make the cluster",
        )
        with (unfinished / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write("include 'kb.conf'\n")
        hba = unfinished / "pg_hba.conf"
        hba.write_text("# unix socket only; its folder is private\nlocal all all trust\n", encoding="utf-8")
        unfinished.rename(self.data)

    def _require_major(self, major: int) -> None:
        found = (self.data / "PG_VERSION").read_text(encoding="ascii").strip()
        if found != str(major):
            raise DatabaseError(
                f"{self.data} was made by PostgreSQL {found}; kb's programs are PostgreSQL {major}",
                hint=f"Set KB_PG_BINDIR to programs of version {found}, or run `kb db reset` and index again.",
            )

    def _private_folder(self, folder: Path, account: ServerAccount | None) -> None:
        """The folder exists, is ours (not planted by somebody else in /tmp) and open to its owner alone."""
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        allowed = {os.geteuid()} | ({account.uid} if account else set())
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in allowed:
            raise DatabaseError(f"{folder} belongs to somebody else", hint="Remove it and try again.")
        folder.chmod(0o700)
        if account:
            os.chown(folder, account.uid, account.gid)

    def _write_settings(self, account: ServerAccount | None) -> None:
        target = self.data / "kb.conf"
        target.write_text(render_settings(self.socket_folder, PORT), encoding="utf-8")
        if account:
            os.chown(target, account.uid, account.gid)

    def _launched(self, binaries: Binaries, account: ServerAccount | None, deadline: float) -> bool:
        """Whether the server accepts connections now; False if it is worth another try."""
        self._forget_dead_owners()
        if self._living_pid() is None:
            self._launch(binaries, account)
        grace = time.monotonic() + _PID_FILE_SECONDS
        while not self._answers():
            now = time.monotonic()
            if now > deadline or (now > grace and self._living_pid() is None):
                end = self._end_of_log()
                if _STILL_IN_USE in end and now < deadline:
                    return False
                raise DatabaseError(f"the embedded PostgreSQL did not start: {end}", hint=f"See {self.log}.")
            time.sleep(0.01)
        return True

    def _launch(self, binaries: Binaries, account: ServerAccount | None) -> None:
        if self.log.exists() and self.log.stat().st_size > _LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".old"))
        self.log.touch(mode=0o600)
        if account:
            os.chown(self.log, account.uid, account.gid)
        # Not waiting here: pg_ctl looks every tenth of a second, the socket can be asked more often.
        command = [binaries.program("pg_ctl"), "start", "--no-wait", "--silent"]
        self._run([*command, "-D", str(self.data), "-l", str(self.log)], account, "cannot start PostgreSQL")

    def _ensure_database(self) -> None:
        url = self.urls().owner.replace(f"/{DATABASE}?", "/postgres?", 1)
        with converted_errors(), psycopg.connect(url, autocommit=True) as connection:
            found = connection.execute("SELECT FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if found is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _stop(self, how: signal.Signals) -> bool:
        pid = self._living_pid()
        if pid is None:
            return False
        os.kill(pid, how)
        deadline = time.monotonic() + _START_SECONDS
        while self._living_pid() == pid:
            if time.monotonic() > deadline:
                raise DatabaseError("the embedded PostgreSQL does not stop", hint=f"See {self.log}.")
            time.sleep(0.01)
        return True

    def _pid_file(self) -> Sequence[str]:
        """Lines of postmaster.pid: pid, data folder, start, port, socket folder, address, key, status."""
        try:
            text = (self.data / "postmaster.pid").read_text(encoding="utf-8")
        except OSError:
            return ()
        return [line.strip() for line in text.splitlines()]

    def _living_pid(self) -> int | None:
        """The pid of the pid file, if that is a server and not a program that got its number later."""
        lines = self._pid_file()
        if not lines or not lines[0].isdigit():
            return None
        pid = int(lines[0])
        return pid if is_postgres(pid) else None

    def _forget_dead_owners(self) -> None:
        """After a crash a recorded pid may be another program's by now, and PostgreSQL would not start.

        The number is replaced by one that no process has; the file stays, because PostgreSQL finds in it
        whether sessions of the dead server still hold its shared memory.
        """
        for file in (self.data / "postmaster.pid", self.socket_folder / f"{_SOCKET_NAME}.lock"):
            try:
                first, rest = file.read_text(encoding="utf-8").split("\n", 1)
            except (OSError, ValueError):
                continue
            if first.strip().isdigit() and not is_postgres(int(first)):
                owner = file.stat()
                file.write_text(f"{_NO_PROCESS}\n{rest}", encoding="utf-8")
                os.chown(file, owner.st_uid, owner.st_gid)

    def _run(self, command: Sequence[str], account: ServerAccount | None, failure: str) -> None:
        prefix = account.prefix() if account else []
        try:
            done = subprocess.run(
                [*prefix, *command],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                cwd=self.folder,
                env=PROGRAM_ENVIRONMENT,
            )
        except OSError as error:
            raise DatabaseError(f"{failure}: {error}") from error
        if done.returncode != 0:
            said = " ".join(done.stderr.split()) or self._end_of_log()
            raise DatabaseError(f"{failure}: {said}", hint=f"See {self.log}.")

    def _end_of_log(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        return " | ".join(lines[-3:]) or "it wrote no log"


_ROLES = (OWNER, "kb_writer", "kb_reader")


def is_postgres(pid: int) -> bool:
    """Whether the process lives (a zombie does not) and runs PostgreSQL."""
    if Path("/proc/self/stat").exists():
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        name, _, rest = text.partition("(")[2].rpartition(")")
        return name.startswith("postgres") and rest.split()[0] not in {"Z", "X"}
    said = subprocess.run(
        ["/bin/ps", "-o", "stat=,comm=", "-p", str(pid)], check=False, capture_output=True, text=True
    ).stdout.strip()
    return "postgres" in said and not said.startswith("Z")
