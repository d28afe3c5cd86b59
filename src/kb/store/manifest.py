"""Lineages and the files that their snapshots hold.

A lineage is an order of snapshots; membership rows hold the half-open range of ordinals [from, to) for
which they are true. A new lineage is private to the process that fills it until its first snapshot is
sealed; an existing one is extended under a lock, in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from kb.store.locks import is_orphaned, own_lineage
from kb.store.staging import OPEN, StageTable


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
