"""Lineages and their seals: which files and artifacts a snapshot holds, and the moment it is visible.

A lineage is an order of snapshots; membership rows hold the half-open range of ordinals [from, to) for
which they are true. A new lineage is private to the process that fills it until its first snapshot is
sealed; an existing one is extended under a lock, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg import sql

from kb.errors import IntegrityError
from kb.store.locks import is_orphaned, own_lineage
from kb.store.staging import OPEN, StageTable, plan_for


class FileRow(NamedTuple):
    """One file as a snapshot accounts for it; a parse that failed as a whole turns it into a gap."""

    path: str
    mode: int
    oid: str | None
    """Blob oid in hex; None for a submodule."""
    size: int
    dialect: str | None
    """The dialect its parse is stored under; None where it is not parsed."""
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tip:
    """The newest sealed state of a lineage."""

    lineage_id: int
    ordinal: int
    tree: str
    files: int


class SealCounts(NamedTuple):
    """What a snapshot holds, as it is sealed: files = parsed + gap_files + no_language; excluded beside."""

    files: int = 0
    parsed: int = 0
    gap_files: int = 0
    no_language: int = 0
    excluded: int = 0
    spans: int = 0
    gaps: int = 0
    artifacts: int = 0

    def plus(self, other: SealCounts) -> SealCounts:
        """Field by field."""
        return SealCounts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: SealCounts) -> SealCounts:
        """Field by field."""
        return SealCounts(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


_FILES = StageTable(
    "stage_file",
    [
        ("path", "text"),
        ("mode", "int4"),
        ("oid", "bytea"),
        ("size", "int8"),
        ("dialect", "text"),
        ("status", "text"),
        ("reason", "text"),
    ],
)


def put_paths(connection: psycopg.Connection[Any], paths: Iterable[str]) -> None:
    """Makes sure that every path has its row; a short transaction of its own."""
    with connection.transaction():
        connection.execute(
            """INSERT INTO path (path) SELECT p FROM unnest(%s::text[]) AS p
               WHERE NOT EXISTS (SELECT FROM path WHERE path = p)
               ORDER BY p ON CONFLICT DO NOTHING""",
            (sorted(set(paths)),),
        )


def tip(connection: psycopg.Connection[Any], repository_id: int, recipe_id: int) -> Tip | None:
    """The tip of the newest lineage of a repository under a recipe, None where nothing is sealed."""
    row = connection.execute(
        """SELECT s.lineage_id, s.ordinal, s.tree, s.files
           FROM lineage l JOIN snapshot s ON s.lineage_id = l.lineage_id AND s.ordinal = l.tip_ordinal
           WHERE l.repository_id = %s AND l.recipe_id = %s ORDER BY l.lineage_id DESC LIMIT 1""",
        (repository_id, recipe_id),
    ).fetchone()
    return None if row is None else Tip(*row)


def new_lineage(connection: psycopg.Connection[Any], repository_id: int, recipe_id: int) -> int:
    """A lineage of its own, not yet sealed and so seen by nobody; a short transaction.

    The session owns it (`locks.own_lineage`) from before anybody could see its row.
    """
    with connection.transaction():
        row = connection.execute(
            "INSERT INTO lineage (repository_id, recipe_id, tip_ordinal) VALUES (%s, %s, -1)"
            " RETURNING lineage_id",
            (repository_id, recipe_id),
        ).fetchone()
        assert row is not None
        own_lineage(connection, int(row[0]))
    return int(row[0])


def drop_orphans(connection: psycopg.Connection[Any], repository_id: int) -> int:
    """Erases lineages that a killed process left unsealed; how many."""
    rows = connection.execute(
        """SELECT lineage_id FROM lineage l WHERE repository_id = %s
           AND NOT EXISTS (SELECT FROM snapshot s WHERE s.lineage_id = l.lineage_id)""",
        (repository_id,),
    ).fetchall()
    dropped = 0
    for (lineage_id,) in rows:
        with connection.transaction():
            if is_orphaned(connection, int(lineage_id)):
                drop_lineage(connection, int(lineage_id))
                dropped += 1
    return dropped


def drop_lineage(connection: psycopg.Connection[Any], lineage_id: int) -> None:
    """Erases a lineage with its membership rows; content-addressed rows stay for gc or for reuse."""
    with connection.transaction():
        connection.execute("SELECT 1 FROM lineage WHERE lineage_id = %s FOR UPDATE", (lineage_id,))
        for table in ("lookup", "grounding_location", "snapshot_entry", "snapshot_file", "snapshot"):
            connection.execute(
                sql.SQL("DELETE FROM {} WHERE lineage_id = %s").format(sql.Identifier(table)),
                (lineage_id,),
            )
        connection.execute("DELETE FROM lineage WHERE lineage_id = %s", (lineage_id,))


def put_files(
    connection: psycopg.Connection[Any],
    files: Iterable[FileRow],
    *,
    removed: Iterable[str] = (),
    parser_version: str,
    lineage_id: int,
    ordinal: int,
) -> None:
    """Makes the lineage hold `files` from `ordinal` on and no longer hold `removed`.

    A file whose parse has a gap without lines was not readable: it is stored as a gap with that reason
    (`generated` as excluded). Paths must have their rows. In the caller's transaction.
    """
    rows = list(files)
    _FILES.fill(
        connection,
        (
            (
                row.path,
                row.mode,
                None if row.oid is None else bytes.fromhex(row.oid),
                row.size,
                row.dialect,
                row.status,
                row.reason,
            )
            for row in rows
        ),
    )
    parameters = {
        "lineage": lineage_id,
        "ordinal": ordinal,
        "open": OPEN,
        "parser": parser_version,
        "closed": sorted({*removed, *(row.path for row in rows)}),
    }
    connection.execute(
        """INSERT INTO blob (oid, size) SELECT oid, max(size) FROM stage_file
           WHERE oid IS NOT NULL GROUP BY oid ORDER BY oid ON CONFLICT DO NOTHING"""
    )
    if ordinal > 0:
        connection.execute(
            """UPDATE snapshot_file f SET to_ord = %(ordinal)s
               FROM path p, unnest(%(closed)s::text[]) AS gone (path)
               WHERE p.path = gone.path AND f.path_id = p.path_id AND f.lineage_id = %(lineage)s
                 AND f.to_ord = %(open)s""",
            parameters,
        )
    connection.execute(
        """INSERT INTO snapshot_file
               (lineage_id, path_id, from_ord, to_ord, mode, blob_id, parse_id, status, reason)
           SELECT %(lineage)s, p.path_id, %(ordinal)s, %(open)s, s.mode, b.blob_id, ps.parse_id,
                  CASE WHEN s.status <> 'parsed' THEN s.status WHEN g.reason = 'generated' THEN 'excluded'
                       WHEN g.reason IS NOT NULL THEN 'gap' ELSE 'parsed' END,
                  coalesce(g.reason, s.reason)
           FROM stage_file s
           JOIN path p USING (path)
           LEFT JOIN blob b USING (oid)
           LEFT JOIN parse ps ON ps.blob_id = b.blob_id AND ps.dialect = s.dialect
            AND ps.parser_version = %(parser)s
           LEFT JOIN LATERAL (SELECT reason FROM gap WHERE gap.parse_id = ps.parse_id
                              AND gap.start_line IS NULL ORDER BY seq LIMIT 1) g ON true""",
        parameters,
    )


_COUNT_FILES: LiteralString = """
    SELECT count(*) FILTER (WHERE status <> 'excluded'), count(*) FILTER (WHERE status = 'parsed'),
           count(*) FILTER (WHERE status = 'gap'), count(*) FILTER (WHERE status = 'no_language'),
           count(*) FILTER (WHERE status = 'excluded'),
           (SELECT count(*) FROM f JOIN span_occurrence o USING (parse_id) WHERE f.status = 'parsed'),
           (SELECT count(*) FROM f JOIN gap USING (parse_id)
            WHERE f.status = 'parsed' AND gap.start_line IS NOT NULL)
           + count(*) FILTER (WHERE status = 'gap')
    FROM f"""


def count_all(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> SealCounts:
    """What the lineage holds at an ordinal, by looking at all of it."""
    at = {"lineage": lineage_id, "ordinal": ordinal}
    files = connection.execute(
        """WITH f AS (SELECT status, parse_id FROM snapshot_file WHERE lineage_id = %(lineage)s
                      AND from_ord <= %(ordinal)s AND to_ord > %(ordinal)s)"""
        + _COUNT_FILES,
        at,
    ).fetchone()
    entries = connection.execute(
        """SELECT count(*) FROM snapshot_entry WHERE lineage_id = %(lineage)s
           AND from_ord <= %(ordinal)s AND to_ord > %(ordinal)s""",
        at,
    ).fetchone()
    assert files is not None
    assert entries is not None
    return SealCounts(*files)._replace(artifacts=entries[0])


def count_files(
    connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, paths: Iterable[str]
) -> SealCounts:
    """What the files at `paths` add to the counts at an ordinal (artifacts aside).

    In the caller's transaction, whose statements are planned for as many rows from here on.
    """
    wanted = list(paths)
    plan_for(connection, len(wanted))
    files = connection.execute(
        """WITH f AS (SELECT f.status, f.parse_id FROM unnest(%(paths)s::text[]) AS c (path)
                      JOIN path p USING (path)
                      JOIN snapshot_file f ON f.path_id = p.path_id AND f.lineage_id = %(lineage)s
                       AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s)"""
        + _COUNT_FILES,
        {"lineage": lineage_id, "ordinal": ordinal, "paths": wanted},
    ).fetchone()
    assert files is not None
    return SealCounts(*files)


def counts_of(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> SealCounts:
    """The counts that a sealed snapshot was sealed with."""
    row = connection.execute(
        """SELECT files, parsed, gap_files, no_language, excluded, spans, gaps, artifacts FROM snapshot
           WHERE lineage_id = %s AND ordinal = %s""",
        (lineage_id, ordinal),
    ).fetchone()
    assert row is not None
    return SealCounts(*row)


def seal(
    connection: psycopg.Connection[Any],
    *,
    repository_id: int,
    recipe_id: int,
    lineage_id: int,
    ordinal: int,
    commit_id: int | None,
    tree: str,
    counts: SealCounts,
) -> bool:
    """Makes the state at `ordinal` visible as a snapshot; False where another process sealed it first.

    In the caller's transaction: visible at its COMMIT.
    """
    row = connection.execute(
        """INSERT INTO snapshot
               (lineage_id, ordinal, repository_id, recipe_id, commit_id, tree, files, parsed, gap_files,
                no_language, excluded, spans, artifacts, gaps)
           VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
           ON CONFLICT DO NOTHING RETURNING snapshot_id""",
        (
            lineage_id,
            ordinal,
            repository_id,
            recipe_id,
            commit_id,
            tree,
            counts.files,
            counts.parsed,
            counts.gap_files,
            counts.no_language,
            counts.excluded,
            counts.spans,
            counts.artifacts,
            counts.gaps,
        ),
    ).fetchone()
    if row is None:
        return False
    connection.execute(
        "UPDATE lineage SET tip_ordinal = %s WHERE lineage_id = %s AND tip_ordinal < %s",
        (ordinal, lineage_id, ordinal),
    )
    if commit_id is None:
        # A work tree's snapshot replaces the one before; what only that one held is left to gc.
        connection.execute(
            "DELETE FROM snapshot WHERE repository_id = %s AND commit_id IS NULL AND snapshot_id <> %s",
            (repository_id, row[0]),
        )
    return True


def unseal(connection: psycopg.Connection[Any], commit_id: int, recipe_id: int) -> None:
    """Takes away the snapshot of a commit under a recipe, with its lineage if that holds no other.

    In the caller's transaction, which seals another in its place.
    """
    rows = connection.execute(
        "DELETE FROM snapshot WHERE commit_id = %s AND recipe_id = %s RETURNING lineage_id",
        (commit_id, recipe_id),
    ).fetchall()
    for (lineage_id,) in rows:
        others = connection.execute(
            "SELECT 1 FROM snapshot WHERE lineage_id = %s LIMIT 1", (lineage_id,)
        ).fetchone()
        if others is None:
            drop_lineage(connection, int(lineage_id))


_UNLOCATED: LiteralString = """
    SELECT a.logical_key FROM checked JOIN artifact a USING (artifact_pk)
    WHERE NOT EXISTS (
        SELECT FROM grounding_location g
        JOIN snapshot_file f ON f.lineage_id = g.lineage_id AND f.path_id = g.path_id
         AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s AND f.status = 'parsed'
        JOIN span_occurrence o ON o.parse_id = f.parse_id AND o.span_pk = g.span_pk AND o.n = g.n
        WHERE g.lineage_id = %(lineage)s AND g.artifact_pk = a.artifact_pk
          AND g.from_ord <= %(ordinal)s AND g.to_ord > %(ordinal)s)
    ORDER BY 1 LIMIT 5"""

_DANGLING: LiteralString = """
    SELECT a.logical_key FROM grounding_location g
    JOIN artifact a USING (artifact_pk)
    LEFT JOIN snapshot_file f ON f.lineage_id = g.lineage_id AND f.path_id = g.path_id
     AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s AND f.status = 'parsed'
    LEFT JOIN span_occurrence o ON o.parse_id = f.parse_id AND o.span_pk = g.span_pk AND o.n = g.n
    WHERE g.lineage_id = %(lineage)s AND g.from_ord <= %(ordinal)s AND g.to_ord > %(ordinal)s
      AND o.span_pk IS NULL """

_DOUBLED: LiteralString = """
    SELECT a.logical_key FROM checked c JOIN artifact a ON a.logical_key = c.logical_key
    JOIN snapshot_entry e ON e.artifact_pk = a.artifact_pk AND e.lineage_id = %(lineage)s
     AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s
    GROUP BY a.logical_key HAVING count(*) > 1 ORDER BY 1 LIMIT 5"""


def check_all(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> None:
    """Refuses a state in which an artifact is not located, a location dangles, or a key is not unique.

    Looks at every artifact of the state; `check_changed` is for what a small difference touched.

    Raises:
        IntegrityError: names the first few offenders.
    """
    at = {"lineage": lineage_id, "ordinal": ordinal}
    held: LiteralString = """artifact_pk FROM snapshot_entry WHERE lineage_id = %(lineage)s
        AND from_ord <= %(ordinal)s AND to_ord > %(ordinal)s"""
    # A fresh lineage has no statistics yet; every join here is over all of it.
    connection.execute("SET LOCAL enable_nestloop = off")
    unlocated = connection.execute(f"WITH checked AS (SELECT {held})" + _UNLOCATED, at).fetchall()
    dangling = connection.execute(_DANGLING + "ORDER BY 1 LIMIT 5", at).fetchall()
    doubled = connection.execute(
        f"""SELECT a.logical_key FROM artifact a WHERE a.artifact_pk IN (SELECT {held})
            GROUP BY a.logical_key HAVING count(*) > 1 ORDER BY 1 LIMIT 5""",
        at,
    ).fetchall()
    connection.execute("SET LOCAL enable_nestloop = on")
    _refuse(unlocated, dangling, doubled)


def check_changed(
    connection: psycopg.Connection[Any],
    lineage_id: int,
    ordinal: int,
    paths: Iterable[str],
    artifacts: Iterable[int],
) -> None:
    """`check_all` for what a difference touched: what stands in the files at `paths`, and `artifacts`.

    Raises:
        IntegrityError: names the first few offenders.
    """
    at = {"lineage": lineage_id, "ordinal": ordinal, "paths": list(paths), "artifacts": list(artifacts)}
    unlocated = connection.execute(
        """WITH checked AS (
               SELECT t.artifact_pk FROM unnest(%(artifacts)s::int8[]) AS t (artifact_pk)
               JOIN snapshot_entry e ON e.artifact_pk = t.artifact_pk AND e.lineage_id = %(lineage)s
                AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s
               UNION
               SELECT g.artifact_pk FROM unnest(%(paths)s::text[]) AS c (path) JOIN path p USING (path)
               JOIN grounding_location g ON g.lineage_id = %(lineage)s AND g.path_id = p.path_id
                AND g.to_ord >= %(ordinal)s
               JOIN snapshot_entry e ON e.artifact_pk = g.artifact_pk AND e.lineage_id = g.lineage_id
                AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s)"""
        + _UNLOCATED,
        at,
    ).fetchall()
    dangling = connection.execute(
        _DANGLING
        + """AND g.path_id IN (SELECT p.path_id FROM path p WHERE p.path = ANY(%(paths)s::text[]))
             ORDER BY 1 LIMIT 5""",
        at,
    ).fetchall()
    doubled = connection.execute(
        """WITH checked AS (SELECT DISTINCT logical_key FROM unnest(%(artifacts)s::int8[]) AS t (artifact_pk)
                            JOIN artifact USING (artifact_pk))"""
        + _DOUBLED,
        at,
    ).fetchall()
    _refuse(unlocated, dangling, doubled)


def _refuse(
    unlocated: Sequence[tuple[Any, ...]],
    dangling: Sequence[tuple[Any, ...]],
    doubled: Sequence[tuple[Any, ...]],
) -> None:
    for offenders, what in (
        (unlocated, "artifacts without a located grounding"),
        (dangling, "artifacts located where nothing of theirs stands"),
        (doubled, "logical keys that are not unique"),
    ):
        if offenders:
            names = ", ".join(str(row[0]) for row in offenders)
            raise IntegrityError(f"{what}, nothing was sealed: {names}")
