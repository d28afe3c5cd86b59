"""What could not be read in a snapshot, file by file."""

from __future__ import annotations

from typing import Any

import psycopg

GapTuple = tuple[str, str, int | None, int | None, str]
"""path, reason, first line, last line (1-based, inclusive; None for the whole file), detail."""


def gaps_at(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> list[GapTuple]:
    """The gaps of a lineage at an ordinal, by path and line."""
    rows = connection.execute(
        """SELECT p.path, coalesce(g.reason, f.reason), g.start_line, g.end_line, coalesce(g.detail, '')
           FROM snapshot_file f JOIN path p USING (path_id)
           LEFT JOIN gap g ON g.parse_id = f.parse_id
            AND (f.status = 'gap') = (g.start_line IS NULL)
           WHERE f.lineage_id = %(lineage)s AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s
             AND (f.status = 'gap' OR (f.status = 'parsed' AND g.reason IS NOT NULL))
           ORDER BY p.path, g.start_line NULLS FIRST, g.seq""",
        {"lineage": lineage_id, "ordinal": ordinal},
    ).fetchall()
    return [(str(path), str(reason), start, end, str(detail)) for path, reason, start, end, detail in rows]
