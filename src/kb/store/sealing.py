"""The seal of a snapshot: what it holds, counted; that nothing refers to what is not there; and the moment it is
visible, or no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString, NamedTuple

import psycopg

from kb.errors import IntegrityError
from kb.store.manifest import drop_lineage
from kb.store.staging import plan_for


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
