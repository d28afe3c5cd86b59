from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

import kb
from kb.errors import DatabaseError
from kb.store import schema
from kb.store.database import Database
from kb.store.schema import Relation
from tests.store import schema_dump

ROOT = Path(__file__).resolve().parents[2]


def major(database: Database) -> int:
    with database.owner() as connection:
        return connection.info.server_version // 10_000


def test_the_committed_schema_is_what_the_revisions_make(database: Database) -> None:
    if major(database) != 18:
        pytest.skip("pg_dump 18 writes the schema of an older server in other words")
    assert schema_dump.dump(database) == schema_dump.COMMITTED.read_text(encoding="utf-8"), (
        "after adding a revision run `python -m tests.store.schema_dump`"
    )


def test_the_revisions_go_down_to_nothing_and_up_to_the_same_schema(database: Database) -> None:
    before = schema_dump.dump(database)

    with database.owner() as connection:
        schema.downgrade(connection, "base")
    with database.owner() as connection:
        left = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'"
            " UNION ALL SELECT proname FROM pg_proc p WHERE pronamespace = 'public'::regnamespace"
            " AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"
        ).fetchall()
    assert left == [("kb_schema_version",)]
    assert database.schema_state().relation is Relation.EMPTY

    assert database.migrate().relation is Relation.CURRENT
    assert schema_dump.dump(database) == before


def test_an_index_of_vectors_that_is_there_gets_the_graph_of_its_revision(database: Database) -> None:
    def graph() -> list[str]:
        with database.owner() as connection:
            row = connection.execute(
                "SELECT reloptions FROM pg_class WHERE relname LIKE 'artifact\\_embedding\\_hnsw\\_%'"
            ).fetchone()
        assert row is not None
        return list(row[0])

    with database.owner() as connection:
        schema.downgrade(connection, "0008")
    with database.owner() as connection:
        connection.execute("INSERT INTO embedding_model (model_id, dimensions) VALUES ('static:m', 3)")
        connection.execute("SELECT ensure_vector_index(model_pk) FROM embedding_model")
    assert graph() == ["m=16", "ef_construction=64"]

    assert database.migrate().relation is Relation.CURRENT
    assert graph() == ["m=24", "ef_construction=128"]


def test_the_revisions_form_one_line_and_their_files_are_named_by_it() -> None:
    config = Config()
    config.set_main_option("script_location", str(ROOT / "migrations"))
    script = ScriptDirectory.from_config(config)

    line = [revision.revision for revision in script.walk_revisions("base", "heads")]

    assert len(script.get_heads()) == 1
    assert tuple(reversed(line)) == schema.revisions()


def test_every_constraint_has_a_name_that_was_chosen(database: Database) -> None:
    with database.owner() as connection:
        generated = connection.execute(
            # What PostgreSQL names by itself: table_column_check, table_check1...
            "SELECT conname FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'"
            r" AND conname ~ '_(check\d*|not_null)$' AND conname <> 'artifact_grounded_check'"
        ).fetchall()
    assert generated == []


def test_an_empty_database_migrates_by_itself(empty_database: Database) -> None:
    assert empty_database.schema_state() == (Relation.EMPTY, None, schema.revisions()[-1])
    state = empty_database.ensure_ready()
    assert state == (Relation.CURRENT, schema.revisions()[-1], schema.revisions()[-1])


def test_processes_that_start_on_an_empty_database_together_migrate_it_once(empty_database: Database) -> None:
    states: list[object] = []
    threads = [
        threading.Thread(target=lambda: states.append(empty_database.ensure_ready().relation))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert states == [Relation.CURRENT] * 3


@pytest.mark.parametrize(
    ("version", "message", "hint"),
    [("0000", "is at schema 0000", "upgrade"), ("9999", "is at schema 9999", "upgrade")],
)
def test_a_database_that_a_newer_kb_migrated_is_left_alone(
    database: Database, version: str, message: str, hint: str
) -> None:
    with database.owner() as connection:
        connection.execute("UPDATE kb_schema_version SET version_num = %s", (version,))
    for use in (database.ensure_ready, database.migrate):
        with pytest.raises(DatabaseError, match=message) as caught:
            use()
        assert hint in str(caught.value.hint)
        assert caught.value.exit_code == 4


def test_a_database_that_is_behind_says_which_command_helps(empty_database: Database) -> None:
    with empty_database.owner() as connection:
        schema.upgrade(connection, schema.revisions()[0])
    assert empty_database.schema_state().relation is Relation.BEHIND

    with pytest.raises(DatabaseError, match="is at schema 0001") as caught:
        empty_database.ensure_ready()
    assert caught.value.hint == "Run `kb db migrate`."

    assert empty_database.migrate().relation is Relation.CURRENT


def test_a_database_with_somebody_elses_tables_is_not_touched(empty_database: Database) -> None:
    with empty_database.owner() as connection:
        connection.execute("CREATE TABLE public.customer (id int)")
    assert empty_database.schema_state().relation is Relation.FOREIGN
    for use in (empty_database.ensure_ready, empty_database.migrate):
        with pytest.raises(DatabaseError, match="not kb's"):
            use()


def test_a_migration_does_not_wait_long_behind_a_lock(empty_database: Database) -> None:
    with empty_database.owner() as connection:
        schema.upgrade(connection, "0001")
    with empty_database.owner() as other:
        other.execute("LOCK TABLE kb_schema_version IN ACCESS SHARE MODE")
        other.execute("LOCK TABLE artifact, lineage, code_span IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(DatabaseError) as caught:
            empty_database.migrate()
    assert caught.value.data["sqlstate"] == "55P03"
    assert empty_database.schema_state().relation is Relation.BEHIND


def test_the_migrations_are_found_inside_an_installed_package(tmp_path: Path) -> None:
    # What the wheel holds: the package, and the folder that pyproject.toml adds to it.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "migrations" in wheel["only-include"]
    assert wheel["sources"]["migrations"] == "kb/_migrations"
    shutil.copytree(Path(kb.__file__).parent, tmp_path / "kb")
    shutil.copytree(ROOT / "migrations", tmp_path / "kb" / "_migrations")

    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "from kb.store import schema; print(schema.migrations_folder()); print(*schema.revisions())",
        ],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    ).stdout.splitlines()

    assert said == [str((tmp_path / "kb" / "_migrations").resolve()), " ".join(schema.revisions())]


class OldServer:
    """Answers like a server that kb cannot use: the only thing here that no test server can be."""

    def __init__(self, number: int, version: str, pgvector: str | None) -> None:
        self.row = (number, version, pgvector)

    def execute(self, _: str) -> OldServer:
        return self

    def fetchone(self) -> tuple[int, str, str | None]:
        return self.row


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (OldServer(140012, "14.12", "0.8.0"), "the server is PostgreSQL 14.12; kb needs PostgreSQL 15"),
        (OldServer(150004, "15.4", None), "the server has no pgvector"),
        (OldServer(170000, "17.0", "0.7.4"), "the database has pgvector 0.7.4; kb needs"),
    ],
)
def test_a_server_that_is_too_old_is_refused_in_one_line(server: OldServer, message: str) -> None:
    with pytest.raises(DatabaseError, match=message) as caught:
        schema.require_server(server)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pgvector", ["0.8.0", "0.10.1", "1.0.0"])
def test_a_server_that_is_new_enough_is_accepted(pgvector: str) -> None:
    schema.require_server(OldServer(150000, "15.0", pgvector))  # type: ignore[arg-type]


def test_the_test_server_can_carry_kb(database: Database) -> None:
    with psycopg.connect(database.urls.owner) as connection:
        schema.require_server(connection)
