"""Reads files and facts of a lineage at an ordinal: what linking asks the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, LiteralString, NamedTuple

import psycopg

from kb.model.spans import FactRow
from kb.store.keys import stored_key

_AT: LiteralString = "f.lineage_id = %(lineage)s AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s"


class FileAt(NamedTuple):
    """A file of a lineage at an ordinal."""

    path: str
    parse_id: int | None
    """None where the file was not parsed."""
    dialect: str | None
    oid: str | None
    mode: int
    status: str
    reason: str


class LineageFacts:
    """The files and fact rows that hold at one ordinal of a lineage, sealed or about to be.

    Args:
        versions: fact source -> version that the recipe wants.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        lineage_id: int,
        ordinal: int,
        versions: Mapping[str, int],
    ) -> None:
        self._connection = connection
        self._at = {"lineage": lineage_id, "ordinal": ordinal}
        self._versions = versions

    def files(self) -> list[FileAt]:
        """Every file, by path."""
        return self._files("", {})

    def files_at(self, paths: Iterable[str]) -> list[FileAt]:
        """Those of the paths that there are files at, by path."""
        return self._files("AND p.path = ANY(%(paths)s::text[])", {"paths": list(paths)})

    def _files(self, condition: LiteralString, parameters: Mapping[str, Any]) -> list[FileAt]:
        rows = self._connection.execute(
            f"""SELECT p.path, f.parse_id, ps.dialect, encode(b.oid, 'hex'), f.mode, f.status, f.reason
                FROM snapshot_file f JOIN path p USING (path_id) LEFT JOIN blob b USING (blob_id)
                LEFT JOIN parse ps ON ps.parse_id = f.parse_id AND f.status = 'parsed'
                WHERE {_AT} {condition} ORDER BY p.path """,
            {**self._at, **parameters},
        ).fetchall()
        return [
            FileAt(path, parse_id if dialect is not None else None, dialect, oid, mode, status, reason)
            for path, parse_id, dialect, oid, mode, status, reason in rows
        ]

    def has_folder(self, folder: str) -> bool:
        """Whether any file lies below `folder` (no trailing slash)."""
        row = self._connection.execute(
            f"""SELECT EXISTS (SELECT FROM path p JOIN snapshot_file f USING (path_id)
                WHERE starts_with(p.path, %(prefix)s)
                  AND p.path >= %(prefix)s AND p.path < %(limit)s
                  AND {_AT})""",
            {**self._at, "prefix": folder + "/", "limit": folder + "0"},
        ).fetchone()
        return row is not None and bool(row[0])

    def children(self, folder: str) -> list[str]:
        """Names directly below `folder` ("" for the top): files as they are, folders with a slash."""
        prefix = f"{folder}/" if folder else ""
        rows = self._connection.execute(
            f"""SELECT DISTINCT split_part(rest, '/', 1) || CASE WHEN rest LIKE '%%/%%' THEN '/' ELSE '' END
                FROM (SELECT substr(p.path, length(%(prefix)s) + 1) AS rest
                      FROM path p JOIN snapshot_file f USING (path_id)
                      WHERE starts_with(p.path, %(prefix)s) AND {_AT}) AS below
                ORDER BY 1""",
            {**self._at, "prefix": prefix},
        ).fetchall()
        return [str(row[0]) for row in rows]

    def facts(self, parse_ids: Iterable[int], source: str) -> dict[int, tuple[bytes, bytes]]:
        """Each parse id with (payload, span table) of the fact rows of `source` that exist."""
        rows = self._connection.execute(
            """SELECT parse_id, payload, spans FROM fact
               WHERE parse_id = ANY(%s::int8[]) AND source = %s AND version = %s""",
            (list(parse_ids), source, self._versions.get(source, 0)),
        ).fetchall()
        return {int(parse_id): (bytes(payload), bytes(spans)) for parse_id, payload, spans in rows}

    def bytes_of(self, source: str) -> int:
        """How many bytes the fact rows of `source` hold together: what preloading them would take."""
        row = self._connection.execute(
            f"""SELECT coalesce(sum(octet_length(t.payload) + octet_length(t.spans)), 0)
                FROM snapshot_file f JOIN fact t USING (parse_id)
                WHERE {_AT} AND f.status = 'parsed' AND t.source = %(source)s
                  AND t.version = %(version)s""",
            {**self._at, "source": source, "version": self._versions.get(source, 0)},
        ).fetchone()
        assert row is not None
        return int(row[0])

    def paths_with_key(self, source: str, key: str) -> list[str]:
        """Paths of the files whose fact row of `source` carries `key`, sorted by their bytes."""
        rows = self._connection.execute(
            f"""SELECT p.path FROM fact_key k JOIN snapshot_file f USING (parse_id)
                JOIN path p USING (path_id)
                WHERE k.source = %(source)s AND k.version = %(version)s AND k.key = %(key)s
                  AND f.status = 'parsed' AND {_AT}
                ORDER BY p.path """,
            {**self._at, "source": source, "version": self._versions.get(source, 0), "key": stored_key(key)},
        ).fetchall()
        return [str(row[0]) for row in rows]

    def keys(self, source: str, most: int) -> dict[str, list[str]] | None:
        """Every stored key of a source with the paths that carry it, sorted; None where there are more rows
        than `most`."""
        rows = self._connection.execute(
            f"""SELECT k.key, p.path FROM fact_key k JOIN snapshot_file f USING (parse_id)
                JOIN path p USING (path_id)
                WHERE k.source = %(source)s AND k.version = %(version)s AND f.status = 'parsed' AND {_AT}
                ORDER BY k.key, p.path LIMIT %(most)s""",
            {**self._at, "source": source, "version": self._versions.get(source, 0), "most": most + 1},
        ).fetchall()
        if len(rows) > most:
            return None
        found: dict[str, list[str]] = {}
        for key, path in rows:
            found.setdefault(str(key), []).append(str(path))
        return found

    def paths_ending(self, suffix: str) -> list[str]:
        """Paths that are `suffix` or end with `/` and `suffix`, sorted by their bytes."""
        turned = suffix[::-1] + "/"
        rows = self._connection.execute(
            f"""SELECT p.path FROM path p JOIN snapshot_file f USING (path_id)
                WHERE (p.path = %(suffix)s OR (reverse(p.path) COLLATE "C" >= %(turned)s
                       AND reverse(p.path) COLLATE "C" < %(limit)s)) AND {_AT}
                ORDER BY p.path""",
            {**self._at, "suffix": suffix, "turned": turned, "limit": turned[:-1] + "0"},
        ).fetchall()
        return [str(row[0]) for row in rows]

    def rows_of(self, parse_id: int) -> list[FactRow]:
        """Every fact row of one parse in the versions of the recipe, with its inverse keys."""
        rows = self._connection.execute(
            """SELECT t.source, t.version, t.spans, t.payload,
                      array(SELECT key FROM fact_key k WHERE k.parse_id = t.parse_id
                            AND k.source = t.source AND k.version = t.version ORDER BY key)
               FROM fact t WHERE t.parse_id = %s ORDER BY 1, 2""",
            (parse_id,),
        ).fetchall()
        return [
            FactRow(source, version, bytes(spans), bytes(payload), tuple(keys))
            for source, version, spans, payload, keys in rows
            if self._versions.get(source) == version
        ]


def homes_asking(
    connection: psycopg.Connection[Any], lineage_id: int, answers: Iterable[tuple[str, str, bytes]]
) -> set[tuple[str, str]]:
    """The homes (path, extractor) of a lineage that asked one of these (kind, key) and got another answer."""
    triples = list(answers)
    if not triples:
        return set()
    kinds = [kind for kind, _, _ in triples]
    keys = [stored_key(key) for _, key, _ in triples]
    digests = [answer for _, _, answer in triples]
    rows = connection.execute(
        """SELECT DISTINCT p.path, k.extractor
           FROM unnest(%s::text[], %s::text[], %s::bytea[]) AS a (kind, key, answer)
           JOIN lookup k ON k.lineage_id = %s AND k.kind = a.kind AND k.key = a.key
            AND k.answer <> a.answer
           JOIN path p USING (path_id)""",
        (kinds, keys, digests, lineage_id),
    ).fetchall()
    return {(str(path), str(extractor)) for path, extractor in rows}
