"""Reads artifacts of a snapshot with the lines that prove them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString, NamedTuple

import psycopg

NAMED_KINDS: LiteralString = "a.kind NOT IN ('import', 'passage', 'package_dependency')"
"""Kinds that are called by the ends of their keys. The index on reversed keys holds exactly these."""
MEMBER = "member"
"""Role of the lines that declare a member, to the class that it is a member of."""
ASIDE = ("include", "router", "dependency", MEMBER)
"""Roles of lines that lead to a unit and are not the unit, in the order in which they are wanted."""
ELSEWHERE = (*ASIDE, "request_model", "response_model", "parameter_model", "related", "inherited")
"""Roles of lines that are another thing, which the unit only uses."""
_HELD_FILE: LiteralString = """EXISTS (SELECT FROM snapshot_file f WHERE f.path_id = p.path_id
    AND f.lineage_id = %(lineage)s AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s)"""


class Place(NamedTuple):
    """Where an artifact stands in a snapshot."""

    path: str
    start_line: int
    end_line: int
    symbol_path: str
    role: str
    span_id: bytes
    span_kind: str
    oid: str
    """The blob at `path`, in hex."""


@dataclass(slots=True)
class ArtifactRow:
    """An artifact of a snapshot, and its places by path and line."""

    artifact_pk: int
    artifact_id: bytes
    kind: str
    logical_key: str
    title: str
    text: str
    body: dict[str, Any]
    extractor: str
    extractor_version: int
    method: str
    confidence: int
    model_id: str | None
    places: list[Place] = field(default_factory=list)


class SnapshotUnits:
    """Artifacts that hold at one ordinal of a lineage. Every list of keys comes in a stable order."""

    def __init__(self, connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> None:
        self._connection = connection
        self._at = {"lineage": lineage_id, "ordinal": ordinal}

    def by_pk(self, artifact_pks: Sequence[int]) -> list[ArtifactRow]:
        """The artifacts with their places, in the order asked for; those not in the snapshot left out."""
        rows = self._connection.execute(
            """SELECT a.artifact_pk, a.artifact_id, a.kind, a.logical_key, a.title, a.text, a.body,
                      a.extractor, a.extractor_version, a.method, a.confidence, a.model_id
               FROM artifact a WHERE a.artifact_pk = ANY(%(pks)s::int8[]) AND EXISTS (
                   SELECT FROM snapshot_entry e WHERE e.artifact_pk = a.artifact_pk
                   AND e.lineage_id = %(lineage)s
                   AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s)""",
            {**self._at, "pks": list(artifact_pks)},
        ).fetchall()
        found = {int(row[0]): ArtifactRow(row[0], bytes(row[1]), *row[2:]) for row in rows}
        for artifact_pk, place in self._places(found):
            found[artifact_pk].places.append(place)
        return [found[pk] for pk in dict.fromkeys(artifact_pks) if pk in found]

    def _places(self, artifact_pks: Iterable[int]) -> list[tuple[int, Place]]:
        rows = self._connection.execute(
            """-- The file first, then the place in it: `import os` has hundreds of places in others.
               WITH here AS MATERIALIZED (
                   SELECT g.artifact_pk, g.span_pk, g.path_id, g.n, f.parse_id, f.blob_id
                   FROM grounding_location g
                   JOIN snapshot_file f ON f.lineage_id = g.lineage_id AND f.path_id = g.path_id
                    AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s
                   WHERE g.artifact_pk = ANY(%(pks)s::int8[]) AND g.lineage_id = %(lineage)s
                     AND g.from_ord <= %(ordinal)s AND g.to_ord > %(ordinal)s)
               SELECT g.artifact_pk, p.path, o.start_line, o.end_line, c.symbol_path, d.role, c.span_id,
                      c.kind, encode(b.oid, 'hex')
               FROM here g
               JOIN artifact_derived_from d ON d.artifact_pk = g.artifact_pk AND d.span_pk = g.span_pk
               JOIN path p USING (path_id)
               JOIN blob b USING (blob_id)
               JOIN span_occurrence o ON o.parse_id = g.parse_id AND o.span_pk = g.span_pk AND o.n = g.n
               JOIN code_span c ON c.span_pk = g.span_pk
               ORDER BY g.artifact_pk, p.path, o.start_line, o.end_line, d.role, c.span_id""",
            {**self._at, "pks": list(artifact_pks)},
        ).fetchall()
        return [
            (int(row[0]), Place(row[1], row[2], row[3], row[4], row[5], bytes(row[6]), row[7], row[8]))
            for row in rows
        ]

    def with_key(self, keys: Sequence[str]) -> list[int]:
        """Artifacts with exactly one of these logical keys, in the order of the keys."""
        rows = self._connection.execute(
            """SELECT a.artifact_pk FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS k (key, place)
               JOIN artifact a ON a.logical_key = k.key
               JOIN snapshot_entry e ON e.artifact_pk = a.artifact_pk AND e.lineage_id = %(lineage)s
                AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s
               ORDER BY k.place""",
            {**self._at, "keys": list(keys)},
        ).fetchall()
        return [int(row[0]) for row in rows]

    def named(self, ending: str, limit: int) -> list[int]:
        """Artifacts whose key ends with `ending` after a `.`, `:` or `/`, by their keys read backwards."""
        return [pk for _, pk in self.named_keys(ending, limit)]

    def named_keys(self, ending: str, limit: int) -> list[tuple[str, int]]:
        """(logical key, artifact) of those that are `named` so, in the same order."""
        return self._ending(ending, limit, "AND right(a.logical_key, length(%(ending)s)) = %(ending)s")

    def keys_alike(self, ending: str, limit: int) -> list[str]:
        """Logical keys that end so in any case, in the same order."""
        return [key for key, _ in self._ending(ending, limit, "")]

    def _ending(self, ending: str, limit: int, filtered: LiteralString) -> list[tuple[str, int]]:
        """(logical key, artifact) of keys with such an end; of kinds that are called by their keys.

        One range of the index on reversed keys for each separator, read only as far as needed.
        """
        ranges = " UNION ALL ".join(
            f"""(SELECT reverse(lower(right(a.logical_key, 200))) AS backwards, a.logical_key, a.artifact_pk FROM artifact a
                 WHERE {NAMED_KINDS} AND reverse(lower(right(a.logical_key, 200))) >= k.lowest || '{separator}'
                   AND reverse(lower(right(a.logical_key, 200))) <= k.lowest || '{separator}' || k.last {filtered}
                   AND EXISTS (SELECT FROM snapshot_entry e WHERE e.artifact_pk = a.artifact_pk
                       AND e.lineage_id = %(lineage)s
                       AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s)
                 ORDER BY 1 LIMIT %(limit)s)"""
            for separator in (".", "/", ":")
        )
        rows = self._connection.execute(
            f"""SELECT found.logical_key, found.artifact_pk
                FROM (SELECT reverse(lower(%(ending)s COLLATE "C")) AS lowest, chr(1114111) AS last) k
                CROSS JOIN LATERAL ({ranges}) found ORDER BY found.backwards, 1, 2 LIMIT %(limit)s""",
            {**self._at, "ending": ending, "limit": limit},
        ).fetchall()
        return [(str(key), int(pk)) for key, pk in rows]

    def at_line(self, path: str, line: int, last: int | None = None) -> list[int]:
        """Artifacts that stand on a span of the file that covers the line, the narrowest span first.

        With `last`, those on a span that covers one of the lines from `line` to `last`.

        Of what stands there as the class of a member the member comes first, and a passage after what it repeats.
        """
        rows = self._connection.execute(
            """SELECT g.artifact_pk FROM path p
               JOIN snapshot_file f ON f.path_id = p.path_id AND f.lineage_id = %(lineage)s
                AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s
               JOIN grounding_location g ON g.lineage_id = f.lineage_id AND g.path_id = f.path_id
                AND g.from_ord <= %(ordinal)s AND g.to_ord > %(ordinal)s
               JOIN span_occurrence o ON o.parse_id = f.parse_id AND o.span_pk = g.span_pk AND o.n = g.n
               JOIN artifact_derived_from d ON d.artifact_pk = g.artifact_pk AND d.span_pk = g.span_pk
               JOIN artifact a ON a.artifact_pk = g.artifact_pk
               WHERE p.path = %(path)s AND o.start_line <= %(last)s AND o.end_line >= %(line)s
               GROUP BY g.artifact_pk, a.kind, a.logical_key
               ORDER BY min(o.end_line - o.start_line) FILTER (WHERE d.role <> %(member)s) NULLS LAST,
                        a.kind = 'passage', a.logical_key""",
            {**self._at, "path": path, "line": line, "last": last or line, "member": MEMBER},
        ).fetchall()
        return [int(row[0]) for row in rows]

    def on_span(self, prefix: str) -> list[int]:
        """Artifacts that stand here on a span whose id, in hex, starts with `prefix` (4 digits or more)."""
        rows = self._connection.execute(
            """SELECT DISTINCT a.logical_key, g.artifact_pk FROM code_span c
               JOIN grounding_location g ON g.span_pk = c.span_pk AND g.lineage_id = %(lineage)s
                AND g.from_ord <= %(ordinal)s AND g.to_ord > %(ordinal)s
               JOIN artifact a ON a.artifact_pk = g.artifact_pk
               WHERE c.span_id >= %(low)s AND c.span_id <= %(high)s ORDER BY 1, 2""",
            {
                **self._at,
                "low": bytes.fromhex(prefix.ljust(64, "0")),
                "high": bytes.fromhex(prefix.ljust(64, "f")),
            },
        ).fetchall()
        return [int(row[1]) for row in rows]

    def in_file(self, path: str) -> list[int]:
        """Artifacts that stand on a span of the file, by line."""
        rows = self._connection.execute(
            """SELECT g.artifact_pk FROM path p
               JOIN snapshot_file f ON f.path_id = p.path_id AND f.lineage_id = %(lineage)s
                AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s
               JOIN grounding_location g ON g.lineage_id = f.lineage_id AND g.path_id = f.path_id
                AND g.from_ord <= %(ordinal)s AND g.to_ord > %(ordinal)s
               JOIN span_occurrence o ON o.parse_id = f.parse_id AND o.span_pk = g.span_pk AND o.n = g.n
               JOIN artifact a ON a.artifact_pk = g.artifact_pk
               WHERE p.path = %(path)s GROUP BY g.artifact_pk, a.logical_key
               ORDER BY min(o.start_line), a.logical_key""",
            {**self._at, "path": path},
        ).fetchall()
        return [int(row[0]) for row in rows]

    def file(self, path: str) -> tuple[str, str, str] | None:
        """(blob oid in hex, status, reason) of the file at `path`; None if the snapshot has none."""
        row = self._connection.execute(
            """SELECT coalesce(encode(b.oid, 'hex'), ''), f.status, f.reason
               FROM path p JOIN snapshot_file f USING (path_id) LEFT JOIN blob b USING (blob_id)
               WHERE p.path = %(path)s AND f.lineage_id = %(lineage)s
                 AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s""",
            {**self._at, "path": path},
        ).fetchone()
        return None if row is None else (str(row[0]), str(row[1]), str(row[2]))

    def files_among(self, paths: Collection[str]) -> set[str]:
        """Those of the paths that are files of the snapshot."""
        rows = self._connection.execute(
            f"SELECT p.path FROM path p WHERE p.path = ANY(%(paths)s::text[]) AND {_HELD_FILE}",
            {**self._at, "paths": list(paths)},
        ).fetchall()
        return {str(row[0]) for row in rows}

    def folders_called(self, name: str, limit: int) -> list[str]:
        """Folders of the snapshot whose last name it is, by path."""
        rows = self._connection.execute(
            f"""SELECT DISTINCT substr(p.path, 1, strpos('/' || p.path, %(called)s) + length(%(called)s) - 3)
                FROM path p WHERE strpos('/' || p.path, %(called)s) > 0 AND {_HELD_FILE}
                ORDER BY 1 LIMIT %(limit)s""",
            {**self._at, "called": f"/{name}/", "limit": limit},
        ).fetchall()
        return [str(row[0]) for row in rows]

    def folders_in(self, folder: str) -> list[str]:
        """Folders right in a folder, by path; also those that other snapshots alone have."""
        below = f"{folder}/" if folder else ""
        rows = self._connection.execute(
            """SELECT DISTINCT split_part(substr(p.path, length(%(below)s) + 1), '/', 1) FROM path p
               WHERE p.path >= %(below)s AND p.path <= %(below)s || chr(1114111)
                 AND strpos(substr(p.path, length(%(below)s) + 1), '/') > 0 ORDER BY 1""",
            {"below": below},
        ).fetchall()
        return [below + str(row[0]) for row in rows]

    def paths_ending(self, name: str, limit: int) -> list[str]:
        """Paths of the snapshot that are `name`, or end with it after a `/`."""
        rows = self._connection.execute(
            f"""SELECT p.path FROM path p
                WHERE (p.path = %(name)s
                       OR (reverse(p.path) >= reverse('/' || %(name)s)
                           AND reverse(p.path) <= reverse('/' || %(name)s) || chr(1114111)))
                  AND {_HELD_FILE} ORDER BY length(p.path), p.path LIMIT %(limit)s""",
            {**self._at, "name": name, "limit": limit},
        ).fetchall()
        return [str(row[0]) for row in rows]

    def paths_under(self, folder: str, limit: int) -> list[str]:
        """The first paths of the snapshot below a folder, by path; of all of it for an empty one."""
        rows = self._connection.execute(
            f"""SELECT p.path FROM path p
                WHERE p.path >= %(below)s AND p.path <= %(below)s || chr(1114111) AND {_HELD_FILE}
                ORDER BY p.path LIMIT %(limit)s""",
            {**self._at, "below": f"{folder}/" if folder else "", "limit": limit},
        ).fetchall()
        return [str(row[0]) for row in rows]
