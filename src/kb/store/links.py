"""Stores what linking yielded: artifacts with their groundings, and the lineage's membership rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg

from kb.errors import IntegrityError
from kb.model.artifacts import LinkedFile, LookupRow
from kb.store.content import commit_without_waiting, copy_rows, put_artifacts, span_keys
from kb.store.keys import stored_key
from kb.store.staging import OPEN


class _Batch:
    """Linked files as rows of keys: artifacts, spans and paths are stored and known by number."""

    def __init__(self, connection: psycopg.Connection[Any], linked: Sequence[LinkedFile]) -> None:
        pairs = [(one.path, artifact) for one in linked for artifact in one.artifacts]
        places = [(artifact, place) for _, artifact in pairs for place in artifact.draft.groundings]
        spans = span_keys(connection, {place.span_id for _, place in places})
        artifacts = put_artifacts(connection, (artifact for _, artifact in pairs), spans)
        self.paths = _path_keys(
            connection, {*(one.path for one in linked), *(place.path for _, place in places)}
        )
        self.entries = {(artifacts[artifact.artifact_id], self.paths[path]) for path, artifact in pairs}
        self.located = {
            (artifacts[artifact.artifact_id], spans[place.span_id], self.paths[place.path], place.n)
            for artifact, place in places
        }
        self.lookups = [
            (self.paths[row.path], row.extractor, row.kind, stored_key(row.key), row.answer)
            for one in linked
            for row in one.lookups
        ]


def _path_keys(connection: psycopg.Connection[Any], paths: Iterable[str]) -> dict[str, int]:
    wanted = set(paths)
    rows = connection.execute(
        "SELECT path, path_id FROM path WHERE path = ANY(%s::text[])", (list(wanted),)
    ).fetchall()
    found = {str(path): int(key) for path, key in rows}
    if len(found) != len(wanted):
        raise IntegrityError(f"paths that no file of the snapshot has: {sorted(wanted - found.keys())[:5]}")
    return found


def put_fresh(
    connection: psycopg.Connection[Any], linked: Sequence[LinkedFile], lineage_id: int, ordinal: int
) -> None:
    """Stores linked files of a lineage that holds nothing of them yet, in the caller's transaction.

    Its COMMIT does not wait for the disk; that of the seal does.

    Raises:
        IntegrityError: the lineage is gone: whoever ran this was given up for dead.
    """
    # The lock makes a process that clears the lineage away wait for this one, or this one find it gone.
    if not connection.execute(
        "SELECT 1 FROM lineage WHERE lineage_id = %s FOR KEY SHARE", (lineage_id,)
    ).fetchone():
        raise IntegrityError("the lineage that was being filled is gone; nothing was sealed")
    commit_without_waiting(connection)
    batch = _Batch(connection, linked)
    copy_rows(
        connection,
        "snapshot_entry",
        {"lineage_id": "int8", "artifact_pk": "int8", "home_path_id": "int8", "from_ord": "int4"},
        ((lineage_id, artifact, path, ordinal) for artifact, path in sorted(batch.entries)),
    )
    copy_rows(
        connection,
        "grounding_location",
        {
            "lineage_id": "int8",
            "artifact_pk": "int8",
            "span_pk": "int8",
            "path_id": "int8",
            "n": "int4",
            "from_ord": "int4",
        },
        ((lineage_id, *place, ordinal) for place in sorted(batch.located)),
    )
    _copy_lookups(connection, batch.lookups, lineage_id)


class _Entry(NamedTuple):
    """An artifact that a home holds at the lineage's tip."""

    path: str
    path_id: int
    artifact_id: bytes
    artifact_pk: int
    key: str


@dataclass(frozen=True, slots=True)
class HeldByHomes:
    """What some homes, (path, extractor) each, hold at a lineage's tip."""

    lineage_id: int
    homes: frozenset[tuple[str, str]]
    entries: list[_Entry]
    lookups: set[LookupRow]
    """With keys as they are stored (`store.keys`)."""


_Place = tuple[bytes, bytes, str, int]
"""artifact id, span id, path, n"""


def held(
    connection: psycopg.Connection[Any], homes: Iterable[tuple[str, str]], lineage_id: int
) -> HeldByHomes:
    """What the homes hold at the tip: what linking them again is compared with."""
    wanted = sorted(homes)
    at = {
        "paths": [path for path, _ in wanted],
        "extractors": [extractor for _, extractor in wanted],
        "lineage": lineage_id,
        "open": OPEN,
    }
    entries = connection.execute(
        """SELECT p.path, p.path_id, a.artifact_id, a.artifact_pk, a.logical_key
           FROM unnest(%(paths)s::text[], %(extractors)s::text[]) AS h (path, extractor)
           JOIN path p USING (path)
           JOIN snapshot_entry e ON e.lineage_id = %(lineage)s AND e.home_path_id = p.path_id
            AND e.to_ord = %(open)s
           JOIN artifact a ON a.artifact_pk = e.artifact_pk AND a.extractor = h.extractor""",
        at,
        binary=True,
    ).fetchall()
    lookups = connection.execute(
        """SELECT p.path, k.extractor, k.kind, k.key, k.answer
           FROM unnest(%(paths)s::text[], %(extractors)s::text[]) AS h (path, extractor)
           JOIN path p USING (path)
           JOIN lookup k ON k.lineage_id = %(lineage)s AND k.path_id = p.path_id
            AND k.extractor = h.extractor""",
        at,
        binary=True,
    ).fetchall()
    return HeldByHomes(
        lineage_id,
        frozenset(wanted),
        [_Entry(path, path_id, bytes(digest), pk, key) for path, path_id, digest, pk, key in entries],
        {
            LookupRow(path, extractor, kind, key, bytes(answer))
            for path, extractor, kind, key, answer in lookups
        },
    )


class Replaced(NamedTuple):
    """What `replace` changed."""

    grew: int
    """By how many artifacts the lineage grew; negative where it shrank."""
    touched: list[int]
    """Artifacts that entered, or stay and stand in other places."""


def replace(
    connection: psycopg.Connection[Any], linked: Sequence[LinkedFile], before: HeldByHomes, ordinal: int
) -> Replaced:
    """Makes the homes of `before` hold from `ordinal` on what `linked` says; nothing where it says nothing.

    Only what differs from the tip is written. In the caller's transaction, which holds the lineage's lock.
    """
    known = {(entry.path, entry.artifact_id): entry for entry in before.entries}
    pairs = {(one.path, artifact.artifact_id): artifact for one in linked for artifact in one.artifacts}
    opened = {pair: artifact for pair, artifact in pairs.items() if pair not in known}
    closed = [entry for pair, entry in known.items() if pair not in pairs]
    old = _places(connection, before)
    new: set[_Place] = {
        (artifact.artifact_id, place.span_id, place.path, place.n)
        for artifact in pairs.values()
        for place in artifact.draft.groundings
    }
    appearing = new - old.keys()
    spans = span_keys(
        connection,
        {place.span_id for artifact in opened.values() for place in artifact.draft.groundings}
        | {span_id for _, span_id, _, _ in appearing},
    )
    keys = {entry.artifact_id: entry.artifact_pk for entry in before.entries}
    keys |= put_artifacts(connection, opened.values(), spans)
    left = old.keys() - new
    if closed or left:
        _close(connection, before.lineage_id, ordinal, closed, [old[place] for place in left])
    if opened or appearing:
        paths = _path_keys(connection, {path for path, _ in opened} | {path for _, _, path, _ in appearing})
        _open(
            connection,
            before.lineage_id,
            ordinal,
            [(keys[artifact_id], paths[path]) for path, artifact_id in opened],
            [(keys[artifact_id], spans[span], paths[path], n) for artifact_id, span, path, n in appearing],
        )
    _replace_lookups(connection, linked, before)
    touched = {keys[artifact_id] for _, artifact_id in opened} | {keys[place[0]] for place in appearing}
    moved = {old[place][0] for place in left} - {entry.artifact_pk for entry in closed}
    return Replaced(len(opened) - len(closed), sorted(touched | moved))


def _places(
    connection: psycopg.Connection[Any], before: HeldByHomes
) -> dict[_Place, tuple[int, int, int, int]]:
    """Where the artifacts of some homes stand at the tip; each place with its row's keys."""
    if not before.entries:
        return {}
    rows = connection.execute(
        """SELECT a.artifact_id, c.span_id, p.path, g.n, g.artifact_pk, g.span_pk, g.path_id
           FROM unnest(%s::int8[]) AS h (artifact_pk) JOIN artifact a USING (artifact_pk)
           JOIN grounding_location g ON g.lineage_id = %s AND g.artifact_pk = h.artifact_pk AND g.to_ord = %s
           JOIN code_span c USING (span_pk) JOIN path p ON p.path_id = g.path_id""",
        ([entry.artifact_pk for entry in before.entries], before.lineage_id, OPEN),
        binary=True,
    ).fetchall()
    return {
        (bytes(artifact_id), bytes(span_id), path, n): (artifact, span, path_id, n)
        for artifact_id, span_id, path, n, artifact, span, path_id in rows
    }


def _replace_lookups(
    connection: psycopg.Connection[Any], linked: Sequence[LinkedFile], before: HeldByHomes
) -> None:
    """Takes away look-ups that are not asked any more or have another answer, and adds those that are new."""
    now = {row._replace(key=stored_key(row.key)) for one in linked for row in one.lookups}
    stale, fresh = before.lookups - now, now - before.lookups
    if not stale and not fresh:
        return
    paths = _path_keys(connection, {row.path for row in stale | fresh})
    _drop_lookups(connection, before.lineage_id, [(paths[row.path], *row[1:]) for row in stale])
    _copy_lookups(connection, [(paths[row.path], *row[1:]) for row in fresh], before.lineage_id)


def _close(
    connection: psycopg.Connection[Any],
    lineage_id: int,
    ordinal: int,
    entries: Sequence[_Entry],
    places: Sequence[tuple[int, int, int, int]],
) -> None:
    connection.execute(
        """UPDATE snapshot_entry e SET to_ord = %s
           FROM unnest(%s::int8[], %s::int8[]) AS c (artifact_pk, path_id)
           WHERE e.artifact_pk = c.artifact_pk AND e.lineage_id = %s AND e.home_path_id = c.path_id
             AND e.to_ord = %s""",
        (
            ordinal,
            [entry.artifact_pk for entry in entries],
            [entry.path_id for entry in entries],
            lineage_id,
            OPEN,
        ),
    )
    connection.execute(
        """UPDATE grounding_location g SET to_ord = %s
           FROM unnest(%s::int8[], %s::int8[], %s::int8[], %s::int4[]) AS c (artifact_pk, span_pk, path_id, n)
           WHERE g.artifact_pk = c.artifact_pk AND g.lineage_id = %s AND g.path_id = c.path_id
             AND g.span_pk = c.span_pk AND g.n = c.n AND g.to_ord = %s""",
        (ordinal, *_columns(places, 4), lineage_id, OPEN),
    )


def _open(
    connection: psycopg.Connection[Any],
    lineage_id: int,
    ordinal: int,
    entries: Sequence[tuple[int, int]],
    places: Sequence[tuple[int, int, int, int]],
) -> None:
    connection.execute(
        """INSERT INTO snapshot_entry (lineage_id, artifact_pk, home_path_id, from_ord)
           SELECT %s, artifact_pk, path_id, %s FROM unnest(%s::int8[], %s::int8[]) AS o (artifact_pk, path_id)
           ORDER BY 2, 3""",
        (lineage_id, ordinal, *_columns(entries, 2)),
    )
    # Copies of a file may yield the very same artifact, which then has a place from another home already.
    connection.execute(
        """INSERT INTO grounding_location (lineage_id, artifact_pk, span_pk, path_id, n, from_ord)
           SELECT %s, artifact_pk, span_pk, path_id, n, %s
           FROM unnest(%s::int8[], %s::int8[], %s::int8[], %s::int4[]) AS o (artifact_pk, span_pk, path_id, n)
           ORDER BY 2, 4, 3, 5 ON CONFLICT DO NOTHING""",
        (lineage_id, ordinal, *_columns(places, 4)),
    )


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    return [[row[column] for row in rows] for column in range(width)]


def _drop_lookups(
    connection: psycopg.Connection[Any], lineage_id: int, rows: Sequence[tuple[Any, ...]]
) -> None:
    connection.execute(
        """DELETE FROM lookup k
           USING unnest(%s::int8[], %s::text[], %s::text[], %s::text[]) AS d (path_id, extractor, kind, key)
           WHERE k.lineage_id = %s AND k.path_id = d.path_id AND k.extractor = d.extractor
             AND k.kind = d.kind AND k.key = d.key""",
        (*_columns(rows, 4), lineage_id),
    )


def _copy_lookups(
    connection: psycopg.Connection[Any], rows: Iterable[tuple[Any, ...]], lineage_id: int
) -> None:
    copy_rows(
        connection,
        "lookup",
        {
            "lineage_id": "int8",
            "path_id": "int8",
            "extractor": "text",
            "kind": "text",
            "key": "text",
            "answer": "bytea",
        },
        ((lineage_id, *row) for row in rows),
    )
