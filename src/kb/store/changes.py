"""What two snapshots hold otherwise than each other, and the life of one logical key."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import psycopg

from kb.store.catalog import SnapshotRow


@dataclass(frozen=True, slots=True)
class Held:
    """An artifact that one of two snapshots holds and the other does not."""

    artifact_pk: int
    kind: str
    logical_key: str
    body_digest: bytes
    body: dict[str, Any]
    title: str


_DIFFERENCE = """
    WITH mine AS (SELECT artifact_pk FROM snapshot_entry WHERE lineage_id = %(lineage)s
                  AND from_ord <= %(ordinal)s AND to_ord > %(ordinal)s),
         theirs AS (SELECT artifact_pk FROM snapshot_entry WHERE lineage_id = %(other_lineage)s
                    AND from_ord <= %(other)s AND to_ord > %(other)s)
    SELECT a.artifact_pk, a.kind, a.logical_key, a.body_digest, a.body, a.title
    FROM (SELECT artifact_pk FROM mine EXCEPT SELECT artifact_pk FROM theirs) d
    JOIN artifact a USING (artifact_pk)
    WHERE %(kinds)s::text[] IS NULL OR a.kind = ANY(%(kinds)s)
    ORDER BY a.kind, a.logical_key"""

# Inside one lineage the ranges say it at the cost of what was opened or closed between the two.
_IN_LINEAGE = """
    SELECT a.artifact_pk, a.kind, a.logical_key, a.body_digest, a.body, a.title
    FROM snapshot_entry e JOIN artifact a USING (artifact_pk)
    WHERE e.lineage_id = %(lineage)s AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s
      AND NOT (e.from_ord <= %(other)s AND e.to_ord > %(other)s)
      AND NOT EXISTS (SELECT FROM snapshot_entry o WHERE o.artifact_pk = e.artifact_pk
          AND o.lineage_id = e.lineage_id AND o.from_ord <= %(other)s AND o.to_ord > %(other)s)
      AND (%(kinds)s::text[] IS NULL OR a.kind = ANY(%(kinds)s))
    ORDER BY a.kind, a.logical_key"""


def only_in(
    connection: psycopg.Connection[Any],
    snapshot: SnapshotRow,
    other: SnapshotRow,
    kinds: list[str] | None = None,
) -> list[Held]:
    """Artifacts that `snapshot` holds and `other` does not, by kind and key."""
    same = snapshot.lineage_id == other.lineage_id
    rows = connection.execute(
        _IN_LINEAGE if same else _DIFFERENCE,
        {
            "lineage": snapshot.lineage_id,
            "ordinal": snapshot.ordinal,
            "other_lineage": other.lineage_id,
            "other": other.ordinal,
            "kinds": kinds,
        },
    ).fetchall()
    return [Held(row[0], row[1], row[2], bytes(row[3]), row[4], row[5]) for row in rows]


# Inside one lineage only artifacts with a place that came or went between the two can stand elsewhere.
_MAY_HAVE_MOVED: LiteralString = """
    SELECT artifact_pk FROM grounding_location WHERE lineage_id = %(base_lineage)s
      AND (from_ord > least(%(base)s, %(head)s) AND from_ord <= greatest(%(base)s, %(head)s)
           OR to_ord > least(%(base)s, %(head)s) AND to_ord <= greatest(%(base)s, %(head)s))"""


def relocated(
    connection: psycopg.Connection[Any],
    base: SnapshotRow,
    head: SnapshotRow,
    kinds: list[str] | None = None,
) -> list[int]:
    """Artifacts that both hold, but in other files."""
    same = base.lineage_id == head.lineage_id
    among = f"AND g.artifact_pk IN ({_MAY_HAVE_MOVED})" if same else ""
    rows = connection.execute(
        f"""WITH was AS (
               SELECT g.artifact_pk, array_agg(DISTINCT g.path_id ORDER BY g.path_id) AS paths
               FROM snapshot_entry e JOIN grounding_location g USING (lineage_id, artifact_pk)
               WHERE e.lineage_id = %(base_lineage)s
                 AND e.from_ord <= %(base)s AND e.to_ord > %(base)s
                 AND g.from_ord <= %(base)s AND g.to_ord > %(base)s {among} GROUP BY 1),
           now AS (
               SELECT g.artifact_pk, array_agg(DISTINCT g.path_id ORDER BY g.path_id) AS paths
               FROM snapshot_entry e JOIN grounding_location g USING (lineage_id, artifact_pk)
               WHERE e.lineage_id = %(head_lineage)s
                 AND e.from_ord <= %(head)s AND e.to_ord > %(head)s
                 AND g.from_ord <= %(head)s AND g.to_ord > %(head)s {among} GROUP BY 1)
           SELECT a.artifact_pk FROM was JOIN now USING (artifact_pk) JOIN artifact a USING (artifact_pk)
           WHERE was.paths <> now.paths AND (%(kinds)s::text[] IS NULL OR a.kind = ANY(%(kinds)s))
           ORDER BY a.kind, a.logical_key""",
        {
            "base_lineage": base.lineage_id,
            "base": base.ordinal,
            "head_lineage": head.lineage_id,
            "head": head.ordinal,
            "kinds": kinds,
        },
    ).fetchall()
    return [int(row[0]) for row in rows]


@dataclass(frozen=True, slots=True)
class KeyAt:
    """What a snapshot holds under a logical key; no artifact where it holds nothing."""

    sha: str
    committed_at: datetime
    subject: str
    artifact_pk: int | None
    body_digest: bytes | None
    body: dict[str, Any] | None
    homes: tuple[str, ...]
    """The files that it was read from."""
    lineage_id: int
    ordinal: int


def key_over_time(
    connection: psycopg.Connection[Any], repository_id: int, recipe_id: int, key: str
) -> list[KeyAt]:
    """A logical key at every sealed commit of a repository under a recipe, by committer's date."""
    rows = connection.execute(
        """SELECT c.sha, c.committed_at, c.subject, held.artifact_pk, held.body_digest, held.body,
                  held.homes, s.lineage_id, s.ordinal
           FROM snapshot s JOIN commit_ref c USING (commit_id)
           LEFT JOIN LATERAL (
               SELECT a.artifact_pk, a.body_digest, a.body, array_agg(p.path ORDER BY p.path) AS homes
               FROM artifact a
               JOIN snapshot_entry e ON e.artifact_pk = a.artifact_pk AND e.lineage_id = s.lineage_id
                AND e.from_ord <= s.ordinal AND e.to_ord > s.ordinal
               JOIN path p ON p.path_id = e.home_path_id
               WHERE a.logical_key = %(key)s GROUP BY a.artifact_pk LIMIT 1) held ON true
           WHERE s.repository_id = %(repository)s AND s.recipe_id = %(recipe)s
           ORDER BY c.committed_at, s.snapshot_id""",
        {"repository": repository_id, "recipe": recipe_id, "key": key},
    ).fetchall()
    return [
        KeyAt(
            sha=row[0],
            committed_at=row[1],
            subject=row[2],
            artifact_pk=row[3],
            body_digest=None if row[4] is None else bytes(row[4]),
            body=row[5],
            homes=tuple(row[6] or ()),
            lineage_id=row[7],
            ordinal=row[8],
        )
        for row in rows
    ]


def homes(
    connection: psycopg.Connection[Any], snapshot: SnapshotRow, artifact_pks: Collection[int]
) -> dict[int, list[str]]:
    """The files that artifacts of a snapshot were read from: of a route the one that declares it."""
    rows = connection.execute(
        """SELECT e.artifact_pk, array_agg(p.path ORDER BY p.path)
           FROM snapshot_entry e JOIN path p ON p.path_id = e.home_path_id
           WHERE e.lineage_id = %s AND e.artifact_pk = ANY(%s::int8[])
             AND e.from_ord <= %s AND e.to_ord > %s
           GROUP BY 1""",
        (snapshot.lineage_id, list(artifact_pks), snapshot.ordinal, snapshot.ordinal),
    ).fetchall()
    return {int(row[0]): list(row[1]) for row in rows}
