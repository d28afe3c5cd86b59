from __future__ import annotations

import pickle
import socket
from typing import Literal

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from kb.errors import DatabaseError, IntegrityError, UsageError
from kb.store.database import Database, ReaderPool, display_url, parse_url
from kb.store.search.steering import steered


def test_a_session_has_the_role_it_was_asked_for_and_no_more(database: Database) -> None:
    for open_session, role in ((database.writer, "kb_writer"), (database.reader, "kb_reader")):
        with open_session() as connection:
            row = connection.execute(
                "SELECT current_user::text, rolsuper, rolcreatedb, rolcreaterole,"
                " (SELECT count(*) FROM pg_class WHERE relowner = r.oid)"
                " FROM pg_roles r WHERE rolname = current_user"
            ).fetchone()
        assert row == (role, False, False, False, 0)


def test_one_url_serves_every_role(database: Database) -> None:
    shared = Database.at(database.urls.owner)
    for open_session, role in ((shared.writer, "kb_writer"), (shared.reader, "kb_reader")):
        with open_session() as connection:
            row = connection.execute(
                "SELECT current_user::text, current_setting('is_superuser'), current_setting('timezone')"
            ).fetchone()
        assert row == (role, "off", "UTC")


def test_a_user_who_is_not_a_member_cannot_become_the_writer(database: Database) -> None:
    as_reader = Database.at(make_conninfo(database.urls.owner, user="kb_reader"))
    with as_reader.reader() as connection:
        assert connection.execute("SELECT count(*) FROM artifact").fetchone() == (0,)
    with pytest.raises(DatabaseError, match="cannot act as kb_writer") as caught, as_reader.writer():
        pass
    assert "GRANT kb_writer TO kb_reader" in str(caught.value.hint)


@pytest.mark.parametrize("role", ["kb_writer", "kb_reader"])
def test_who_logs_in_as_a_role_cannot_become_another(
    database: Database, role: Literal["kb_writer", "kb_reader"]
) -> None:
    with database.connect(role) as connection:
        if connection.info.user != role:
            pytest.skip("the test server has one user for everything: its sessions can go back to it")
        for other in {"postgres", "kb_owner", "kb_writer", "kb_reader"} - {role}:
            with pytest.raises(psycopg.Error):
                connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(other)))
            connection.rollback()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO path (path) VALUES ('x')",
        "DELETE FROM artifact",
        "UPDATE lineage SET tip_ordinal = 0",
        "TRUNCATE path",
        "COPY path (path) FROM STDIN",
        "CREATE TABLE public.t (x int)",
        "SELECT nextval('path_path_id_seq')",
    ],
)
def test_the_reader_cannot_write_whatever_its_session_says(database: Database, statement: str) -> None:
    for read_only in ("on", "off"):
        with pytest.raises(DatabaseError) as caught, database.reader() as connection:
            connection.execute(f"SET default_transaction_read_only = {read_only}")  # type: ignore[arg-type]
            connection.commit()
            connection.execute(statement)  # type: ignore[arg-type]
        allowed = {"42501"} if read_only == "off" else {"42501", "25006"}
        assert caught.value.data["sqlstate"] in allowed


def test_the_reader_reads_every_table(database: Database) -> None:
    with database.reader() as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        unreadable = [
            name for (name,) in tables
            if connection.execute("SELECT has_table_privilege(%s, 'SELECT')", (f"public.{name}",)).fetchone()
            != (True,)
        ]  # fmt: skip
    assert len(tables) >= 24
    assert unreadable == []


def test_a_session_commits_when_its_block_ends_well_and_not_otherwise(database: Database) -> None:
    with database.writer() as connection:
        connection.execute("INSERT INTO path (path) VALUES ('kept')")
    with pytest.raises(ZeroDivisionError), database.writer() as connection:
        connection.execute("INSERT INTO path (path) VALUES ('dropped')")
        raise ZeroDivisionError
    with database.reader() as connection:
        assert connection.execute("SELECT path FROM path").fetchall() == [("kept",)]


def test_driver_errors_become_errors_of_kb_by_constraint(database: Database) -> None:
    with database.writer() as connection:
        connection.execute("INSERT INTO repository (name, location, is_remote) VALUES ('a', '/a', false)")
    with pytest.raises(UsageError, match="already has this name") as taken, database.writer() as connection:
        connection.execute("INSERT INTO repository (name, location, is_remote) VALUES ('a', '/b', false)")
    assert taken.value.data == {"constraint": "repository_name_key", "sqlstate": "23505"}
    with pytest.raises(IntegrityError) as dangling, database.writer() as connection:
        connection.execute("INSERT INTO lineage (repository_id, recipe_id) VALUES (1, 1)")
    assert dangling.value.data["constraint"] == "lineage_recipe_fkey"
    with pytest.raises(DatabaseError, match="does not exist") as missing, database.reader() as connection:
        connection.execute("SELECT FROM nowhere")
    assert "kb db migrate" in str(missing.value.hint)


def test_messages_do_not_quote_rows(database: Database) -> None:
    with pytest.raises(IntegrityError) as caught, database.writer() as connection:
        connection.execute("INSERT INTO path (path) VALUES ('secret-path')")
        connection.execute("INSERT INTO path (path) VALUES ('secret-path')")
    assert "secret-path" not in str(caught.value)


def test_an_unreachable_server_is_one_line_without_the_password() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        database = Database.at(f"postgresql://someone:hunter2@127.0.0.1:{port}/kb")
        with pytest.raises(DatabaseError, match=f"someone@127.0.0.1:{port}/kb") as caught:
            database.ensure_ready()
    said = f"{caught.value} {caught.value.hint} {caught.value.data} {database!r}"
    assert "hunter2" not in said
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("/kb: Connection refused")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("url", ["postgresql://u:hunter2@[h/kb", "hunter2", "mysql://u:hunter2@h/kb"])
def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(DatabaseError, match="not valid") as caught:
        Database.at(url).ensure_ready()
    assert "hunter2" not in f"{caught.value} {caught.value.hint} {caught.value.__cause__}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@db.example:5433/kb?sslmode=require", "postgresql://u@db.example:5433/kb"),
        ("host=db.example user=u password=p dbname=kb", "postgresql://u@db.example/kb"),
        ("postgresql://u@/kb?host=%2Frun%2Fkb", "postgresql://u@/kb?host=/run/kb"),
    ],
)
def test_a_database_is_shown_without_its_password(url: str, shown: str) -> None:
    assert display_url(url) == shown
    assert parse_url(url)["user"] == "u"


def test_a_database_travels_to_another_process(database: Database) -> None:
    assert pickle.loads(pickle.dumps(database)) == database


def test_a_pool_keeps_connections_and_replaces_broken_ones(database: Database) -> None:
    pool = ReaderPool(database, size=1)

    def backend() -> tuple[int, str]:
        with pool.reader() as connection:
            row = connection.execute("SELECT pg_backend_pid(), current_user::text").fetchone()
        assert row is not None
        return row

    first = backend()
    assert backend() == first
    assert first[1] == "kb_reader"

    with psycopg.connect(database.urls.owner) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (first[0],))
    assert backend() != first

    with pytest.raises(DatabaseError), pool.reader() as connection:
        connection.execute("SELECT FROM nowhere")
    assert backend()[1] == "kb_reader"
    pool.close()


def test_a_full_pool_closes_what_it_cannot_keep(database: Database) -> None:
    pool = ReaderPool(database, size=1)
    with pool.reader() as one, pool.reader() as two:
        assert one is not two
    assert [one.closed, two.closed].count(True) == 1
    pool.close()
    assert one.closed
    assert two.closed


def test_a_search_leaves_the_pool_planning_as_it_did(database: Database) -> None:
    pool = ReaderPool(database, size=1)
    with pool.reader() as connection:
        connection.execute("SELECT 1")  # a search is one of several statements of its transaction
        with steered(connection):
            pass
        planning = [connection.execute(f"SHOW {name}").fetchone() for name in ("plan_cache_mode", "jit")]
        scanning = connection.execute("SHOW enable_seqscan").fetchone()
    pool.close()
    assert planning == [("force_generic_plan",), ("off",)]
    assert scanning == ("on",)


def test_a_statement_of_the_pool_is_planned_once_and_not_once_a_call(database: Database) -> None:
    pool = ReaderPool(database, size=1)
    for name in ("one", "two", "three"):
        with pool.reader() as connection:
            connection.execute("SELECT count(*) FROM repository WHERE name = %s", (name,))

    with pool.reader() as connection:
        rows = connection.execute(
            """SELECT generic_plans, custom_plans FROM pg_prepared_statements
               WHERE statement LIKE 'SELECT count(*) FROM repository%%'"""
        ).fetchall()
    pool.close()

    assert rows == [(3, 0)]
