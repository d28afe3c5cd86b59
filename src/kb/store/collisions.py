"""Keeps logical keys unique in a snapshot where several files claim one.

Linking one file cannot know what others claim, so keys are told apart afterwards: of the artifacts with
one key the one whose home comes first by path keeps it, the others get `~~2`, `~~3`... in that order.
What comes out depends on the set of drafts and their homes alone, not on how the snapshot was reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, LiteralString, NamedTuple

import psycopg

from kb.identity.artifacts import seal_draft
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.store.content import put_artifacts, span_keys
from kb.store.staging import OPEN

_MARK = re.compile(r"~~[0-9]+\Z")


class _Claim(NamedTuple):
    base: str
    """The key as it was drafted."""
    path: str
    """The home that claims it."""
    key: str
    """What it is called at present."""
    artifact_pk: int


def settle_all(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> int:
    """Tells apart every key that is claimed twice at the ordinal; how many artifacts got another key."""
    rows = connection.execute(
        """SELECT a.logical_key FROM snapshot_entry e JOIN artifact a USING (artifact_pk)
           WHERE e.lineage_id = %s AND e.from_ord <= %s AND e.to_ord = %s
           GROUP BY 1 HAVING count(*) > 1""",
        (lineage_id, ordinal, OPEN),
    ).fetchall()
    return len(_settle(connection, lineage_id, ordinal, {str(row[0]) for row in rows}))


def settle_changed(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> int:
    """`settle_all` for the keys that `links.replace` has just let go or claimed, in its transaction."""
    rows = connection.execute(
        """SELECT DISTINCT a.logical_key FROM (
               SELECT artifact_pk FROM stage_held WHERE NOT still UNION SELECT artifact_pk FROM stage_entry) t
           JOIN artifact a USING (artifact_pk)"""
    ).fetchall()
    keys = {str(row[0]) for row in rows}
    touched = {_MARK.sub("", key) for key in keys}
    # A numbered key that was let go leaves a hole, also where nobody has the first two any more.
    numbered = {_MARK.sub("", key) for key in keys if _MARK.search(key)}
    claims = _claims(connection, lineage_id, {key for base in touched for key in (base, f"{base}~~2")})
    seen: dict[str, int] = {}
    for claim in claims:
        seen[claim.base] = seen.get(claim.base, 0) + (2 if claim.key != claim.base else 1)
    renamed = _settle(
        connection, lineage_id, ordinal, numbered | {base for base, weight in seen.items() if weight > 1}
    )
    # What got another key entered just now like what was linked: `manifest.check_changed` looks at it too.
    connection.execute("INSERT INTO stage_entry (artifact_pk) SELECT unnest(%s::int8[])", (renamed,))
    return len(renamed)


def _settle(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, bases: set[str]) -> list[int]:
    """Artifacts that stand under another key now."""
    renamed = []
    for base in sorted(bases):
        claims = sorted(_all_claims(connection, lineage_id, base), key=lambda claim: claim.path.encode())
        for number, claim in enumerate(claims, start=1):
            wanted = base if number == 1 else f"{base}~~{number}"
            if claim.key != wanted:
                renamed.append(_rename(connection, lineage_id, ordinal, claim, wanted))
    return renamed


def _all_claims(connection: psycopg.Connection[Any], lineage_id: int, base: str) -> list[_Claim]:
    """Whoever claims `base`, under whatever number: there are holes while a change is under way.

    Looks through all of the lineage's tip; it is asked only where files do share a key.
    """
    rows = connection.execute(
        """SELECT DISTINCT a.logical_key FROM snapshot_entry e JOIN artifact a USING (artifact_pk)
           WHERE e.lineage_id = %s AND e.to_ord = %s
             AND (a.logical_key = %s OR starts_with(a.logical_key, %s))""",
        (lineage_id, OPEN, base, f"{base}~~"),
    ).fetchall()
    claims = _claims(connection, lineage_id, [str(row[0]) for row in rows])
    return [claim for claim in claims if claim.base == base]


def _claims(connection: psycopg.Connection[Any], lineage_id: int, keys: Iterable[str]) -> list[_Claim]:
    rows = connection.execute(
        """SELECT a.logical_key, p.path, a.artifact_pk FROM unnest(%s::text[]) AS k (key)
           JOIN artifact a ON a.logical_key = k.key
           JOIN snapshot_entry e ON e.artifact_pk = a.artifact_pk AND e.lineage_id = %s AND e.to_ord = %s
           JOIN path p ON p.path_id = e.home_path_id""",
        (sorted(keys), lineage_id, OPEN),
    ).fetchall()
    return [_Claim(_MARK.sub("", str(key)), str(path), str(key), int(pk)) for key, path, pk in rows]


def _rename(
    connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, claim: _Claim, key: str
) -> int:
    """The same artifact under another key, in the same home and places, from the ordinal on."""
    stored, extractor, version = _stored(connection, claim.artifact_pk)
    draft = replace(stored, logical_key=key)
    sealed = seal_draft(draft, extractor, version)
    spans = span_keys(connection, {place.span_id for place in draft.groundings})
    fresh = put_artifacts(connection, [sealed], spans)[sealed.artifact_id]
    at = {
        "lineage": lineage_id,
        "ordinal": ordinal,
        "open": OPEN,
        "old": claim.artifact_pk,
        "new": fresh,
        "path": claim.path,
    }
    connection.execute(
        """INSERT INTO snapshot_entry (lineage_id, artifact_pk, home_path_id, from_ord, to_ord)
           SELECT e.lineage_id, %(new)s, e.home_path_id, %(ordinal)s, %(open)s
           FROM snapshot_entry e JOIN path p ON p.path_id = e.home_path_id
           WHERE e.lineage_id = %(lineage)s AND e.artifact_pk = %(old)s AND e.to_ord = %(open)s
             AND p.path = %(path)s""",
        at,
    )
    # Copies of a file may yield the very same artifact. Each then takes along what stands in its own file
    # or in no other copy, and leaves to the others what stands in theirs or in none.
    theirs: LiteralString = """EXISTS (
        SELECT FROM snapshot_entry e JOIN path h ON h.path_id = e.home_path_id
        WHERE e.lineage_id = %(lineage)s AND e.artifact_pk = %(old)s AND e.to_ord = %(open)s
          AND h.path <> %(path)s AND h.path_id = g.path_id)"""
    needed: LiteralString = """EXISTS (
        SELECT FROM snapshot_entry e JOIN path h ON h.path_id = e.home_path_id
        WHERE e.lineage_id = %(lineage)s AND e.artifact_pk = %(old)s AND e.to_ord = %(open)s
          AND h.path <> %(path)s AND g.path_id <> (SELECT path_id FROM path WHERE path = %(path)s))"""
    connection.execute(
        f"""INSERT INTO grounding_location (lineage_id, artifact_pk, span_pk, path_id, n, from_ord, to_ord)
            SELECT lineage_id, %(new)s, span_pk, path_id, n, %(ordinal)s, %(open)s FROM grounding_location g
            WHERE lineage_id = %(lineage)s AND artifact_pk = %(old)s AND to_ord = %(open)s AND NOT {theirs}""",
        at,
    )
    _end(connection, "grounding_location", f"NOT {needed}", at)
    _end(
        connection, "snapshot_entry", "g.home_path_id = (SELECT path_id FROM path WHERE path = %(path)s)", at
    )
    return fresh


def _end(
    connection: psycopg.Connection[Any], table: LiteralString, which: LiteralString, at: Mapping[str, Any]
) -> None:
    """Closes rows of the old artifact; one that began at this very ordinal was never true of a snapshot."""
    held: LiteralString = "g.lineage_id = %(lineage)s AND g.artifact_pk = %(old)s AND g.to_ord = %(open)s"
    connection.execute(f"DELETE FROM {table} g WHERE {held} AND g.from_ord = %(ordinal)s AND {which}", at)
    connection.execute(f"UPDATE {table} g SET to_ord = %(ordinal)s WHERE {held} AND {which}", at)


def _stored(connection: psycopg.Connection[Any], artifact_pk: int) -> tuple[ArtifactDraft, str, int]:
    """An artifact's draft, extractor and its version; groundings carry spans and roles, not places."""
    row = connection.execute(
        """SELECT extractor, extractor_version, kind, logical_key, title, body, text, confidence
           FROM artifact WHERE artifact_pk = %s""",
        (artifact_pk,),
    ).fetchone()
    assert row is not None
    grounds = connection.execute(
        """SELECT c.span_id, d.role FROM artifact_derived_from d JOIN code_span c USING (span_pk)
           WHERE d.artifact_pk = %s ORDER BY 1, 2""",
        (artifact_pk,),
    ).fetchall()
    edges = connection.execute(
        "SELECT relation, target_key FROM artifact_edge WHERE artifact_pk = %s ORDER BY 1, 2", (artifact_pk,)
    ).fetchall()
    draft = ArtifactDraft(
        kind=row[2],
        logical_key=row[3],
        title=row[4],
        body=row[5],
        text=row[6],
        groundings=tuple(Grounding("", bytes(span), 0, str(role)) for span, role in grounds),
        links=tuple(Link(str(relation), str(target)) for relation, target in edges),
        confidence=row[7],
    )
    return draft, str(row[0]), int(row[1])
