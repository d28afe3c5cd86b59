"""Drops snapshots, and the rows of their lineages that only they needed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, LiteralString

import psycopg

from kb.store.manifest import drop_lineage

_UNHELD: tuple[tuple[LiteralString, LiteralString], ...] = tuple(
    (
        table,
        f"""DELETE FROM {table} x WHERE x.lineage_id = %(lineage)s AND NOT EXISTS (
                SELECT FROM snapshot s WHERE s.lineage_id = x.lineage_id
                AND s.ordinal >= x.from_ord AND s.ordinal < x.to_ord)""",
    )
    for table in ("grounding_location", "snapshot_entry", "snapshot_file")
)

# Rows of the search index hold from their ordinal on until the next row of the same key.
_UNSEEN: tuple[LiteralString, ...] = (
    """DELETE FROM search_snapshot x WHERE x.lineage_id = %(lineage)s AND NOT EXISTS (
           SELECT FROM snapshot s WHERE s.lineage_id = x.lineage_id AND s.ordinal = x.ordinal)""",
    *(
        f"""DELETE FROM {table} x USING (
                SELECT {key}, from_ord, lead(from_ord) OVER (PARTITION BY {key} ORDER BY from_ord) AS to_ord
                FROM {table} WHERE lineage_id = %(lineage)s) r
            WHERE x.lineage_id = %(lineage)s AND x.from_ord = r.from_ord AND (x.{same}) = (r.{other})
              AND r.to_ord IS NOT NULL AND NOT EXISTS (
                SELECT FROM snapshot s WHERE s.lineage_id = %(lineage)s
                AND s.ordinal >= r.from_ord AND s.ordinal < r.to_ord)"""
        for table, key, same, other in (
            ("search_frequency", "term_id", "term_id", "term_id"),
            ("search_member", "kind, chunk", "kind, x.chunk", "kind, r.chunk"),
        )
    ),
)
_INDEX: tuple[LiteralString, ...] = (
    "search_document",
    "search_block",
    "search_frequency",
    "search_member",
    "search_snapshot",
)


def drop_snapshots(connection: psycopg.Connection[Any], snapshot_ids: Collection[int]) -> int:
    """Erases snapshots with the membership rows that no other snapshot of their lineage needs.

    A lineage that holds no snapshot afterwards goes as a whole. The tip of a lineage that stays has to
    stay too: the next difference is against it. In the caller's transaction, under the collector's lock.

    Returns:
        how many membership rows were erased, lineages that went as a whole aside.
    """
    rows = connection.execute(
        "DELETE FROM snapshot WHERE snapshot_id = ANY(%s::int8[]) RETURNING lineage_id",
        (list(snapshot_ids),),
    ).fetchall()
    erased = 0
    for lineage_id in sorted({int(row[0]) for row in rows}):
        left = connection.execute(
            "SELECT count(*) FROM snapshot WHERE lineage_id = %s", (lineage_id,)
        ).fetchone()
        if left == (0,):
            drop_lineage(connection, lineage_id)
            continue
        erased += drop_unheld(connection, lineage_id)
    return erased


def drop_unheld(connection: psycopg.Connection[Any], lineage_id: int) -> int:
    """Erases the rows of a lineage, also of its search index, that none of its snapshots needs; how many."""
    at = {"lineage": lineage_id}
    erased = sum(connection.execute(statement, at).rowcount for _, statement in _UNHELD)
    stranded = connection.execute(
        """DELETE FROM search_index i WHERE i.lineage_id = %(lineage)s AND NOT EXISTS (
               SELECT FROM snapshot s WHERE s.lineage_id = i.lineage_id AND s.ordinal = i.through_ordinal)""",
        at,
    ).rowcount
    if stranded:
        # The index grows by differences from the snapshot that it is through with: without that one
        # it cannot go on, and the next search builds it anew from what is left.
        return erased + sum(
            connection.execute(f"DELETE FROM {table} WHERE lineage_id = %(lineage)s", at).rowcount
            for table in _INDEX
        )
    return erased + sum(connection.execute(statement, at).rowcount for statement in _UNSEEN)


def tips(connection: psycopg.Connection[Any], repository_id: int) -> set[int]:
    """Snapshots that are the tip of their lineage."""
    rows = connection.execute(
        """SELECT s.snapshot_id FROM lineage l
           JOIN snapshot s ON s.lineage_id = l.lineage_id AND s.ordinal = l.tip_ordinal
           WHERE l.repository_id = %s""",
        (repository_id,),
    ).fetchall()
    return {int(row[0]) for row in rows}
