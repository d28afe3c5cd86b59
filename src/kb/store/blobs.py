"""Stores what blobs say by themselves: blobs, parses, spans, occurrences, gaps and facts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString

import psycopg

from kb.identity.spans import NORMALIZATION_VERSION
from kb.model.spans import ParsedBlob
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
        ("coverage_id", "int4"),
    ],
)
_SPANS = StageTable(
    "stage_span",
    [
        ("no", "int4"),
        ("span_id", "bytea"),
        ("language", "text"),
        ("kind", "text"),
        ("symbol_path", "text"),
        ("fingerprint", "bytea"),
        ("n", "int4"),
        ("start_byte", "int4"),
        ("end_byte", "int4"),
        ("start_line", "int4"),
        ("end_line", "int4"),
    ],
)
_GAPS = StageTable(
    "stage_gap",
    [
        ("no", "int4"),
        ("seq", "int4"),
        ("reason", "text"),
        ("start_line", "int4"),
        ("end_line", "int4"),
        ("detail", "text"),
    ],
)
_FACTS = StageTable(
    "stage_fact",
    [("no", "int4"), ("source", "text"), ("version", "int4"), ("spans", "bytea"), ("payload", "bytea")],
)
_KEYS = StageTable(
    "stage_fact_key", [("no", "int4"), ("source", "text"), ("version", "int4"), ("key", "text")]
)

_INSERTS: tuple[LiteralString, ...] = (
    """INSERT INTO blob (oid, size)
       SELECT oid, max(size) FROM stage_blob GROUP BY oid ORDER BY oid ON CONFLICT DO NOTHING""",
    """INSERT INTO parse (blob_id, dialect, parser_version)
       SELECT DISTINCT b.blob_id, s.dialect, s.parser_version FROM stage_blob s JOIN blob b USING (oid)
       ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING""",
    """CREATE TEMP TABLE IF NOT EXISTS stage_parse (no int4, parse_id int8, coverage_id int4)
       ON COMMIT DELETE ROWS""",
    """INSERT INTO stage_parse
       SELECT s.no, p.parse_id, s.coverage_id FROM stage_blob s JOIN blob b USING (oid)
       JOIN parse p ON p.blob_id = b.blob_id AND p.dialect = s.dialect
        AND p.parser_version = s.parser_version""",
    """INSERT INTO code_span
           (span_id, language, kind, symbol_path, fingerprint, normalization_version)
       SELECT DISTINCT ON (span_id)
              span_id, language, kind, symbol_path, fingerprint, %(normalization)s
       FROM stage_span ORDER BY span_id ON CONFLICT DO NOTHING""",
    """INSERT INTO span_occurrence
           (parse_id, span_pk, n, start_byte, end_byte, start_line, end_line)
       SELECT p.parse_id, c.span_pk, s.n, s.start_byte, s.end_byte, s.start_line, s.end_line
       FROM stage_span s JOIN stage_parse p USING (no) JOIN code_span c USING (span_id)
       ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING""",
    """INSERT INTO gap (parse_id, seq, reason, start_line, end_line, detail)
       SELECT p.parse_id, g.seq, g.reason, g.start_line, g.end_line, g.detail
       FROM stage_gap g JOIN stage_parse p USING (no) ORDER BY 1, 2 ON CONFLICT DO NOTHING""",
    """INSERT INTO fact (parse_id, source, version, spans, payload)
       SELECT p.parse_id, f.source, f.version, f.spans, f.payload
       FROM stage_fact f JOIN stage_parse p USING (no) ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING""",
    """INSERT INTO fact_key (parse_id, source, version, key)
       SELECT p.parse_id, k.source, k.version, k.key
       FROM stage_fact_key k JOIN stage_parse p USING (no) ORDER BY 1, 2, 3, 4 ON CONFLICT DO NOTHING""",
    """INSERT INTO fact_coverage (parse_id, coverage_id)
       SELECT parse_id, coverage_id FROM stage_parse ORDER BY 1, 2 ON CONFLICT DO NOTHING""",
)


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
            ((0, bytes.fromhex(oid), 0, dialect, parser_version, 0) for oid, dialect in keys),
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
        _BLOBS.fill(
            connection,
            (
                (no, bytes.fromhex(blob.oid), size, blob.dialect, blob.parser_version, coverage[blob.dialect])
                for no, (blob, size) in enumerate(batch)
            ),
        )
        _SPANS.fill(
            connection,
            (
                (no, *place.span, place.n, *place[2:])
                for no, (blob, _) in enumerate(batch)
                for place in blob.occurrences
            ),
        )
        _GAPS.fill(
            connection,
            (
                (no, seq, gap.reason, gap.start_line, gap.end_line, gap.detail)
                for no, (blob, _) in enumerate(batch)
                for seq, gap in enumerate(blob.gaps)
            ),
        )
        _FACTS.fill(
            connection,
            (
                (no, row.source, row.version, row.spans, row.payload)
                for no, (blob, _) in enumerate(batch)
                for row in blob.facts
            ),
        )
        _KEYS.fill(
            connection,
            (
                (no, row.source, row.version, key)
                for no, (blob, _) in enumerate(batch)
                for row in blob.facts
                for key in row.keys
            ),
        )
        parameters = {"normalization": NORMALIZATION_VERSION}
        for statement in _INSERTS:
            connection.execute(statement, parameters)
