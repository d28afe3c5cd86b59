"""A sealed snapshot as search sees it: its documents, its statistics, the filters on it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import psycopg

from kb.store.search.binary import integers
from kb.store.search.members import Bits, flags, from_numbers, kinds_of, of_snapshot
from kb.store.search.postings import unpack
from kb.store.search.steering import steered

Numbers = npt.NDArray[np.int64]
Made = TypeVar("Made")

_MOST_KEPT = 64
"""Filters that are remembered with a view: at a million documents each takes an eighth of a megabyte."""
_MOST_DOCUMENTS = 20_000
"""Documents that are remembered with a view: some 10 MB."""


class Document(NamedTuple):
    """A document with the artifact it was made of."""

    doc: int
    artifact_pk: int
    artifact_id: bytes
    kind: str
    logical_key: str
    title: str
    path: str
    """The file whose link yielded it."""


@dataclass(frozen=True, slots=True)
class SearchView:
    """A snapshot's part of one search index. Nothing in it ever changes, so it may be kept for as long as the
    lineage has that index (`index_id`), with the filters that were made for it."""

    lineage_id: int
    ordinal: int
    handed_out: int
    """Document numbers of the lineage, those of other snapshots included."""
    present: int
    """Documents that the snapshot holds: N."""
    total_length: int
    kinds: tuple[str, ...]
    members: Bits
    _made: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    documents: dict[int, Document] = field(default_factory=dict, compare=False, repr=False)
    """Documents that have been read, by their numbers."""

    @property
    def weight(self) -> int:
        """What it takes to keep it, in entries of a list of some 150 bytes."""
        return self.members.nbytes // 100 + 3 * _MOST_DOCUMENTS

    def kept(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` yields, made once: it belongs to the snapshot and never changes either."""
        if key not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            self._made[key] = make()
        made: Made = self._made[key]
        return made

    def has_kept(self, key: Hashable) -> bool:
        """Whether it was made already."""
        return key in self._made

    @property
    def average_length(self) -> float:
        """Mean length of the snapshot's documents in terms."""
        return max(self.total_length / self.present, 1.0) if self.present else 1.0


def index_id(connection: psycopg.Connection[Any], lineage_id: int) -> int | None:
    """Which search index a lineage has now: another one when it was made anew; None without one."""
    row = connection.execute(
        "SELECT index_id FROM search_index WHERE lineage_id = %s", (lineage_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def open_view(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int) -> SearchView | None:
    """The index of a sealed snapshot; None where it has not been made yet."""
    row = connection.execute(
        """SELECT s.documents, s.total_length, i.documents FROM search_snapshot s
           JOIN search_index i USING (lineage_id) WHERE s.lineage_id = %s AND s.ordinal = %s""",
        (lineage_id, ordinal),
    ).fetchone()
    if row is None:
        return None
    present, total_length, handed_out = row
    kinds = kinds_of(connection, lineage_id)
    bits = of_snapshot(connection, lineage_id, ordinal, handed_out, kinds)
    return SearchView(lineage_id, ordinal, handed_out, present, total_length, tuple(kinds), bits)


def of_kinds(connection: psycopg.Connection[Any], view: SearchView, kinds: Sequence[str]) -> Bits:
    """The snapshot's documents of some kinds."""
    return view.kept(
        ("kinds", *sorted(kinds)),
        lambda: of_snapshot(connection, view.lineage_id, view.ordinal, view.handed_out, kinds),
    )


def of_paths(connection: psycopg.Connection[Any], view: SearchView, pattern: str) -> Bits:
    """The snapshot's documents with a grounding in a file whose path fits the regular expression."""
    return view.kept(("path", pattern), lambda: _of_paths(connection, view, pattern))


def _of_paths(connection: psycopg.Connection[Any], view: SearchView, pattern: str) -> Bits:
    rows = connection.execute(
        """WITH fitting AS MATERIALIZED (
               SELECT f.path_id FROM snapshot_file f JOIN path p USING (path_id)
               WHERE f.lineage_id = %(lineage)s AND f.from_ord <= %(ordinal)s AND f.to_ord > %(ordinal)s
                 AND p.path ~ %(pattern)s)
           SELECT DISTINCT d.doc FROM fitting JOIN grounding_location g USING (path_id)
           JOIN search_document d ON d.artifact_pk = g.artifact_pk AND d.lineage_id = g.lineage_id
           WHERE g.lineage_id = %(lineage)s AND g.from_ord <= %(ordinal)s AND g.to_ord > %(ordinal)s""",
        {"lineage": view.lineage_id, "ordinal": view.ordinal, "pattern": pattern},
    ).fetchall()
    numbers = np.array([row[0] for row in rows if row[0] < view.handed_out], dtype=np.int64)
    return from_numbers(numbers, len(view.members)) & view.members


def with_term(connection: psycopg.Connection[Any], view: SearchView, term_id: int) -> Numbers:
    """Every document of the snapshot that holds the term."""
    rows = connection.execute(
        "SELECT postings FROM search_block WHERE lineage_id = %s AND term_id = %s",
        (view.lineage_id, term_id),
        binary=True,
    ).fetchall()
    numbers, _ = unpack(b"".join(row[0] for row in rows))
    numbers = numbers[numbers < view.handed_out]
    held: Numbers = numbers[flags(view.members)[numbers]].astype(np.int64)
    return held


def documents(
    connection: psycopg.Connection[Any], view: SearchView, numbers: Sequence[int]
) -> list[Document]:
    """The named documents, in the order given."""
    kept = ((number, view.documents.get(number)) for number in numbers)  # others may clear it meanwhile
    found = {number: document for number, document in kept if document is not None}
    missing = [number for number in numbers if number not in found]
    if missing:
        read = _documents(connection, view, missing)
        if len(view.documents) + len(read) > _MOST_DOCUMENTS:
            view.documents.clear()
        view.documents.update(read)
        found.update(read)
    return [found[number] for number in numbers if number in found]


def _documents(
    connection: psycopg.Connection[Any], view: SearchView, numbers: Sequence[int]
) -> dict[int, Document]:
    with steered(connection):
        rows = connection.execute(
            """SELECT d.doc, d.artifact_pk, a.artifact_id, a.kind, a.logical_key, a.title, p.path
               FROM unnest(%(docs)s::int4[]) AS w (doc)
               JOIN search_document d ON d.lineage_id = %(lineage)s AND d.doc = w.doc
               JOIN artifact a USING (artifact_pk)
               JOIN snapshot_entry e ON e.artifact_pk = d.artifact_pk AND e.lineage_id = %(lineage)s
                AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s
               JOIN path p ON p.path_id = e.home_path_id""",
            {"docs": integers(numbers), "lineage": view.lineage_id, "ordinal": view.ordinal},
            prepare=True,
            binary=True,
        ).fetchall()
    found: dict[int, Document] = {}
    for document in itertools.starmap(Document, rows):  # of several homes the first one counts
        if document.doc not in found or document.path < found[document.doc].path:
            found[document.doc] = document
    return found


def standing_for(connection: psycopg.Connection[Any], view: SearchView, names: Collection[str]) -> list[int]:
    """Documents of the snapshot with such a logical key, or made from a file with such a path; rising."""
    rows = connection.execute(
        """SELECT d.doc FROM snapshot_entry e
           JOIN search_document d ON d.artifact_pk = e.artifact_pk AND d.lineage_id = e.lineage_id
           WHERE e.lineage_id = %(lineage)s AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s
             AND (e.artifact_pk IN (SELECT artifact_pk FROM artifact WHERE logical_key = ANY(%(names)s::text[]))
                  OR e.home_path_id IN (SELECT path_id FROM path WHERE path = ANY(%(names)s::text[])))
           GROUP BY d.doc ORDER BY d.doc""",
        {"lineage": view.lineage_id, "ordinal": view.ordinal, "names": list(names)},
    ).fetchall()
    return [int(row[0]) for row in rows]


def text_numbers(
    connection: psycopg.Connection[Any], view: SearchView, numbers: Numbers
) -> tuple[Numbers, Numbers]:
    """The named documents by the numbers of their texts, rising: (texts, documents), in parallel."""
    with steered(connection):
        rows = connection.execute(
            """SELECT d.text_pk, d.doc FROM unnest(%(docs)s::int4[]) AS w (doc)
               JOIN search_document d ON d.lineage_id = %(lineage)s AND d.doc = w.doc""",
            {"docs": integers(numbers), "lineage": view.lineage_id},
            prepare=True,
            binary=True,
        ).fetchall()
    pairs = np.array(rows, dtype=np.int64).reshape(-1, 2)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return pairs[:, 0], pairs[:, 1]


def texts(
    connection: psycopg.Connection[Any], view: SearchView, numbers: Sequence[int]
) -> Iterator[tuple[int, str]]:
    """Number and everything readable of the named documents: title, key and text."""
    rows = connection.execute(
        """SELECT d.doc, concat_ws(' ', a.title, a.logical_key, a.text) FROM search_document d
           JOIN artifact a USING (artifact_pk) WHERE d.lineage_id = %s AND d.doc = ANY(%s)""",
        (view.lineage_id, list(numbers)),
    )
    for doc, text in rows:
        yield int(doc), str(text)


def neighbours(
    connection: psycopg.Connection[Any], view: SearchView, numbers: Sequence[int]
) -> list[tuple[int, int, str]]:
    """Documents one edge away: (from, to, relation), edges of both directions; a reversed one is `~name`."""
    rows = connection.execute(
        """WITH near AS (
               SELECT d.doc, d.artifact_pk, a.logical_key FROM search_document d JOIN artifact a USING (artifact_pk)
               WHERE d.lineage_id = %(lineage)s AND d.doc = ANY(%(docs)s)),
           linked AS (
               SELECT near.doc, a.artifact_pk, e.relation FROM near JOIN artifact_edge e USING (artifact_pk)
               JOIN artifact a ON a.logical_key = e.target_key
               UNION
               SELECT near.doc, e.artifact_pk, '~' || e.relation FROM near
               JOIN artifact_edge e ON e.target_key = near.logical_key)
           SELECT l.doc, d.doc, l.relation FROM linked l
           JOIN search_document d ON d.artifact_pk = l.artifact_pk AND d.lineage_id = %(lineage)s
           WHERE d.doc < %(limit)s AND get_bit(%(members)s::bytea, d.doc) = 1 AND d.doc <> l.doc
           ORDER BY 1, 3, 2 LIMIT 1000""",
        {
            "lineage": view.lineage_id,
            "docs": list(numbers),
            "limit": view.handed_out,
            "members": view.members.tobytes(),
        },
    ).fetchall()
    return [(int(source), int(target), str(relation)) for source, target, relation in rows]
