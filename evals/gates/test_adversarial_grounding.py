"""Ungrounded knowledge is refused by the application and, whoever the client is, by the database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from kb.errors import GroundingError
from kb.identity.artifacts import seal_draft
from kb.model.artifacts import ArtifactDraft
from kb.store.conversion import convert
from kb.store.database import Database
from tests.store.rows import (
    ARTIFACT_COLUMNS,
    Connection,
    artifact_values,
    ground,
    insert_artifact,
    insert_grounded,
    insert_span,
    ungrounded,
)

pytestmark = pytest.mark.gate("grounding.adversarial")

Attack = Callable[[Connection], object]


@pytest.fixture
def writer(database: Database) -> Iterator[Connection]:
    """A client with the writer's role that goes past kb's code."""
    with _client(database, "kb_writer") as connection:
        yield connection


@pytest.fixture
def replica(database: Database) -> Iterator[Connection]:
    """The most that is inside the guarantee: a superuser in replica mode, where common triggers sleep."""
    with _client(database, "kb_owner") as connection:
        connection.execute("SET session_replication_role = replica")
        connection.commit()
        yield connection


def _client(database: Database, role: str) -> Connection:
    return database.connect(role)  # type: ignore[arg-type]


def refused(connection: Connection, attack: Attack) -> psycopg.Error:
    """The error that ends the attack, in its last statement or at COMMIT; nothing of it is left."""
    before = _everything(connection)
    connection.commit()
    with pytest.raises(psycopg.Error) as caught:
        attack(connection)
        connection.commit()
    connection.rollback()
    assert _everything(connection) == before
    assert ungrounded(connection) == 0
    return caught.value


def refused_as_ungrounded(connection: Connection, attack: Attack) -> None:
    error = refused(connection, attack)
    assert error.diag.constraint_name == "artifact_grounded_check"
    assert isinstance(convert(error), GroundingError)


def _everything(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT 'artifact', artifact_pk, NULL::bigint FROM public.artifact"
        " UNION ALL SELECT role, artifact_pk, span_pk FROM public.artifact_derived_from"
        " UNION ALL SELECT 'span', span_pk, NULL FROM public.code_span ORDER BY 1, 2, 3"
    ).fetchall()


def copy_artifact(connection: Connection) -> None:
    with connection.cursor().copy(f"COPY public.artifact ({ARTIFACT_COLUMNS}) FROM STDIN") as copy:  # type: ignore[arg-type]
        copy.write_row(
            tuple(
                value.hex().join(["\\x", ""]) if isinstance(value, bytes) else value
                for value in artifact_values("copied")
            )
        )


def insert_select(connection: Connection) -> None:
    connection.execute(
        f"INSERT INTO artifact ({ARTIFACT_COLUMNS}) SELECT sha256(artifact_id),"  # type: ignore[arg-type]
        f" {ARTIFACT_COLUMNS.partition(', ')[2]} FROM artifact"
    )


def ground_then_roll_back_to_a_savepoint(connection: Connection) -> None:
    artifact = insert_artifact(connection, "half")
    connection.execute("SAVEPOINT before_grounding")
    ground(connection, artifact, insert_span(connection, "half"))
    connection.execute("ROLLBACK TO before_grounding")


def ground_then_delete_the_grounding(connection: Connection) -> None:
    artifact = insert_artifact(connection, "fleeting")
    ground(connection, artifact, insert_span(connection, "fleeting"))
    connection.execute("DELETE FROM artifact_derived_from WHERE artifact_pk = %s", (artifact,))


def hide_the_tables_behind_temporary_ones(connection: Connection) -> None:
    artifact = insert_artifact(connection, "shadowed")
    connection.execute("CREATE TEMP TABLE artifact (artifact_pk bigint)")
    connection.execute("CREATE TEMP TABLE artifact_derived_from (artifact_pk bigint)")
    connection.execute("INSERT INTO artifact_derived_from VALUES (%s)", (artifact,))


def postpone_the_check(connection: Connection) -> None:
    insert_artifact(connection, "postponed")
    connection.execute("SET CONSTRAINTS ALL DEFERRED")


def delete_every_grounding(connection: Connection) -> None:
    connection.execute("DELETE FROM artifact_derived_from")


def delete_one_of_one(connection: Connection) -> None:
    connection.execute(
        "DELETE FROM artifact_derived_from WHERE artifact_pk ="
        " (SELECT artifact_pk FROM artifact WHERE logical_key = 'symbol:single')"
    )


INSERTIONS: list[Attack] = [
    lambda connection: insert_artifact(connection, "alone"),
    copy_artifact,
    insert_select,
    ground_then_roll_back_to_a_savepoint,
    ground_then_delete_the_grounding,
    postpone_the_check,
    hide_the_tables_behind_temporary_ones,
]
DELETIONS: list[Attack] = [delete_every_grounding, delete_one_of_one]


def move_the_only_grounding(connection: Connection) -> None:
    connection.execute(
        "UPDATE artifact_derived_from SET artifact_pk ="
        " (SELECT artifact_pk FROM artifact WHERE logical_key = 'symbol:double') WHERE artifact_pk ="
        " (SELECT artifact_pk FROM artifact WHERE logical_key = 'symbol:single')"
    )


def rename_the_artifact_away(connection: Connection) -> None:
    connection.execute("UPDATE artifact SET artifact_pk = artifact_pk + 1000000")


def overwrite_by_upsert(connection: Connection) -> None:
    connection.execute(
        "INSERT INTO artifact_derived_from SELECT * FROM artifact_derived_from"
        " ON CONFLICT (artifact_pk, span_pk, role) DO UPDATE SET artifact_pk ="
        " (SELECT artifact_pk FROM artifact WHERE logical_key = 'symbol:double'), role = 'moved'"
    )


def truncations() -> list[Attack]:
    targets = [
        "artifact_derived_from", "artifact CASCADE", "code_span CASCADE", "grounding_location",
        "artifact, artifact_derived_from, artifact_edge CASCADE",
    ]  # fmt: skip
    return [lambda connection, target=target: connection.execute(f"TRUNCATE {target}") for target in targets]


@pytest.fixture(autouse=True)
def knowledge(request: pytest.FixtureRequest) -> None:
    """Two artifacts: one with one grounding, one with two."""
    if "database" not in request.fixturenames:
        return
    database: Database = request.getfixturevalue("database")
    with database.writer() as connection:
        insert_grounded(connection, "single", "a")
        insert_grounded(connection, "double", "b", "c")


def test_the_application_refuses_to_make_an_artifact_without_a_span() -> None:
    draft = ArtifactDraft("symbol", "symbol:x", "x", {}, "def x()", groundings=())
    with pytest.raises(GroundingError):
        seal_draft(draft, "symbols", 1)


@pytest.mark.parametrize("attack", INSERTIONS)
def test_the_writer_cannot_insert_an_ungrounded_artifact(writer: Connection, attack: Attack) -> None:
    refused_as_ungrounded(writer, attack)


@pytest.mark.parametrize("attack", DELETIONS)
def test_the_writer_cannot_delete_an_artifacts_last_grounding(writer: Connection, attack: Attack) -> None:
    refused_as_ungrounded(writer, attack)


@pytest.mark.parametrize(
    "attack",
    [
        move_the_only_grounding,
        rename_the_artifact_away,
        overwrite_by_upsert,
        *truncations(),
        lambda connection: connection.execute("SET session_replication_role = replica"),
        lambda connection: connection.execute("ALTER TABLE artifact DISABLE TRIGGER ALL"),
        lambda connection: connection.execute("DROP TRIGGER artifact_grounded_check ON artifact"),
        lambda connection: connection.execute("DROP TABLE artifact_derived_from"),
        lambda connection: connection.execute("CREATE TABLE public.elsewhere (x int)"),
        lambda connection: connection.execute("CREATE SCHEMA elsewhere"),
        lambda connection: connection.execute(
            "CREATE OR REPLACE FUNCTION artifact_inserted_is_grounded() RETURNS trigger"
            " LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
        ),
    ],
)
def test_the_writer_has_no_right_to_go_around_the_check(writer: Connection, attack: Attack) -> None:
    assert refused(writer, attack).sqlstate in {"42501", "22023"}


@pytest.mark.parametrize(
    "attack",
    [
        *INSERTIONS,
        *DELETIONS,
        move_the_only_grounding,
        rename_the_artifact_away,
        overwrite_by_upsert,
        *truncations(),
    ],
)
def test_a_superuser_in_replica_mode_is_refused_too(replica: Connection, attack: Attack) -> None:
    refused_as_ungrounded(replica, attack)


def test_a_span_that_something_stands_on_cannot_be_deleted(writer: Connection, replica: Connection) -> None:
    for connection in (writer, replica):
        error = refused(connection, lambda client: client.execute("DELETE FROM code_span"))
        assert error.sqlstate == "23503"


@pytest.mark.parametrize("isolation", psycopg.IsolationLevel)
def test_of_two_transactions_that_each_delete_one_of_two_groundings_one_fails(
    database: Database, isolation: psycopg.IsolationLevel
) -> None:
    outcomes: list[BaseException | None] = []
    both_deleted = threading.Barrier(2)

    def delete(span: str) -> None:
        with _client(database, "kb_writer") as connection:
            connection.set_isolation_level(isolation)
            connection.execute("SET lock_timeout = '20s'")
            connection.execute(
                "DELETE FROM artifact_derived_from d USING code_span c"
                " WHERE c.span_pk = d.span_pk AND c.symbol_path = %s",
                (span,),
            )
            both_deleted.wait(timeout=30)
            try:
                connection.commit()
            except psycopg.Error as error:
                outcomes.append(error)
            else:
                outcomes.append(None)

    threads = [threading.Thread(target=delete, args=(span,)) for span in ("b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert sorted(outcome is None for outcome in outcomes) == [False, True]
    with database.reader() as connection:
        assert ungrounded(connection) == 0
        assert len(_everything(connection)) == 2 + 2 + 3


def test_an_artifact_and_its_groundings_can_be_collected_together(writer: Connection) -> None:
    writer.execute("DELETE FROM artifact_derived_from")
    writer.execute("DELETE FROM artifact")
    writer.execute("DELETE FROM code_span")
    writer.commit()
    assert _everything(writer) == []


def test_one_of_two_groundings_can_be_deleted(writer: Connection) -> None:
    writer.execute(
        "DELETE FROM artifact_derived_from d USING code_span c"
        " WHERE c.span_pk = d.span_pk AND c.symbol_path = 'b'"
    )
    writer.commit()
    assert ungrounded(writer) == 0
