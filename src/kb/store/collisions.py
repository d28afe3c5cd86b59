"""Keeps logical keys unique in a snapshot where several files claim one.

Linking one file cannot know what others claim, so keys are told apart afterwards: of the artifacts with
one key the one whose home comes first by path keeps it, the others get `~~` and the path of their home.
What comes out depends on the set of drafts and their homes alone, not on how the snapshot was reached;
a file that comes or goes renames at most the one that is first without it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, LiteralString, NamedTuple

import psycopg

from kb.identity.artifacts import seal_draft
from kb.model.artifacts import SHARED, Artifact, ArtifactDraft, Grounding, Link, LinkedFile
from kb.store.content import put_artifacts, span_keys
from kb.store.links import HeldByHomes
from kb.store.staging import OPEN


class _Claim(NamedTuple):
    """An artifact of a home that is not linked now; claims of one key sort into the order of precedence."""

    path: str
    extractor: str
    kind: str
    key: str
    """What it is called at present."""
    artifact_pk: int


class _Draft(NamedTuple):
    """An artifact that was linked just now, under the key that it was drafted with."""

    path: str
    extractor: str
    kind: str
    key: str
    home: LinkedFile
    number: int
    """In the home's artifacts."""


class Renaming(NamedTuple):
    """An artifact of the tip that has to go by another key."""

    claim: _Claim
    key: str


def base_of(key: str, path: str) -> str:
    """The key that an artifact was drafted with, of the one that it goes by in the home at `path`."""
    if SHARED not in key:
        return key
    return re.sub(f"{SHARED}{re.escape(path)}(~[0-9]+)?\\Z", "", key)


def _names(base: str, paths: Sequence[str]) -> list[str]:
    """What the claims of one key are called; `paths` are their homes in the order of precedence."""
    names = dict.fromkeys([base][: len(paths)])
    for path in paths[1:]:
        name, number = f"{base}{SHARED}{path}", 1
        while name in names:
            number += 1
            name = f"{base}{SHARED}{path}~{number}"
        names[name] = None
    return list(names)


def settle_all(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> None:
    """Tells apart every key that is claimed twice in a lineage that was filled just now."""
    rows = connection.execute(
        """SELECT a.logical_key FROM snapshot_entry e JOIN artifact a USING (artifact_pk)
           WHERE e.lineage_id = %s AND e.from_ord <= %s AND e.to_ord = %s
           GROUP BY 1 HAVING count(*) > 1""",
        (lineage_id, ordinal, OPEN),
    ).fetchall()
    for base, claims in _claims(connection, lineage_id, {str(row[0]) for row in rows}).items():
        ordered = sorted(claims, key=_precedence)
        for claim, name in zip(ordered, _names(base, [claim.path for claim in ordered]), strict=True):
            if claim.key != name:
                _rename(connection, lineage_id, ordinal, Renaming(claim, name))


def settle_linked(
    connection: psycopg.Connection[Any],
    linked: Sequence[LinkedFile],
    before: HeldByHomes,
) -> list[Renaming]:
    """Gives the artifacts of `linked` the keys they will go by, and says what else has to be renamed.

    Args:
        connection: in a transaction that holds the lineage's lock.
        linked: homes that were linked anew; artifacts in them are replaced.
        before: what they hold at the tip, and homes that yield nothing any more.

    Returns:
        Artifacts of other homes, for `rename` once the homes are written.
    """
    drafts = defaultdict(list)
    for one in linked:
        for number, artifact in enumerate(one.artifacts):
            draft = artifact.draft
            drafts[draft.logical_key].append(
                _Draft(one.path, one.extractor, draft.kind, draft.logical_key, one, number)
            )
    touched = _touched(linked, before)
    others = {
        base: [claim for claim in claims if (claim.path, claim.extractor) not in before.homes]
        for base, claims in _claims(connection, before.lineage_id, touched).items()
    }
    renamings = []
    for base in sorted(touched):
        claims = sorted([*others.get(base, ()), *drafts.get(base, ())], key=_precedence)
        for claim, name in zip(claims, _names(base, [claim.path for claim in claims]), strict=True):
            if isinstance(claim, _Claim):
                if claim.key != name:
                    renamings.append(Renaming(claim, name))
            elif claim.key != name:
                claim.home.artifacts[claim.number] = _renamed(claim.home.artifacts[claim.number], name)
    return renamings


def _precedence(claim: _Claim | _Draft) -> tuple[bytes, str, str]:
    return claim.path.encode(), claim.extractor, claim.kind


def _renamed(artifact: Artifact, key: str) -> Artifact:
    draft = replace(artifact.draft, logical_key=key)
    return seal_draft(draft, artifact.extractor, artifact.extractor_version)


def _touched(linked: Sequence[LinkedFile], before: HeldByHomes) -> set[str]:
    """Keys as drafted that the homes claim anew or no longer: who goes by them may have changed."""
    held = {(entry.path, entry.artifact_id): entry.key for entry in before.entries}
    touched = set()
    for one in linked:
        for artifact in one.artifacts:
            if held.pop((one.path, artifact.artifact_id), None) is None:
                touched.add(artifact.draft.logical_key)
    return touched | {base_of(key, path) for (path, _), key in held.items()}


def _claims(
    connection: psycopg.Connection[Any], lineage_id: int, bases: Iterable[str]
) -> dict[str, list[_Claim]]:
    """Whoever claims one of these keys at the lineage's tip, by whatever name."""
    keys = sorted(bases)
    if not keys:
        return {}
    rows = connection.execute(
        """WITH k AS MATERIALIZED (SELECT unnest(%(keys)s::text[]) COLLATE "C" AS key),
           named AS (
               SELECT a.artifact_pk, k.key FROM k JOIN artifact a ON a.logical_key = k.key
               UNION ALL
               SELECT a.artifact_pk, k.key FROM k
               JOIN artifact a ON strpos(a.logical_key, '~~') > 0
                AND a.logical_key > k.key || '~~' AND a.logical_key < k.key || '~' || chr(127))
           SELECT named.key, p.path, a.extractor, a.kind, a.logical_key, a.artifact_pk
           FROM named JOIN artifact a USING (artifact_pk)
           JOIN snapshot_entry e ON e.artifact_pk = a.artifact_pk AND e.lineage_id = %(lineage)s
            AND e.to_ord = %(open)s
           JOIN path p ON p.path_id = e.home_path_id""",
        {"keys": keys, "lineage": lineage_id, "open": OPEN},
    ).fetchall()
    claims = defaultdict(list)
    for base, path, *rest in rows:
        claim = _Claim(path, *rest)
        if base_of(claim.key, path) == base:
            claims[str(base)].append(claim)
    return claims


def rename(
    connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, renamings: Sequence[Renaming]
) -> list[int]:
    """Gives artifacts of the tip other keys from the ordinal on, after `links.replace`, in its transaction.

    Returns the artifacts that they are now.
    """
    return [_rename(connection, lineage_id, ordinal, renaming) for renaming in renamings]


def _rename(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, renaming: Renaming) -> int:
    """The same artifact under another key, in the same home and places, from the ordinal on."""
    claim, key = renaming
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
