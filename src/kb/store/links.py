"""Stores what linking yielded: artifacts with their groundings, and the lineage's membership rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg.types.json import Jsonb

from kb.model.artifacts import Artifact, LinkedFile
from kb.store.staging import OPEN, StageTable

_HOMES = StageTable("stage_home", [("path", "text"), ("extractor", "text")])
_ARTIFACTS = StageTable(
    "stage_artifact",
    [
        ("home", "text"),
        ("artifact_id", "bytea"),
        ("kind", "text"),
        ("logical_key", "text"),
        ("title", "text"),
        ("body", "jsonb"),
        ("text", "text"),
        ("extractor", "text"),
        ("extractor_version", "int4"),
        ("method", "text"),
        ("confidence", "int4"),
        ("body_digest", "bytea"),
        ("text_digest", "bytea"),
    ],
)
_GROUNDINGS = StageTable(
    "stage_grounding",
    [("artifact_id", "bytea"), ("span_id", "bytea"), ("role", "text"), ("path", "text"), ("n", "int4")],
)
_EDGES = StageTable("stage_edge", [("artifact_id", "bytea"), ("relation", "text"), ("target_key", "text")])
_LOOKUPS = StageTable(
    "stage_lookup",
    [("path", "text"), ("extractor", "text"), ("kind", "text"), ("key", "text"), ("answer", "bytea")],
)

_CONTENT: tuple[LiteralString, ...] = (
    """CREATE TEMP TABLE IF NOT EXISTS stage_new (artifact_pk int8, artifact_id bytea)
       ON COMMIT DELETE ROWS""",
    """WITH inserted AS (
           INSERT INTO artifact
               (artifact_id, kind, logical_key, title, body, text, extractor, extractor_version, method,
                confidence, body_digest, text_digest)
           SELECT DISTINCT ON (artifact_id)
                  artifact_id, kind, logical_key, title, body, text, extractor, extractor_version, method,
                  confidence, body_digest, text_digest
           FROM stage_artifact ORDER BY artifact_id
           ON CONFLICT (artifact_id) DO NOTHING RETURNING artifact_pk, artifact_id)
       INSERT INTO stage_new SELECT artifact_pk, artifact_id FROM inserted""",
    # An artifact that was there already came with its groundings and edges, in one transaction.
    """INSERT INTO artifact_derived_from (artifact_pk, span_pk, role)
       SELECT DISTINCT a.artifact_pk, c.span_pk, g.role
       FROM stage_grounding g JOIN stage_new a USING (artifact_id) JOIN code_span c USING (span_id)
       ORDER BY 1, 2, 3""",
    """INSERT INTO artifact_edge (artifact_pk, relation, target_key)
       SELECT DISTINCT a.artifact_pk, e.relation, e.target_key
       FROM stage_edge e JOIN stage_new a USING (artifact_id) ORDER BY 1, 2, 3""",
)

_FRESH: tuple[LiteralString, ...] = (
    """INSERT INTO snapshot_entry (lineage_id, artifact_pk, home_path_id, from_ord, to_ord)
       SELECT %(lineage)s, a.artifact_pk, p.path_id, %(ordinal)s, %(open)s
       FROM stage_artifact s JOIN artifact a USING (artifact_id) JOIN path p ON p.path = s.home""",
    """INSERT INTO grounding_location (lineage_id, artifact_pk, span_pk, path_id, n, from_ord, to_ord)
       SELECT DISTINCT %(lineage)s, a.artifact_pk, c.span_pk, p.path_id, g.n, %(ordinal)s, %(open)s
       FROM stage_grounding g JOIN artifact a USING (artifact_id) JOIN code_span c USING (span_id)
       JOIN path p ON p.path = g.path""",
    """INSERT INTO lookup (lineage_id, path_id, extractor, kind, key, answer)
       SELECT %(lineage)s, p.path_id, l.extractor, l.kind, l.key, l.answer
       FROM stage_lookup l JOIN path p USING (path)""",
)

_HELD: tuple[LiteralString, ...] = (
    # What the replaced homes held at the tip.
    """CREATE TEMP TABLE IF NOT EXISTS stage_held (artifact_pk int8, path_id int8, still boolean)
       ON COMMIT DELETE ROWS""",
    """INSERT INTO stage_held
       SELECT e.artifact_pk, e.home_path_id, EXISTS (
                SELECT FROM stage_artifact s JOIN path sp ON sp.path = s.home
                WHERE s.artifact_id = a.artifact_id AND sp.path_id = e.home_path_id)
       FROM stage_home h
       JOIN path p USING (path)
       JOIN snapshot_entry e ON e.lineage_id = %(lineage)s AND e.home_path_id = p.path_id
        AND e.to_ord = %(open)s
       JOIN artifact a ON a.artifact_pk = e.artifact_pk AND a.extractor = h.extractor""",
)

_CLOSE_ENTRIES: LiteralString = """UPDATE snapshot_entry e SET to_ord = %(ordinal)s
       FROM stage_held h
       WHERE NOT h.still AND e.lineage_id = %(lineage)s AND e.artifact_pk = h.artifact_pk
         AND e.home_path_id = h.path_id AND e.to_ord = %(open)s"""

_OPEN_ENTRIES: LiteralString = """INSERT INTO snapshot_entry (lineage_id, artifact_pk, home_path_id, from_ord, to_ord)
       SELECT DISTINCT %(lineage)s, a.artifact_pk, p.path_id, %(ordinal)s, %(open)s
       FROM stage_artifact s JOIN artifact a USING (artifact_id) JOIN path p ON p.path = s.home
       WHERE NOT EXISTS (
            SELECT FROM snapshot_entry e
            WHERE e.lineage_id = %(lineage)s AND e.artifact_pk = a.artifact_pk
              AND e.home_path_id = p.path_id AND e.to_ord = %(open)s)"""

_RELOCATE: tuple[LiteralString, ...] = (
    """CREATE TEMP TABLE IF NOT EXISTS stage_located (artifact_pk int8, span_pk int8, path_id int8, n int4)
       ON COMMIT DELETE ROWS""",
    """INSERT INTO stage_located
       SELECT DISTINCT a.artifact_pk, c.span_pk, p.path_id, g.n
       FROM stage_grounding g JOIN artifact a USING (artifact_id) JOIN code_span c USING (span_id)
       JOIN path p ON p.path = g.path""",
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
    """DELETE FROM lookup k USING stage_home h JOIN path p USING (path)
       WHERE k.lineage_id = %(lineage)s AND k.path_id = p.path_id AND k.extractor = h.extractor""",
    """INSERT INTO lookup (lineage_id, path_id, extractor, kind, key, answer)
       SELECT %(lineage)s, p.path_id, l.extractor, l.kind, l.key, l.answer
       FROM stage_lookup l JOIN path p USING (path)""",
)


def put_fresh(
    connection: psycopg.Connection[Any], batch: Sequence[LinkedFile], lineage_id: int, ordinal: int
) -> None:
    """Stores linked files of a lineage that holds nothing of them yet, in the caller's transaction."""
    _stage(connection, batch)
    _run(connection, (*_CONTENT, *_FRESH), lineage_id, ordinal)


def replace(
    connection: psycopg.Connection[Any],
    batch: Sequence[LinkedFile],
    gone: Iterable[tuple[str, str]],
    lineage_id: int,
    ordinal: int,
) -> int:
    """Makes the homes of `batch` and of `gone` (path, extractor) hold at `ordinal` what the batch says.

    Rows that already say so stay untouched; the others are closed at `ordinal` or opened from it. All
    in the caller's transaction, which holds the lineage's lock. `gone` homes hold nothing afterwards.
    Returns by how many artifacts the lineage grew (negative where it shrank).
    """
    _stage(connection, batch)
    _HOMES.fill(connection, {*((linked.path, linked.extractor) for linked in batch), *gone})
    _run(connection, _CONTENT, lineage_id, ordinal)
    _run(connection, _HELD, lineage_id, ordinal)
    closed = _run(connection, (_CLOSE_ENTRIES,), lineage_id, ordinal)
    opened = _run(connection, (_OPEN_ENTRIES,), lineage_id, ordinal)
    _run(connection, _RELOCATE, lineage_id, ordinal)
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


def _stage(connection: psycopg.Connection[Any], batch: Sequence[LinkedFile]) -> None:
    pairs = [(linked, artifact) for linked in batch for artifact in linked.artifacts]
    _ARTIFACTS.fill(connection, (_artifact_row(linked.path, artifact) for linked, artifact in pairs))
    _GROUNDINGS.fill(
        connection,
        (
            (artifact.artifact_id, place.span_id, place.role, place.path, place.n)
            for _, artifact in pairs
            for place in artifact.draft.groundings
        ),
    )
    _EDGES.fill(
        connection,
        (
            (artifact.artifact_id, link.relation, link.target_key)
            for _, artifact in pairs
            for link in artifact.draft.links
        ),
    )
    _LOOKUPS.fill(
        connection,
        (
            (row.path, row.extractor, row.kind, row.key, row.answer)
            for linked in batch
            for row in linked.lookups
        ),
    )


def _artifact_row(home: str, artifact: Artifact) -> tuple[Any, ...]:
    draft = artifact.draft
    return (
        home,
        artifact.artifact_id,
        draft.kind,
        draft.logical_key,
        draft.title,
        Jsonb(dict(draft.body)),
        draft.text,
        artifact.extractor,
        artifact.extractor_version,
        artifact.method,
        draft.confidence,
        artifact.body_digest,
        hashlib.sha256(draft.text.encode("utf-8")).digest(),
    )
