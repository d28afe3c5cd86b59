"""What could not be read in a snapshot, file by file."""

from __future__ import annotations

from typing import Any

import psycopg

GapTuple = tuple[str, str, int | None, int | None, str]
"""path, reason, first line, last line (1-based, inclusive; None for the whole file), detail."""


def gaps_at(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> list[GapTuple]:
    """The gaps of a lineage at an ordinal, by path and line."""
    # From the gaps, which are few, to the files: a snapshot may have a hundred thousand of these.
    rows = connection.execute(
        """WITH found AS (
               SELECT f.path_id, coalesce(g.reason, f.reason) AS reason, g.start_line, g.end_line,
                      coalesce(g.detail, '') AS detail, g.seq
               FROM snapshot_file f
               LEFT JOIN gap g ON g.parse_id = f.parse_id AND g.start_line IS NULL
               WHERE f.lineage_id = %(lineage)s AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s
                 AND f.status = 'gap'
               UNION ALL
               SELECT f.path_id, g.reason, g.start_line, g.end_line, g.detail, g.seq
               FROM gap g JOIN snapshot_file f USING (parse_id)
               WHERE f.lineage_id = %(lineage)s AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s
                 AND f.status = 'parsed' AND g.start_line IS NOT NULL)
           SELECT p.path, reason, start_line, end_line, detail FROM found JOIN path p USING (path_id)
           ORDER BY p.path, start_line NULLS FIRST, seq""",
        {"lineage": lineage_id, "ordinal": ordinal},
    ).fetchall()
    return [(str(path), str(reason), start, end, str(detail)) for path, reason, start, end, detail in rows]
