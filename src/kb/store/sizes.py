"""How much the database holds."""

from __future__ import annotations

from typing import Any

import psycopg


def database_bytes(connection: psycopg.Connection[Any]) -> int:
    """Size of the whole database on disk."""
    row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


def kinds_of(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> dict[str, int]:
    """Kind -> how many artifacts of it a lineage holds at an ordinal."""
    rows = connection.execute(
        """SELECT a.kind, count(*) FROM snapshot_entry e JOIN artifact a USING (artifact_pk)
           WHERE e.lineage_id = %(lineage)s AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s
           GROUP BY 1 ORDER BY 1""",
        {"lineage": lineage_id, "ordinal": ordinal},
    ).fetchall()
    return {str(kind): int(count) for kind, count in rows}
