"""Drops snapshots, and the membership rows that only they needed."""

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
    """Erases the membership rows of a lineage that none of its snapshots holds; how many."""
    return sum(connection.execute(statement, {"lineage": lineage_id}).rowcount for _, statement in _UNHELD)


def tips(connection: psycopg.Connection[Any], repository_id: int) -> set[int]:
    """Snapshots that are the tip of their lineage."""
    rows = connection.execute(
        """SELECT s.snapshot_id FROM lineage l
           JOIN snapshot s ON s.lineage_id = l.lineage_id AND s.ordinal = l.tip_ordinal
           WHERE l.repository_id = %s""",
        (repository_id,),
    ).fetchall()
    return {int(row[0]) for row in rows}
