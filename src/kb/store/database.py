"""A database that kb may use: connections by role, and the state of its schema."""

from __future__ import annotations

import queue
import re
import select
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kb.errors import DatabaseError, KbError
from kb.store import schema
from kb.store.conversion import converted_errors
from kb.store.schema import Relation, SchemaState

Role = Literal["kb_owner", "kb_writer", "kb_reader"]
Connection = psycopg.Connection[Any]

_MIGRATION_LOCK = 0x6B62_0000
_CONNECT_TIMEOUT = 10  # seconds

# The extension's schema is on the path wherever an administrator has put it.
_SEARCH_PATH = """
SELECT set_config('search_path', concat_ws(', ', 'public', (
    SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension e
    JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'vector' AND n.nspname <> 'public')), false)
"""


class RoleUrls(NamedTuple):
    """Connection strings (URLs or `key=value`), one per role; they may be the same."""

    owner: str
    writer: str
    reader: str


@dataclass(frozen=True, slots=True, repr=False)
class Database:
    """One database, by how to reach it in each role. Holds no connection, so it travels to workers.

    Where the user of a connection string is not the role itself, the session becomes the role with
    SET ROLE: the user has to be a member (docs/schema.md). Every session is in UTC.
    """

    urls: RoleUrls

    @classmethod
    def at(cls, url: str) -> Database:
        """The database at one URL, used for every role.

        Raises:
            DatabaseError: the URL is not one; the message does not repeat it.
        """
        parse_url(url)
        return cls(RoleUrls(url, url, url))

    def __repr__(self) -> str:
        return f"Database({self.display()!r})"

    def display(self) -> str:
        """Where the database is, for people: without a password."""
        return display_url(self.urls.owner)

    @contextmanager
    def owner(self) -> Iterator[Connection]:
        """A connection with the rights of the schema's owner: migrations only."""
        with self._session("kb_owner", self.urls.owner) as connection:
            yield connection

    @contextmanager
    def writer(self) -> Iterator[Connection]:
        """A connection as `kb_writer`: commits when the block ends well, rolls back when not, closes.

        Raises:
            KbError: whatever the driver raises inside the block, converted.
        """
        with self._session("kb_writer", self.urls.writer) as connection:
            yield connection

    @contextmanager
    def reader(self) -> Iterator[Connection]:
        """A connection as `kb_reader`, which may only SELECT, in read-only transactions."""
        with self._session("kb_reader", self.urls.reader) as connection:
            yield connection

    def connect(self, role: Role) -> Connection:
        """A new connection in the role, not in a transaction; the caller closes it."""
        url = {"kb_owner": self.urls.owner, "kb_writer": self.urls.writer, "kb_reader": self.urls.reader}[
            role
        ]
        with converted_errors():
            return _connect(role, url)

    @contextmanager
    def _session(self, role: Role, url: str) -> Iterator[Connection]:
        with converted_errors(), _connect(role, url) as connection:
            yield connection

    def schema_state(self) -> SchemaState:
        """How the schema relates to this kb's revisions; reads only."""
        with self.owner() as connection:
            return schema.inspect(connection)

    def ensure_ready(self) -> SchemaState:
        """Returns once the schema is current; an empty database is migrated by itself.

        Raises:
            DatabaseError: unreachable, too old, foreign, behind or ahead; the hint says what to do.
        """
        state = self.schema_state()
        match state.relation:
            case Relation.CURRENT:
                return state
            case Relation.EMPTY:
                return self.migrate()
            case Relation.BEHIND:
                raise DatabaseError(
                    f"the database is at schema {state.found}; this kb needs {state.expected}",
                    hint="Run `kb db migrate`.",
                    found=state.found,
                    expected=state.expected,
                )
        raise _not_ours(state)

    def migrate(self) -> SchemaState:
        """The schema is current afterwards; one process migrates at a time, the others wait for it.

        Raises:
            DatabaseError: unreachable, too old a server, foreign, ahead, or a lock not to be had.
        """
        with self.owner() as connection:
            connection.execute("SET lock_timeout = '120s'")
            connection.execute("SELECT pg_advisory_lock(%s)", (_MIGRATION_LOCK,))
            # A revision that waits for a lock makes every later reader wait behind it: give up soon.
            connection.execute("SET lock_timeout = '5s'")
            connection.execute("SET statement_timeout = '15min'")
            state = schema.inspect(connection)
            connection.commit()
            if state.relation in {Relation.AHEAD, Relation.FOREIGN}:
                raise _not_ours(state)
            if state.relation is not Relation.CURRENT:
                schema.require_server(connection)
                connection.commit()
                _run_revisions(connection)
        return self.schema_state()


class ReaderPool:
    """Reading connections that are kept open between uses: for the server, where each call counts.

    Has the `reader` of `Database`. A connection that broke is not given out again.
    """

    def __init__(self, database: Database, size: int = 4) -> None:
        self._database = database
        self._idle: queue.LifoQueue[Connection] = queue.LifoQueue(size)

    @contextmanager
    def reader(self) -> Iterator[Connection]:
        """A connection as `kb_reader`; its transaction ends with the block."""
        connection = self._take()
        try:
            with converted_errors():
                yield connection
        finally:
            self._give_back(connection)

    def _take(self) -> Connection:
        while True:
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                return self._connect()
            if not _has_been_left(connection):
                return connection
            connection.close()

    def _connect(self) -> Connection:
        """A connection whose statements are planned once, not once a call.

        The statements of serving join up to seven tables by their keys: planning one took ten times as long
        as running it. A plan that knows no values is as good where every step is a look-up by key.
        """
        connection = self._database.connect("kb_reader")
        with converted_errors():
            # Compiling took forty times as long as running, where a generic plan's estimate was high.
            connection.execute("SET plan_cache_mode = force_generic_plan; SET jit = off")
            connection.commit()
        connection.prepare_threshold = 0
        return connection

    def _give_back(self, connection: Connection) -> None:
        try:
            # Not rolled back: the driver then forgets every statement that it has prepared.
            connection.commit()
            self._idle.put_nowait(connection)
        except (psycopg.Error, queue.Full):
            connection.close()

    def close(self) -> None:
        """Closes the idle connections; those in use are closed when they come back to a full pool."""
        while not self._idle.empty():
            self._idle.get_nowait().close()


def _has_been_left(connection: Connection) -> bool:
    """Whether the server has ended an idle connection: then there is something to read that nobody asked for."""
    if connection.closed:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def parse_url(url: str) -> dict[str, Any]:
    """The parts of a connection string.

    Raises:
        DatabaseError: it is not one. The text is not repeated: it may hold a password.
    """
    try:
        return dict(conninfo_to_dict(url))
    except (psycopg.Error, UnicodeError):
        raise DatabaseError(
            "the database URL is not valid",
            hint="It looks like postgresql://user:password@host:5432/name.",
        ) from None


def display_url(url: str) -> str:
    """`postgresql://user@host:port/name`, whatever form the connection string has; no password."""
    parts = parse_url(url)
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    name = parts.get("dbname") or parts.get("user") or ""
    host = str(parts.get("host") or parts.get("hostaddr") or "")
    if host.startswith("/"):
        return f"postgresql://{user}/{name}?host={host}"
    return f"postgresql://{user}{host}{port}/{name}"


def _connect(role: Role, url: str) -> Connection:
    parts = parse_url(url)
    parts.setdefault("connect_timeout", _CONNECT_TIMEOUT)
    parts.setdefault("application_name", role.replace("_", " "))
    try:
        connection: Connection = psycopg.connect(make_conninfo(**parts))
    except psycopg.OperationalError as error:
        raise _unreachable(url, error) from None
    try:
        _prepare(connection, role)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: Connection, role: Role) -> None:
    """Makes the session the role's: its rights, its read-only default, UTC, kb's search path."""
    statements = [sql.SQL("SET TIME ZONE 'UTC'")]
    if role == "kb_reader":
        statements.append(sql.SQL("SET default_transaction_read_only = on"))
        # One state for all statements of an answer, whatever is sealed or collected meanwhile.
        statements.append(sql.SQL("SET default_transaction_isolation = 'repeatable read'"))
    connection.execute(_SEARCH_PATH)
    connection.execute(sql.SQL("; ").join(statements))
    if role not in {"kb_owner", connection.info.user}:
        try:
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue) as error:
            raise DatabaseError(
                f"the database's user {connection.info.user!r} cannot act as {role}",
                hint=f"Run `kb db migrate` as the owner, then `GRANT {role} TO {connection.info.user}`.",
                sqlstate=error.sqlstate,
            ) from error
    connection.commit()


def _unreachable(url: str, error: psycopg.OperationalError) -> KbError:
    # libpq joins one attempt per address, each with indented advice; the last attempt has the reason, after
    # what `display_url` says already. A password never is in it.
    said = [line for line in str(error).strip().splitlines() if not line.startswith("\t")]
    reason = re.sub(r"^(?:connection (?:failed|is bad): )?connection to server .*? failed: ", "", said[-1])
    return DatabaseError(
        f"cannot connect to {display_url(url)}: {reason}",
        hint="Is the server running, and are host, user and password right?",
    )


def _run_revisions(connection: Connection) -> None:
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415  (as Alembic: rarely needed)

    try:
        schema.upgrade(connection)
    except DBAPIError as error:
        # SQLAlchemy wraps the driver's error and prints the statement; only the cause is of use.
        if isinstance(error.orig, psycopg.Error):
            raise error.orig from None
        raise


def _not_ours(state: SchemaState) -> DatabaseError:
    if state.relation is Relation.AHEAD:
        return DatabaseError(
            f"the database is at schema {state.found}, which this kb does not know (it has {state.expected})",
            hint="A newer kb has migrated it: upgrade this one.",
            found=state.found,
            expected=state.expected,
        )
    return DatabaseError("the database holds tables that are not kb's", hint="Give kb a database of its own.")
