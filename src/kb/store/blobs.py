"""Stores what blobs say by themselves: blobs, parses, spans, occurrences, gaps and facts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString

import psycopg

from kb.model.spans import ParsedBlob
from kb.store.content import commit_without_waiting, copy_rows, put_spans
from kb.store.keys import stored_key
from kb.store.staging import StageTable

ParseKey = tuple[str, str]
"""(blob oid in hex, dialect): what a parse is stored under, beside the parser's version."""

_BLOBS = StageTable(
    "stage_blob",
    [
        ("no", "int4"),
        ("oid", "bytea"),
        ("size", "int8"),
        ("dialect", "text"),
        ("parser_version", "text"),
    ],
)
_ENSURE: tuple[LiteralString, ...] = (
    """INSERT INTO blob (oid, size)
       SELECT oid, max(size) FROM stage_blob GROUP BY oid ORDER BY oid ON CONFLICT DO NOTHING""",
    """CREATE TEMP TABLE IF NOT EXISTS stage_parse (parse_id int8) ON COMMIT DELETE ROWS""",
    """WITH inserted AS (
           INSERT INTO parse (blob_id, dialect, parser_version)
           SELECT DISTINCT b.blob_id, s.dialect, s.parser_version FROM stage_blob s JOIN blob b USING (oid)
           ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING RETURNING parse_id)
       INSERT INTO stage_parse SELECT parse_id FROM inserted""",
)
_PARSES: LiteralString = """
    SELECT s.no, p.parse_id, n.parse_id IS NOT NULL FROM stage_blob s JOIN blob b USING (oid)
    JOIN parse p ON p.blob_id = b.blob_id AND p.dialect = s.dialect AND p.parser_version = s.parser_version
    LEFT JOIN stage_parse n ON n.parse_id = p.parse_id"""


def coverage_id(connection: psycopg.Connection[Any], sources: Iterable[str]) -> int:
    """The id of a set of `source@version` words, stored on first use (its own short transaction)."""
    words = sorted(sources)
    digest = hashlib.sha256("\n".join(words).encode("utf-8")).digest()
    with connection.transaction():
        connection.execute(
            "INSERT INTO coverage (digest, sources) VALUES (%s, %s) ON CONFLICT DO NOTHING", (digest, words)
        )
        row = connection.execute("SELECT coverage_id FROM coverage WHERE digest = %s", (digest,)).fetchone()
    assert row is not None
    return int(row[0])


def missing_parses(
    connection: psycopg.Connection[Any],
    keys: Iterable[ParseKey],
    parser_version: str,
    sources_by_dialect: Mapping[str, Sequence[str]],
) -> set[ParseKey]:
    """Those of `keys` whose parse, or one of whose wanted fact sources, is not stored yet."""
    with connection.transaction():
        _BLOBS.fill(
            connection,
            ((0, bytes.fromhex(oid), 0, dialect, parser_version) for oid, dialect in keys),
        )
        rows = connection.execute(
            """SELECT DISTINCT encode(s.oid, 'hex'), s.dialect
               FROM stage_blob s
               LEFT JOIN blob b USING (oid)
               LEFT JOIN parse p ON p.blob_id = b.blob_id AND p.dialect = s.dialect
                AND p.parser_version = s.parser_version
               LEFT JOIN unnest(%s::text[], %s::text[]) AS w (dialect, wanted) ON w.dialect = s.dialect
               WHERE p.parse_id IS NULL OR NOT string_to_array(coalesce(w.wanted, ''), ' ') <@ coalesce(
                   (SELECT array_agg(word) FROM fact_coverage fc JOIN coverage c USING (coverage_id),
                           unnest(c.sources) AS word WHERE fc.parse_id = p.parse_id), '{}')""",
            (list(sources_by_dialect), [" ".join(words) for words in sources_by_dialect.values()]),
        ).fetchall()
    return {(str(oid), str(dialect)) for oid, dialect in rows}


def put_parsed(
    connection: psycopg.Connection[Any],
    batch: Sequence[tuple[ParsedBlob, int]],
    coverage: Mapping[str, int],
) -> None:
    """Stores parsed blobs (each with its size in bytes) in one short transaction; idempotent.

    `coverage` maps a dialect to the `coverage_id` of the fact sources that were run on its blobs.
    """
    with connection.transaction():
        commit_without_waiting(connection)
        parses = _put_parses(connection, batch)
        spans = {place.span.span_id: place.span for blob, _ in parses.values() for place in blob.occurrences}
        keys = put_spans(connection, spans)
        old = [parse_id for parse_id, (_, new) in parses.items() if not new]
        _copy_occurrences(connection, parses, keys, _known_occurrences(connection, old))
        fresh = [(parse_id, blob) for parse_id, (blob, new) in parses.items() if new]
        _copy_gaps(connection, fresh)
        _copy_facts(connection, parses, _known_facts(connection, old))
        connection.execute(
            """INSERT INTO fact_coverage (parse_id, coverage_id)
               SELECT * FROM unnest(%s::int8[], %s::int8[]) ORDER BY 1, 2 ON CONFLICT DO NOTHING""",
            (list(parses), [coverage[blob.dialect] for blob, _ in parses.values()]),
        )


def _put_parses(
    connection: psycopg.Connection[Any], batch: Sequence[tuple[ParsedBlob, int]]
) -> dict[int, tuple[ParsedBlob, bool]]:
    """Parse id -> the blob, and whether its parse was stored just now."""
    _BLOBS.fill(
        connection,
        (
            (no, bytes.fromhex(blob.oid), size, blob.dialect, blob.parser_version)
            for no, (blob, size) in enumerate(batch)
        ),
    )
    for statement in _ENSURE:
        connection.execute(statement)
    rows = connection.execute(_PARSES).fetchall()
    return {int(parse_id): (batch[no][0], bool(new)) for no, parse_id, new in rows}


def _known_occurrences(
    connection: psycopg.Connection[Any], parse_ids: list[int]
) -> set[tuple[int, int, int]]:
    """(parse, span, n) that are there: another extractor may cite more spans of a parse that is known."""
    rows = connection.execute(
        "SELECT parse_id, span_pk, n FROM span_occurrence WHERE parse_id = ANY(%s::int8[])", (parse_ids,)
    ).fetchall()
    return {(int(parse_id), int(span), int(n)) for parse_id, span, n in rows}


def _known_facts(connection: psycopg.Connection[Any], parse_ids: list[int]) -> set[tuple[int, str, int]]:
    rows = connection.execute(
        "SELECT parse_id, source, version FROM fact WHERE parse_id = ANY(%s::int8[])", (parse_ids,)
    ).fetchall()
    return {(int(parse_id), str(source), int(version)) for parse_id, source, version in rows}


def _copy_occurrences(
    connection: psycopg.Connection[Any],
    parses: Mapping[int, tuple[ParsedBlob, bool]],
    keys: Mapping[bytes, int],
    known: set[tuple[int, int, int]],
) -> None:
    copy_rows(
        connection,
        "span_occurrence",
        {
            "parse_id": "int4",
            "span_pk": "int4",
            "n": "int4",
            "start_byte": "int4",
            "end_byte": "int4",
            "start_line": "int4",
            "end_line": "int4",
        },
        (
            (parse_id, key, *place[1:])
            for parse_id, (blob, _) in parses.items()
            for place in blob.occurrences
            if (parse_id, key := keys[place.span.span_id], place.n) not in known
        ),
    )


def _copy_gaps(connection: psycopg.Connection[Any], fresh: Sequence[tuple[int, ParsedBlob]]) -> None:
    copy_rows(
        connection,
        "gap",
        {
            "parse_id": "int8",
            "seq": "int4",
            "reason": "text",
            "detail": "text",
            "start_line": "int4",
            "end_line": "int4",
        },
        ((parse_id, seq, *gap) for parse_id, blob in fresh for seq, gap in enumerate(blob.gaps)),
    )


def _copy_facts(
    connection: psycopg.Connection[Any],
    parses: Mapping[int, tuple[ParsedBlob, bool]],
    known: set[tuple[int, str, int]],
) -> None:
    rows = [
        (parse_id, row)
        for parse_id, (blob, _) in parses.items()
        for row in blob.facts
        if (parse_id, row.source, row.version) not in known
    ]
    copy_rows(
        connection,
        "fact",
        {"parse_id": "int8", "source": "text", "version": "int4", "spans": "bytea", "payload": "bytea"},
        ((parse_id, row.source, row.version, row.spans, row.payload) for parse_id, row in rows),
    )
    copy_rows(
        connection,
        "fact_key",
        {"parse_id": "int8", "source": "text", "version": "int4", "key": "text"},
        ((parse_id, row.source, row.version, stored_key(key)) for parse_id, row in rows for key in row.keys),
    )
