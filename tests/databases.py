"""The tests' PostgreSQL: one server per process, a migrated template, a fresh clone per test.

`KB_TEST_DB_URL` names a server to use instead (its user must be a superuser, and pgvector installed).
Otherwise `testing.postgresql` starts the programs of the wheel; the machine's own are never looked for.
"""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from kb.store import binaries
from kb.store.accounts import ServerAccount, account_for_root
from kb.store.database import Database, RoleUrls
from kb.store.embedded import SYSTEM_FOLDER

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of a library that is older than our warnings
    from testing.postgresql import Postgresql

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_SETTINGS = (
    "-h 127.0.0.1 -F -c logging_collector=off -c full_page_writes=off -c synchronous_commit=off"
    " -c max_connections=64 -c shared_buffers=64MB -c wal_level=minimal -c max_wal_senders=0"
    " -c autovacuum=off -c timezone=UTC -c max_wal_size=256MB"
)


class PrivateServer(Postgresql):  # type: ignore[misc]
    """A server that ends with this process, also when it is killed, and never runs as root."""

    account: ServerAccount | None = None

    def initialize(self) -> None:
        super().initialize()
        if self.account:
            os.chown(self.base_dir, self.account.uid, self.account.gid)

    def initialize_database(self) -> None:
        if self.account:
            for folder in self.subdirectories:
                os.chown(Path(self.base_dir, folder), self.account.uid, self.account.gid)
        # The parent starts `initdb` itself and cannot put anything before it: hand it a script.
        prefix = " ".join(_prefix(self.account))
        script = Path(self.base_dir, "initdb")
        script.write_text(f'#!/bin/sh\ncd "{self.base_dir}"\nexec {prefix} "{self.initdb}" "$@"\n')
        script.chmod(0o755)
        self.initdb = str(script)
        super().initialize_database()

    def get_server_commandline(self) -> list[str]:
        return [*_prefix(self.account), *super().get_server_commandline()]


def _prefix(account: ServerAccount | None) -> list[str]:
    dies_with_parent = ["--pdeathsig", "INT"]
    if account:
        return [*account.prefix(), *dies_with_parent]
    setpriv = shutil.which("setpriv")
    return [setpriv, *dies_with_parent] if setpriv else []


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """URL of a superuser of the test server, at its database `postgres`."""
    given = os.environ.get("KB_TEST_DB_URL")
    if given:
        yield given
        return
    account = None
    if os.geteuid() == 0:
        account = PrivateServer.account = account_for_root(None)
    programs = binaries.install_for_other_users(SYSTEM_FOLDER) if account else binaries.locate(None)
    # Directly below /tmp: a unix socket's path is short, and pytest's own folders are closed to others.
    folder = tempfile.mkdtemp(prefix="kb-test-", dir="/tmp")
    server = PrivateServer(
        base_dir=folder,
        initdb=programs.program("initdb"),
        initdb_args="-U postgres -A trust -E UTF8 --locale=C --no-sync --no-instructions",
        postgres=programs.program("postgres"),
        postgres_args=_SETTINGS,
        auto_start=2,
    )
    try:
        yield f"postgresql://postgres@/postgres?host={folder}/tmp&port={server.settings['port']}"
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """Name of a migrated database that nobody is connected to."""
    name = f"kb_template_{os.getpid()}"
    with _administer(server_url) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        try:
            database_named(server_url, name).migrate()
            yield name
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


_numbers = itertools.count(1)


@pytest.fixture
def empty_database(server_url: str) -> Iterator[Database]:
    """A new database without a schema."""
    yield from fresh_database(server_url, "template0")


@pytest.fixture
def database(server_url: str, template: str) -> Iterator[Database]:
    """A new database with the current schema and no rows, for one test."""
    yield from fresh_database(server_url, template)


@pytest.fixture
def second_database(server_url: str, template: str) -> Iterator[Database]:
    """Another one, for tests that compare two."""
    yield from fresh_database(server_url, template)


def fresh_database(server_url: str, origin: str) -> Iterator[Database]:
    """Yields a new database made from the template `origin`, and drops it when it is resumed."""
    name = f"kb_test_{os.getpid()}_{next(_numbers)}"
    with _administer(server_url) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {origin}")
        try:
            yield database_named(server_url, name)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def database_named(server_url: str, name: str) -> Database:
    """A database of the test server; connections log in as the role where trust allows it."""
    owner = psycopg.conninfo.make_conninfo(server_url, dbname=name)
    if os.environ.get("KB_TEST_DB_URL"):
        return Database.at(owner)
    writer, reader = (psycopg.conninfo.make_conninfo(owner, user=role) for role in ("kb_writer", "kb_reader"))
    return Database(RoleUrls(owner, writer, reader))


def _administer(server_url: str) -> psycopg.Connection:
    return psycopg.connect(server_url, autocommit=True)


@pytest.fixture(autouse=True)
def only_local_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python code reaches unix sockets and loopback, nothing else. (libpq connects in C: only to URLs above.)"""

    def guard(method_name: str) -> None:
        original = getattr(socket.socket, method_name)

        def connect(self: socket.socket, address: object) -> object:
            if self.family in {socket.AF_INET, socket.AF_INET6}:
                host = address[0] if isinstance(address, tuple) else address
                if host not in _LOOPBACK:
                    raise PermissionError(f"a test tried to reach {host}")
            return original(self, address)

        monkeypatch.setattr(socket.socket, method_name, connect)

    guard("connect")
    guard("connect_ex")
