"""What serving asks of a snapshot beyond its units: lists by kind, edges, spans of a file, and ids.

Every answer is in a stable order, so that a list can be read in pages.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, LiteralString, NamedTuple

import psycopg

from kb.model.spans import LocatedSpan, Span
from kb.store.units import ASIDE, ELSEWHERE

_ENTRY: LiteralString = "e.lineage_id = %(lineage)s AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s"
_FILE: LiteralString = "f.lineage_id = %(lineage)s AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s"
_PLACE: LiteralString = "g.lineage_id = %(lineage)s AND g.from_ord <= %(ordinal)s AND g.to_ord > %(ordinal)s"


LISTED_KINDS: LiteralString = "a.kind IN ('contract', 'entity', 'event', 'cache', 'setting', 'command')"
"""Kinds that lists are made of. The index on kinds holds exactly these."""


_FEW_PATHS = 50


class HeldInFile(NamedTuple):
    """An artifact that a file holds."""

    artifact_pk: int
    kind: str
    logical_key: str


class Listed(NamedTuple):
    """An artifact of a list, with what lists are filtered by; its body is not kept."""

    artifact_pk: int
    kind: str
    logical_key: str
    framework: str
    """In lower case; empty where it has none."""
    fields: tuple[str, ...]
    """Names of its fields, the inherited ones included."""


def _listed(artifact_pk: int, kind: str, logical_key: str, body: dict[str, Any]) -> Listed:
    framework = body.get("framework")
    entries = [*body.get("fields", ()), *body.get("inherited", ())]
    names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    return Listed(
        artifact_pk,
        sys.intern(kind),
        logical_key,
        sys.intern(framework.lower()) if isinstance(framework, str) else "",
        tuple(sys.intern(name) for name in names if isinstance(name, str)),
    )


class Edge(NamedTuple):
    """An edge of the snapshot: the artifact that has it, its relation, and the key it points to."""

    artifact_pk: int
    relation: str
    target_key: str


class SpanPlace(NamedTuple):
    """A span where it stands in a file of the snapshot."""

    path: str
    oid: str
    """The blob, in hex."""
    span_id: bytes
    language: str
    kind: str
    symbol_path: str
    n: int
    start_line: int
    end_line: int


class Seals(NamedTuple):
    """What changes when something is sealed, removed or renamed: as long as it is equal, choices hold."""

    newest: int
    snapshots: int
    names: str


def seals(connection: psycopg.Connection[Any]) -> Seals:
    """The state of all repositories' snapshots, at the cost of one short query."""
    row = connection.execute(
        """SELECT (SELECT coalesce(max(snapshot_id), 0) FROM snapshot), (SELECT count(*) FROM snapshot),
                  coalesce((SELECT string_agg(name, chr(10) ORDER BY name) FROM repository), '')"""
    ).fetchone()
    assert row is not None
    return Seals(int(row[0]), int(row[1]), str(row[2]))


def is_searchable(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> bool:
    """Whether the snapshot is in the search index."""
    row = connection.execute(
        "SELECT EXISTS (SELECT FROM search_snapshot WHERE lineage_id = %s AND ordinal = %s)",
        (lineage_id, ordinal),
    ).fetchone()
    return row is not None and bool(row[0])


class SnapshotLists:
    """Lists of one snapshot: a lineage at an ordinal."""

    def __init__(self, connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> None:
        self._connection = connection
        self._at = {"lineage": lineage_id, "ordinal": ordinal}

    def of_kinds(self, kinds: Sequence[str]) -> list[Listed]:
        """The artifacts of these kinds, which are among those of `LISTED_KINDS`, by logical key."""
        rows = self._connection.execute(
            f"""SELECT a.artifact_pk, a.kind, a.logical_key, a.body
                FROM artifact a WHERE a.kind = ANY(%(kinds)s) AND {LISTED_KINDS}
                  AND EXISTS (SELECT FROM snapshot_entry e WHERE e.artifact_pk = a.artifact_pk AND {_ENTRY})
                ORDER BY a.logical_key, a.artifact_pk""",
            {**self._at, "kinds": list(kinds)},
        )
        return [_listed(*row) for row in rows]

    def under(self, folder: str, artifact_pks: Sequence[int]) -> set[int]:
        """Those of the artifacts that stand in the file `folder` or below that folder."""
        below = folder.rstrip("/")
        paths = self._connection.execute(
            """SELECT path_id FROM path WHERE path = %(folder)s
               UNION ALL SELECT path_id FROM path WHERE path >= %(below)s AND path <= %(below)s || chr(1114111)
               LIMIT %(most)s""",
            {"folder": below, "below": f"{below}/", "most": _FEW_PATHS + 1},
        ).fetchall()
        if len(paths) <= _FEW_PATHS:  # what stands in few files is read, and not where many artifacts stand
            rows = self._connection.execute(
                f"""SELECT DISTINCT g.artifact_pk FROM grounding_location g
                    WHERE g.path_id = ANY(%(paths)s::int8[]) AND {_PLACE}""",
                {**self._at, "paths": [row[0] for row in paths]},
            ).fetchall()
            return {int(row[0]) for row in rows}.intersection(artifact_pks)
        rows = self._connection.execute(
            f"""SELECT DISTINCT g.artifact_pk FROM grounding_location g JOIN path p USING (path_id)
                WHERE g.artifact_pk = ANY(%(pks)s::int8[]) AND {_PLACE}
                  AND (p.path = %(folder)s OR starts_with(p.path, %(below)s))""",
            {**self._at, "pks": list(artifact_pks), "folder": below, "below": f"{below}/"},
        ).fetchall()
        return {int(row[0]) for row in rows}

    def keys_of(self, artifact_pks: Sequence[int]) -> dict[int, tuple[str, str]]:
        """(kind, logical key) of the artifacts."""
        rows = self._connection.execute(
            "SELECT artifact_pk, kind, logical_key FROM artifact WHERE artifact_pk = ANY(%s::int8[])",
            (list(artifact_pks),),
        ).fetchall()
        return {int(pk): (str(kind), str(key)) for pk, kind, key in rows}

    def beside(self, artifact_pks: Sequence[int]) -> list[int]:
        """Other artifacts that stand on the very places of these, by kind and key.

        Only what is there: all routes of an application share its routers, and those of a model the model.
        """
        rows = self._connection.execute(
            f"""SELECT DISTINCT a.kind, a.logical_key, a.artifact_pk
                FROM (SELECT g.span_pk, g.path_id, g.n FROM grounding_location g
                      JOIN artifact_derived_from o ON o.artifact_pk = g.artifact_pk AND o.span_pk = g.span_pk
                       AND o.role <> ALL(%(aside)s)
                      WHERE g.artifact_pk = ANY(%(pks)s::int8[]) AND {_PLACE}) own
                JOIN artifact_derived_from d ON d.span_pk = own.span_pk AND d.role <> ALL(%(elsewhere)s)
                JOIN grounding_location g ON g.artifact_pk = d.artifact_pk AND g.span_pk = own.span_pk
                 AND g.path_id = own.path_id AND g.n = own.n AND {_PLACE}
                JOIN artifact a ON a.artifact_pk = g.artifact_pk
                WHERE a.artifact_pk <> ALL(%(pks)s::int8[]) ORDER BY 1, 2, 3""",
            {**self._at, "pks": list(artifact_pks), "aside": list(ASIDE), "elsewhere": list(ELSEWHERE)},
        ).fetchall()
        return [int(row[2]) for row in rows]

    def edges_to(self, keys: Sequence[str]) -> list[Edge]:
        """The edges that point to these logical keys, by the key they come from."""
        rows = self._connection.execute(
            f"""SELECT DISTINCT a.logical_key, t.artifact_pk, t.relation, t.target_key
                FROM artifact_edge t JOIN artifact a USING (artifact_pk)
                JOIN snapshot_entry e ON e.artifact_pk = t.artifact_pk AND {_ENTRY}
                WHERE t.target_key = ANY(%(keys)s::text[]) ORDER BY 1, 3, 4, 2""",
            {**self._at, "keys": list(keys)},
        ).fetchall()
        return [Edge(int(row[1]), row[2], row[3]) for row in rows]

    def in_file(self, path: str) -> list[HeldInFile]:
        """The artifacts that stand in a file, by kind and key."""
        rows = self._connection.execute(
            f"""SELECT DISTINCT a.kind, a.logical_key, a.artifact_pk
                FROM path p JOIN grounding_location g USING (path_id) JOIN artifact a USING (artifact_pk)
                WHERE p.path = %(path)s AND {_PLACE} ORDER BY 1, 2, 3""",
            {**self._at, "path": path},
        ).fetchall()
        return [HeldInFile(int(row[2]), row[0], row[1]) for row in rows]

    def places_of_span(self, prefix: str, limit: int) -> list[SpanPlace]:
        """Where spans stand whose id, in hex, starts with `prefix` (8 digits or more), by path and line."""
        rows = self._connection.execute(
            f"""SELECT p.path, encode(b.oid, 'hex'), c.span_id, c.language, c.kind, c.symbol_path, o.n,
                       o.start_line, o.end_line
                FROM code_span c JOIN span_occurrence o USING (span_pk)
                JOIN snapshot_file f ON f.parse_id = o.parse_id AND {_FILE}
                JOIN path p USING (path_id) JOIN blob b USING (blob_id)
                WHERE c.span_id >= %(low)s AND c.span_id <= %(high)s
                ORDER BY 1, 8, 9, 3 LIMIT %(limit)s""",
            {
                **self._at,
                "low": bytes.fromhex(prefix.ljust(64, "0")),
                "high": bytes.fromhex(prefix.ljust(64, "f")),
                "limit": limit,
            },
        ).fetchall()
        return [SpanPlace(row[0], row[1], bytes(row[2]), *row[3:]) for row in rows]


def spans_of_blob(
    connection: psycopg.Connection[Any], oid: str, dialect: str, parser_version: str
) -> tuple[LocatedSpan, ...] | None:
    """The spans of a blob that was parsed once, by their beginning; None where it never was."""
    parse = connection.execute(
        """SELECT p.parse_id FROM blob b JOIN parse p USING (blob_id)
           WHERE b.oid = %s AND p.dialect = %s AND p.parser_version = %s""",
        (bytes.fromhex(oid), dialect, parser_version),
    ).fetchone()
    if parse is None:
        return None
    rows = connection.execute(
        """SELECT c.span_id, c.language, c.kind, c.symbol_path, c.fingerprint, o.n, o.start_byte, o.end_byte,
                  o.start_line, o.end_line
           FROM span_occurrence o JOIN code_span c USING (span_pk)
           WHERE o.parse_id = %s ORDER BY o.start_byte, o.end_byte DESC, c.span_id""",
        parse,
    ).fetchall()
    return tuple(
        LocatedSpan(Span(bytes(row[0]), row[1], row[2], row[3], bytes(row[4])), *row[5:]) for row in rows
    )


def terms_beginning(
    connection: psycopg.Connection[Any], beginning: str, lengths: tuple[int, int], limit: int
) -> list[str]:
    """Terms of the search index, of every repository, that begin so and have so many characters."""
    rows = connection.execute(
        """SELECT term FROM search_term WHERE term >= %(low)s AND term <= %(low)s || chr(1114111)
             AND length(term) BETWEEN %(least)s AND %(most)s ORDER BY term LIMIT %(limit)s""",
        {"low": beginning, "least": lengths[0], "most": lengths[1], "limit": limit},
    ).fetchall()
    return [str(row[0]) for row in rows]


def holders_of_artifact(connection: psycopg.Connection[Any], prefix: str) -> list[tuple[int, int]]:
    """(artifact, newest snapshot that holds it) of artifacts whose id, in hex, starts with `prefix`."""
    rows = connection.execute(
        """SELECT a.artifact_pk, max(s.snapshot_id) FROM artifact a JOIN snapshot_entry e USING (artifact_pk)
           JOIN snapshot s ON s.lineage_id = e.lineage_id AND s.ordinal >= e.from_ord AND s.ordinal < e.to_ord
           WHERE a.artifact_id >= %(low)s AND a.artifact_id <= %(high)s
           GROUP BY a.artifact_pk ORDER BY a.artifact_pk LIMIT 2""",
        {"low": bytes.fromhex(prefix.ljust(64, "0")), "high": bytes.fromhex(prefix.ljust(64, "f"))},
    ).fetchall()
    return [(int(pk), int(snapshot)) for pk, snapshot in rows]


def holder_of_span(connection: psycopg.Connection[Any], prefix: str) -> int | None:
    """The newest snapshot with a file in which a span stands whose id, in hex, starts with `prefix`."""
    row = connection.execute(
        """SELECT max(s.snapshot_id) FROM code_span c JOIN span_occurrence o USING (span_pk)
           JOIN snapshot_file f USING (parse_id)
           JOIN snapshot s ON s.lineage_id = f.lineage_id AND s.ordinal >= f.from_ord AND s.ordinal < f.to_ord
           WHERE c.span_id >= %(low)s AND c.span_id <= %(high)s""",
        {"low": bytes.fromhex(prefix.ljust(64, "0")), "high": bytes.fromhex(prefix.ljust(64, "f"))},
    ).fetchone()
    return None if row is None or row[0] is None else int(row[0])
