"""Stores what linking yielded: artifacts with their groundings, and the lineage's membership rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import psycopg

from kb.errors import IntegrityError
from kb.model.artifacts import LinkedFile
from kb.store.content import commit_without_waiting, copy_rows, put_artifacts, span_keys
from kb.store.keys import stored_key
from kb.store.staging import OPEN, StageTable, plan_for

_HOMES = StageTable("stage_home", [("path_id", "int8"), ("extractor", "text")])
_ENTRIES = StageTable("stage_entry", [("artifact_pk", "int8"), ("path_id", "int8")])
_LOCATED = StageTable(
    "stage_located", [("artifact_pk", "int8"), ("span_pk", "int8"), ("path_id", "int8"), ("n", "int4")]
)

# What the replaced homes held at the tip, and whether they still do.
_HELD: tuple[LiteralString, ...] = (
    """CREATE TEMP TABLE IF NOT EXISTS stage_held (artifact_pk int8, path_id int8, still boolean)
       ON COMMIT DELETE ROWS""",
    """INSERT INTO stage_held
       SELECT e.artifact_pk, e.home_path_id, s.artifact_pk IS NOT NULL
       FROM stage_home h
       JOIN snapshot_entry e ON e.lineage_id = %(lineage)s AND e.home_path_id = h.path_id
        AND e.to_ord = %(open)s
       JOIN artifact a ON a.artifact_pk = e.artifact_pk AND a.extractor = h.extractor
       LEFT JOIN stage_entry s ON s.artifact_pk = e.artifact_pk AND s.path_id = e.home_path_id""",
)
_CLOSE_ENTRIES: LiteralString = """
    UPDATE snapshot_entry e SET to_ord = %(ordinal)s
    FROM stage_held h
    WHERE NOT h.still AND e.lineage_id = %(lineage)s AND e.artifact_pk = h.artifact_pk
      AND e.home_path_id = h.path_id AND e.to_ord = %(open)s"""
_OPEN_ENTRIES: LiteralString = """
    INSERT INTO snapshot_entry (lineage_id, artifact_pk, home_path_id, from_ord, to_ord)
    SELECT %(lineage)s, s.artifact_pk, s.path_id, %(ordinal)s, %(open)s FROM stage_entry s
    WHERE NOT EXISTS (
        SELECT FROM snapshot_entry e
        WHERE e.lineage_id = %(lineage)s AND e.artifact_pk = s.artifact_pk
          AND e.home_path_id = s.path_id AND e.to_ord = %(open)s)"""
_RELOCATE: tuple[LiteralString, ...] = (
    """UPDATE grounding_location g SET to_ord = %(ordinal)s
       FROM (SELECT DISTINCT artifact_pk FROM stage_held) h
       WHERE g.lineage_id = %(lineage)s AND g.artifact_pk = h.artifact_pk AND g.to_ord = %(open)s
         AND NOT EXISTS (
            SELECT FROM stage_located l
            WHERE l.artifact_pk = g.artifact_pk AND l.span_pk = g.span_pk
              AND l.path_id = g.path_id AND l.n = g.n)""",
    """INSERT INTO grounding_location (lineage_id, artifact_pk, span_pk, path_id, n, from_ord, to_ord)
       SELECT %(lineage)s, l.artifact_pk, l.span_pk, l.path_id, l.n, %(ordinal)s, %(open)s
       FROM stage_located l
       WHERE NOT EXISTS (
            SELECT FROM grounding_location g
            WHERE g.lineage_id = %(lineage)s AND g.artifact_pk = l.artifact_pk
              AND g.span_pk = l.span_pk AND g.path_id = l.path_id AND g.n = l.n
              AND g.to_ord = %(open)s)""",
    """DELETE FROM lookup k USING stage_home h
       WHERE k.lineage_id = %(lineage)s AND k.path_id = h.path_id AND k.extractor = h.extractor""",
)


class _Batch:
    """Linked files as rows of keys: artifacts, spans and paths are stored and known by number."""

    def __init__(self, connection: psycopg.Connection[Any], linked: Sequence[LinkedFile]) -> None:
        pairs = [(one.path, artifact) for one in linked for artifact in one.artifacts]
        places = [(artifact, place) for _, artifact in pairs for place in artifact.draft.groundings]
        spans = span_keys(connection, {place.span_id for _, place in places})
        artifacts = put_artifacts(connection, (artifact for _, artifact in pairs), spans)
        self.paths = _path_keys(
            connection, {*(one.path for one in linked), *(place.path for _, place in places)}
        )
        self.entries = {(artifacts[artifact.artifact_id], self.paths[path]) for path, artifact in pairs}
        self.located = {
            (artifacts[artifact.artifact_id], spans[place.span_id], self.paths[place.path], place.n)
            for artifact, place in places
        }
        self.lookups = [
            (self.paths[row.path], row.extractor, row.kind, stored_key(row.key), row.answer)
            for one in linked
            for row in one.lookups
        ]


def _path_keys(connection: psycopg.Connection[Any], paths: Iterable[str]) -> dict[str, int]:
    wanted = set(paths)
    rows = connection.execute(
        "SELECT path, path_id FROM path WHERE path = ANY(%s::text[])", (list(wanted),)
    ).fetchall()
    found = {str(path): int(key) for path, key in rows}
    if len(found) != len(wanted):
        raise IntegrityError(f"paths that no file of the snapshot has: {sorted(wanted - found.keys())[:5]}")
    return found


def put_fresh(
    connection: psycopg.Connection[Any], linked: Sequence[LinkedFile], lineage_id: int, ordinal: int
) -> None:
    """Stores linked files of a lineage that holds nothing of them yet, in the caller's transaction.

    Its COMMIT does not wait for the disk; that of the seal does.

    Raises:
        IntegrityError: the lineage is gone: whoever ran this was given up for dead.
    """
    # The lock makes a process that clears the lineage away wait for this one, or this one find it gone.
    if not connection.execute(
        "SELECT 1 FROM lineage WHERE lineage_id = %s FOR KEY SHARE", (lineage_id,)
    ).fetchone():
        raise IntegrityError("the lineage that was being filled is gone; nothing was sealed")
    commit_without_waiting(connection)
    batch = _Batch(connection, linked)
    copy_rows(
        connection,
        "snapshot_entry",
        {"lineage_id": "int8", "artifact_pk": "int8", "home_path_id": "int8", "from_ord": "int4"},
        ((lineage_id, artifact, path, ordinal) for artifact, path in sorted(batch.entries)),
    )
    copy_rows(
        connection,
        "grounding_location",
        {
            "lineage_id": "int8",
            "artifact_pk": "int8",
            "span_pk": "int8",
            "path_id": "int8",
            "n": "int4",
            "from_ord": "int4",
        },
        ((lineage_id, *place, ordinal) for place in sorted(batch.located)),
    )
    _copy_lookups(connection, batch, lineage_id)


def replace(
    connection: psycopg.Connection[Any],
    linked: Sequence[LinkedFile],
    gone: Iterable[tuple[str, str]],
    lineage_id: int,
    ordinal: int,
) -> int:
    """Makes the homes of `linked` and of `gone` (path, extractor) hold at `ordinal` what they say.

    Rows that already say so stay untouched; the others are closed at `ordinal` or opened from it. All
    in the caller's transaction, which holds the lineage's lock. `gone` homes hold nothing afterwards.
    Returns by how many artifacts the lineage grew (negative where it shrank).
    """
    batch = _Batch(connection, linked)
    plan_for(connection, len(batch.located))
    homes = {*((one.path, one.extractor) for one in linked), *gone}
    paths = batch.paths | _path_keys(connection, {path for path, _ in homes})
    _HOMES.fill(connection, ((paths[path], extractor) for path, extractor in homes))
    _ENTRIES.fill(connection, batch.entries)
    _LOCATED.fill(connection, batch.located)
    # Without statistics the planner takes a handful of staged rows for thousands, and reads all of a lineage.
    connection.execute("ANALYZE stage_home, stage_entry, stage_located")
    _run(connection, _HELD, lineage_id, ordinal)
    connection.execute("ANALYZE stage_held")
    closed = _run(connection, (_CLOSE_ENTRIES,), lineage_id, ordinal)
    opened = _run(connection, (_OPEN_ENTRIES,), lineage_id, ordinal)
    _run(connection, _RELOCATE, lineage_id, ordinal)
    _copy_lookups(connection, batch, lineage_id)
    return opened - closed


def _run(
    connection: psycopg.Connection[Any],
    statements: Iterable[LiteralString],
    lineage_id: int,
    ordinal: int,
) -> int:
    """Rows that the last statement touched."""
    parameters = {"lineage": lineage_id, "ordinal": ordinal, "open": OPEN}
    touched = 0
    for statement in statements:
        touched = connection.execute(statement, parameters).rowcount
    return touched


def _copy_lookups(connection: psycopg.Connection[Any], batch: _Batch, lineage_id: int) -> None:
    copy_rows(
        connection,
        "lookup",
        {
            "lineage_id": "int8",
            "path_id": "int8",
            "extractor": "text",
            "kind": "text",
            "key": "text",
            "answer": "bytea",
        },
        ((lineage_id, *row) for row in batch.lookups),
    )
