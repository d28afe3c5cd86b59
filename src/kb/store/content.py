"""Content-addressed rows: written once, found again by their id, whoever writes them at the same time.

A batch looks up which ids are there, takes keys for the others from the sequence and copies them in,
sorted by id. Should another writer commit one of them in between, the unique constraint says so; the
batch is then tried again from a savepoint and finds the row. Sorting keeps two writers from waiting for
each other in a circle.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import sql

from kb.errors import GroundingError
from kb.identity.spans import NORMALIZATION_VERSION
from kb.model.artifacts import Artifact
from kb.model.spans import Span

ResultT = TypeVar("ResultT")

_ATTEMPTS = 8


def copy_rows(
    connection: psycopg.Connection[Any],
    table: LiteralString,
    columns: Mapping[LiteralString, LiteralString],
    rows: Iterable[Sequence[Any]],
) -> None:
    """Copies rows into a table; `columns` maps each column to its type, in the rows' order."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table), names)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(list(columns.values()))
        for row in rows:
            copy.write_row(row)


def retried(connection: psycopg.Connection[Any], work: Callable[[], ResultT]) -> ResultT:
    """What `work` returns, run in a savepoint and again where another writer was first with a row."""
    for attempt in range(_ATTEMPTS):
        try:
            with connection.transaction():
                return work()
        except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
            # Rolling back to the savepoint let go of what others may be waiting for.
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def commit_without_waiting(connection: psycopg.Connection[Any]) -> None:
    """Lets the current transaction's COMMIT return before it is on disk.

    For content rows, which nobody sees before a seal: the log is written in order, so the seal's own
    COMMIT, which does wait, makes what came before it durable too. A server that crashes in between
    loses rows that the next run makes again.
    """
    connection.execute("SET LOCAL synchronous_commit = off")


def _take_keys(
    connection: psycopg.Connection[Any], table: LiteralString, column: LiteralString, count: int
) -> list[int]:
    rows = connection.execute(
        # The sequence is looked up once, not for each key.
        """WITH s AS MATERIALIZED (SELECT pg_get_serial_sequence(%s, %s)::regclass AS keys)
           SELECT nextval(s.keys) FROM s, generate_series(1, %s)""",
        (table, column, count),
        binary=True,
    ).fetchall()
    return [int(row[0]) for row in rows]


def span_keys(connection: psycopg.Connection[Any], span_ids: Iterable[bytes]) -> dict[bytes, int]:
    """The key of each of these spans that is stored."""
    rows = connection.execute(
        "SELECT span_id, span_pk FROM code_span WHERE span_id = ANY(%b::bytea[])",
        (list(span_ids),),
        binary=True,
    ).fetchall()
    return {bytes(span_id): int(key) for span_id, key in rows}


def put_spans(connection: psycopg.Connection[Any], spans: Mapping[bytes, Span]) -> dict[bytes, int]:
    """The key of every span, stored where it was not; in the caller's transaction."""

    def work() -> dict[bytes, int]:
        keys = span_keys(connection, spans)
        new = sorted(spans.keys() - keys.keys())
        fresh = dict(zip(new, _take_keys(connection, "code_span", "span_pk", len(new)), strict=True))
        copy_rows(
            connection,
            "code_span",
            {
                "span_pk": "int8",
                "span_id": "bytea",
                "language": "text",
                "kind": "text",
                "symbol_path": "text",
                "fingerprint": "bytea",
                "normalization_version": "int2",
            },
            ((key, *spans[span_id], NORMALIZATION_VERSION) for span_id, key in fresh.items()),
        )
        return keys | fresh

    return retried(connection, work)


_ARTIFACT_COLUMNS: Mapping[LiteralString, LiteralString] = {
    "artifact_pk": "int8",
    "artifact_id": "bytea",
    "kind": "text",
    "logical_key": "text",
    "title": "text",
    "body": "bytea",  # JSON is sent as it was sealed
    "text": "text",
    "extractor": "text",
    "extractor_version": "int4",
    "method": "text",
    "confidence": "int2",
    "body_digest": "bytea",
    "text_digest": "bytea",
}


def put_artifacts(
    connection: psycopg.Connection[Any], artifacts: Iterable[Artifact], spans: Mapping[bytes, int]
) -> dict[bytes, int]:
    """The key of every artifact, stored with its groundings and edges where it was not.

    Args:
        connection: in the caller's transaction.
        artifacts: some may be the same.
        spans: the key of every span that they are grounded on.

    Raises:
        GroundingError: an artifact is grounded on a span that is not stored.
    """
    by_id = {artifact.artifact_id: artifact for artifact in artifacts}

    def work() -> dict[bytes, int]:
        keys = _artifact_keys(connection, by_id)
        new = sorted(by_id.keys() - keys.keys())
        fresh = dict(zip(new, _take_keys(connection, "artifact", "artifact_pk", len(new)), strict=True))
        _copy_artifacts(connection, [(by_id[artifact_id], key) for artifact_id, key in fresh.items()], spans)
        return keys | fresh

    return retried(connection, work)


def _artifact_keys(connection: psycopg.Connection[Any], artifact_ids: Iterable[bytes]) -> dict[bytes, int]:
    rows = connection.execute(
        "SELECT artifact_id, artifact_pk FROM artifact WHERE artifact_id = ANY(%b::bytea[])",
        (list(artifact_ids),),
        binary=True,
    ).fetchall()
    return {bytes(artifact_id): int(key) for artifact_id, key in rows}


def _copy_artifacts(
    connection: psycopg.Connection[Any], new: Sequence[tuple[Artifact, int]], spans: Mapping[bytes, int]
) -> None:
    """An artifact always goes in together with what it stands on and where it leads."""
    copy_rows(
        connection, "artifact", _ARTIFACT_COLUMNS, (_artifact_row(artifact, key) for artifact, key in new)
    )
    copy_rows(
        connection,
        "artifact_derived_from",
        {"artifact_pk": "int8", "span_pk": "int8", "role": "text"},
        (
            (key, span, role)
            for artifact, key in new
            for span, role in sorted(
                {(_span(spans, artifact, place.span_id), place.role) for place in artifact.draft.groundings}
            )
        ),
    )
    copy_rows(
        connection,
        "artifact_edge",
        {"artifact_pk": "int8", "relation": "text", "target_key": "text"},
        (
            (key, relation, target)
            for artifact, key in new
            for relation, target in sorted(set(artifact.draft.links))
        ),
    )


def _span(spans: Mapping[bytes, int], artifact: Artifact, span_id: bytes) -> int:
    if span_id not in spans:
        raise GroundingError(
            f"{artifact.draft.logical_key!r} of extractor {artifact.extractor} stands on a span that is not stored",
            logical_key=artifact.draft.logical_key,
        )
    return spans[span_id]


def _artifact_row(artifact: Artifact, key: int) -> tuple[Any, ...]:
    draft = artifact.draft
    return (
        key,
        artifact.artifact_id,
        draft.kind,
        draft.logical_key,
        draft.title,
        artifact.body_json,
        draft.text,
        artifact.extractor,
        artifact.extractor_version,
        artifact.method,
        draft.confidence,
        artifact.body_digest,
        hashlib.sha256(draft.text.encode("utf-8")).digest(),
    )
