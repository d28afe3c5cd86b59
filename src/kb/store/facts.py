"""Reads files and facts of a lineage at an ordinal: what linking asks the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg import sql

from kb.model.spans import FactRow
from kb.store.keys import stored_key
from kb.store.staging import OPEN

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
        # From each name to the first path beyond all that begins with it: what lies below is not read.
        first: LiteralString = f"""
            SELECT p.path FROM path p JOIN snapshot_file f USING (path_id)
            WHERE p.path >= %(prefix)s AND p.path < %(limit)s AND {_AT} ORDER BY p.path LIMIT 1"""
        rows = self._connection.execute(
            f"""WITH RECURSIVE found (path) AS (
                    ({first})
                    UNION ALL
                    SELECT ({first.replace("%(prefix)s", "n.beyond")}) FROM found,
                    LATERAL (SELECT CASE WHEN strpos(substr(found.path, %(skip)s), '/') > 0
                        THEN %(prefix)s || split_part(substr(found.path, %(skip)s), '/', 1) || '0'
                        ELSE found.path || chr(1) END COLLATE "C" AS beyond) n
                    WHERE found.path IS NOT NULL)
                SELECT split_part(substr(path, %(skip)s), '/', 1)
                       || CASE WHEN strpos(substr(path, %(skip)s), '/') > 0 THEN '/' ELSE '' END
                FROM found WHERE path IS NOT NULL""",
            {
                **self._at,
                "prefix": prefix,
                "limit": f"{folder}0" if folder else "\U0010ffff",
                "skip": len(prefix) + 1,
            },
        ).fetchall()
        return sorted(str(row[0]) for row in rows)

    def facts(
        self, parse_ids: Iterable[int], sources: Iterable[str]
    ) -> dict[tuple[int, str], tuple[bytes, bytes]]:
        """(parse id, source) with (payload, span table) of the fact rows that exist."""
        wanted = [(source, self._versions.get(source, 0)) for source in sources]
        rows = self._connection.execute(
            """SELECT t.parse_id, t.source, t.payload, t.spans
               FROM unnest(%s::text[], %s::int4[]) AS w (source, version), unnest(%s::int8[]) AS q (parse_id)
               JOIN fact t USING (parse_id) WHERE t.source = w.source AND t.version = w.version""",
            ([source for source, _ in wanted], [version for _, version in wanted], list(parse_ids)),
        ).fetchall()
        return {
            (int(parse_id), str(source)): (bytes(payload), bytes(spans))
            for parse_id, source, payload, spans in rows
        }

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
        return self.paths_with_keys([(source, key)])[source, key]

    def paths_with_keys(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
        """`paths_with_key` of many (source, key) at once; each of them is in the answer."""
        pairs = sorted(set(wanted))
        rows = self._connection.execute(
            f"""SELECT q.number, p.path
                FROM unnest(%(sources)s::text[], %(versions)s::int4[], %(keys)s::text[])
                     WITH ORDINALITY AS q (source, version, key, number)
                JOIN fact_key k ON k.source = q.source AND k.version = q.version AND k.key = q.key
                JOIN snapshot_file f USING (parse_id) JOIN path p USING (path_id)
                WHERE f.status = 'parsed' AND {_AT} ORDER BY q.number, p.path""",
            {
                **self._at,
                "sources": [source for source, _ in pairs],
                "versions": [self._versions.get(source, 0) for source, _ in pairs],
                "keys": [stored_key(key) for _, key in pairs],
            },
        ).fetchall()
        found: dict[tuple[str, str], list[str]] = {pair: [] for pair in pairs}
        for number, path in rows:
            found[pairs[number - 1]].append(str(path))
        return found

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
        return self.paths_ending_each([suffix])[suffix]

    def paths_ending_each(self, suffixes: Iterable[str]) -> dict[str, list[str]]:
        """`paths_ending` of many suffixes at once; each of them is in the answer."""
        wanted = sorted(set(suffixes))
        turned = [suffix[::-1] + "/" for suffix in wanted]
        rows = self._connection.execute(
            f"""WITH q AS MATERIALIZED (
                    SELECT * FROM unnest(%(suffixes)s::text[], %(turned)s::text[], %(limits)s::text[])
                                  AS q (suffix, turned, upto)),
                found AS (
                    SELECT q.suffix, p.path_id, p.path FROM q JOIN path p ON p.path = q.suffix
                    UNION ALL
                    SELECT q.suffix, p.path_id, p.path FROM q
                    JOIN path p ON reverse(p.path) COLLATE "C" >= q.turned COLLATE "C"
                     AND reverse(p.path) COLLATE "C" < q.upto COLLATE "C")
                SELECT found.suffix, found.path FROM found JOIN snapshot_file f USING (path_id)
                WHERE {_AT} ORDER BY 1, 2""",
            {
                **self._at,
                "suffixes": wanted,
                "turned": turned,
                "limits": [text[:-1] + "0" for text in turned],
            },
        ).fetchall()
        found: dict[str, list[str]] = {suffix: [] for suffix in wanted}
        for suffix, path in rows:
            found[str(suffix)].append(str(path))
        return found

    def rows_of(self, parse_ids: Iterable[int]) -> dict[int, list[FactRow]]:
        """Every fact row of some parses in the versions of the recipe, with its inverse keys."""
        wanted = list(parse_ids)
        rows = self._connection.execute(
            """SELECT t.parse_id, t.source, t.version, t.spans, t.payload,
                      array(SELECT key FROM fact_key k WHERE k.parse_id = t.parse_id
                            AND k.source = t.source AND k.version = t.version ORDER BY key)
               FROM fact t WHERE t.parse_id = ANY(%s::int8[]) ORDER BY 1, 2, 3""",
            (wanted,),
        ).fetchall()
        found: dict[int, list[FactRow]] = {parse_id: [] for parse_id in wanted}
        for parse_id, source, version, spans, payload, keys in rows:
            if self._versions.get(source) == version:
                found[parse_id].append(FactRow(source, version, bytes(spans), bytes(payload), tuple(keys)))
        return found


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


FACTS_KEPT = 10
"""For so many snapshots after its file changed a blob's facts stay: reverts and branches come back to it."""

FACTLESS: LiteralString = f"""NOT EXISTS (
    SELECT FROM snapshot_file o JOIN lineage l USING (lineage_id)
    WHERE o.parse_id = x.parse_id AND o.to_ord > l.tip_ordinal - {FACTS_KEPT})"""
"""Of a row `x`: no lineage's tip holds its parse, nor has one held it lately, so nothing will be linked by it."""


def drop_past_facts(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> None:
    """Erases facts that were of the lineage's tip `FACTS_KEPT` snapshots ago, and are of no tip any more.

    Should one of these blobs come back it is parsed again. The caller is alone (`locks.alone`): whoever
    was told that a parse is complete would miss its facts.
    """
    with connection.transaction():
        rows = connection.execute(
            f"""SELECT DISTINCT x.parse_id FROM snapshot_file x
                WHERE x.lineage_id = %s AND x.to_ord BETWEEN %s AND %s AND x.to_ord < {OPEN}
                  AND x.parse_id IS NOT NULL AND {FACTLESS}""",
            # Somebody else may have been writing the last few times.
            (lineage_id, ordinal - 2 * FACTS_KEPT, ordinal - FACTS_KEPT),
        ).fetchall()
        parses = [int(row[0]) for row in rows]
        for table in ("fact_key", "fact", "fact_coverage"):
            connection.execute(
                sql.SQL("DELETE FROM {} WHERE parse_id = ANY(%s::int8[])").format(sql.Identifier(table)),
                (parses,),
            )
