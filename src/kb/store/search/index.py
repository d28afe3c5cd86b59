"""Keeps a lineage's lexical index in step with its snapshots.

Documents, postings and forward vectors are only added; what a snapshot holds is told by membership bits,
document frequencies and totals that are valid from an ordinal on. So every sealed snapshot can be
searched with its own statistics, and catching up costs in proportion to what changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg.rows import tuple_row

from kb.errors import IntegrityError
from kb.lexicon import LEXICON_VERSION, document_words
from kb.store.search import members
from kb.store.search.batch import Batch, NewDocument
from kb.store.search.binary import copy_rows, int2, int4, int8, raw
from kb.store.search.postings import BLOCK_SIZE, CEILING, K1, B, Postings, blocks, impacts, quantised
from kb.store.search.rows import forward_vectors, numbers_of_terms, numbers_of_texts, parse_sparse

_LOCK = 0x6B62_0010
_MOST_DOCUMENTS = 1 << 23
_DRIFT = 0.05
"""Average length may move this far before impacts, which order the blocks, are computed anew."""
_LOOSE_SHARE = 0.3
"""Share of postings in small blocks of incremental commits before blocks are packed anew."""
_FEW_LOOSE = 50_000
"""So many loose postings are never worth it."""


@dataclass(slots=True)
class IndexState:
    """How far a lineage's index is."""

    lineage_id: int
    through_ordinal: int
    documents: int
    postings: int
    loose_postings: int
    average_length: float
    present: int = 0
    total_length: int = 0


class Known(NamedTuple):
    """A document that is stored already and enters or leaves a snapshot."""

    doc: int
    length: int
    kind: str
    terms: Sequence[int]
    entered: bool


def catch_up(connection: psycopg.Connection[Any], lineage_id: int) -> int:
    """Indexes every sealed snapshot of the lineage that is not yet; how many documents were added.

    One transaction, one process at a time for each lineage. An index that another lexicon version built
    is thrown away and built anew.
    """
    added = 0
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK, lineage_id))
        state = _state(connection, lineage_id)
        ordinals = connection.execute(
            "SELECT ordinal FROM snapshot WHERE lineage_id = %s AND ordinal > %s ORDER BY ordinal",
            (lineage_id, state.through_ordinal),
        ).fetchall()
        for (ordinal,) in ordinals:
            added += _advance(connection, state, int(ordinal))
        if ordinals:
            _tidy(connection, state)
            _save(connection, state)
    return added


def _state(connection: psycopg.Connection[Any], lineage_id: int) -> IndexState:
    connection.execute(
        "DELETE FROM search_index WHERE lineage_id = %s AND lexicon_version <> %s",
        (lineage_id, LEXICON_VERSION),
    )
    row = connection.execute(
        """SELECT i.through_ordinal, i.documents, i.postings, i.loose_postings, i.average_length,
                  coalesce(s.documents, 0), coalesce(s.total_length, 0)
           FROM search_index i LEFT JOIN search_snapshot s
             ON s.lineage_id = i.lineage_id AND s.ordinal = i.through_ordinal
           WHERE i.lineage_id = %s""",
        (lineage_id,),
    ).fetchone()
    if row is not None:
        return IndexState(lineage_id, *row)
    for table in ("search_document", "search_block", "search_frequency", "search_member", "search_snapshot"):
        connection.execute(
            psycopg.sql.SQL("DELETE FROM {} WHERE lineage_id = %s").format(psycopg.sql.Identifier(table)),
            (lineage_id,),
        )
    connection.execute(
        """INSERT INTO search_index (lineage_id, through_ordinal, documents, average_length, lexicon_version)
           VALUES (%s, -1, 0, 0, %s)""",
        (lineage_id, LEXICON_VERSION),
    )
    return IndexState(lineage_id, -1, 0, 0, 0, 0.0)


def _save(connection: psycopg.Connection[Any], state: IndexState) -> None:
    connection.execute(
        """UPDATE search_index SET through_ordinal = %s, documents = %s, postings = %s, loose_postings = %s,
                  average_length = %s WHERE lineage_id = %s""",
        (
            state.through_ordinal,
            state.documents,
            state.postings,
            state.loose_postings,
            state.average_length,
            state.lineage_id,
        ),
    )


def _advance(connection: psycopg.Connection[Any], state: IndexState, ordinal: int) -> int:
    """Takes the index from the snapshot before to the one at `ordinal`."""
    _stage_changes(connection, state, ordinal)
    frequencies: Counter[int] = Counter()
    switched: list[tuple[str, int, bool]] = []
    for known in _known(connection, state.lineage_id):
        sign = 1 if known.entered else -1
        state.present += sign
        state.total_length += sign * known.length
        for term in known.terms:
            frequencies[term] += sign
        switched.append((known.kind, known.doc, known.entered))
    added = 0
    for batch in _new_batches(connection):
        first = state.documents
        _write(connection, state, batch, frequencies)
        switched.extend((row.kind, first + at, True) for at, row in enumerate(batch.documents))
        added += len(batch.documents)
    _put_frequencies(connection, state.lineage_id, ordinal, frequencies)
    members.switch(connection, state.lineage_id, ordinal, switched)
    connection.execute(
        "INSERT INTO search_snapshot (lineage_id, ordinal, documents, total_length) VALUES (%s, %s, %s, %s)",
        (state.lineage_id, ordinal, state.present, state.total_length),
    )
    state.through_ordinal = ordinal
    return added


def _stage_changes(connection: psycopg.Connection[Any], state: IndexState, ordinal: int) -> None:
    """The artifacts that are in one of the two snapshots only, and in which."""
    connection.execute(
        """CREATE TEMP TABLE IF NOT EXISTS stage_search_change (artifact_pk int8, entered bool)
           ON COMMIT DELETE ROWS"""
    )
    # Not DELETE: what is deleted is read over again for each snapshot, as long as the transaction lasts.
    connection.execute("TRUNCATE stage_search_change")
    connection.execute(
        """WITH touched AS (
               SELECT artifact_pk FROM snapshot_entry
               WHERE lineage_id = %(lineage)s AND from_ord > %(before)s AND from_ord <= %(now)s
               UNION
               SELECT artifact_pk FROM snapshot_entry
               WHERE lineage_id = %(lineage)s AND to_ord > %(before)s AND to_ord <= %(now)s
                 AND to_ord < 2147483647)
           INSERT INTO stage_search_change
           SELECT artifact_pk, bool_or(e.from_ord <= %(now)s AND e.to_ord > %(now)s)
           FROM touched JOIN snapshot_entry e USING (artifact_pk)
           WHERE e.lineage_id = %(lineage)s GROUP BY artifact_pk
           HAVING bool_or(e.from_ord <= %(now)s AND e.to_ord > %(now)s)
               <> bool_or(e.from_ord <= %(before)s AND e.to_ord > %(before)s)""",
        {"lineage": state.lineage_id, "before": state.through_ordinal, "now": ordinal},
    )
    connection.execute("ANALYZE stage_search_change")


def _known(connection: psycopg.Connection[Any], lineage_id: int) -> Iterator[Known]:
    # `+ 0`: by the artifact only. A table that was empty when it was looked at last seems to be as quickly
    # read by its lineage, all of it, for each artifact.
    rows = connection.execute(
        """SELECT d.doc, d.length, a.kind, sparsevec_send(d.impacts), c.entered
           FROM stage_search_change c
           JOIN search_document d ON d.artifact_pk = c.artifact_pk AND d.lineage_id + 0 = %s
           JOIN artifact a ON a.artifact_pk = c.artifact_pk""",
        (lineage_id,),
    ).fetchall()
    # What is stored goes from the list before anything is written: a cursor that asked for it while rows
    # come in would read all of those for each artifact.
    connection.execute(
        """DELETE FROM stage_search_change c USING search_document d
           WHERE d.artifact_pk = c.artifact_pk AND d.lineage_id + 0 = %s""",
        (lineage_id,),
    )
    connection.execute("DELETE FROM stage_search_change WHERE NOT entered")
    for doc, length, kind, vector, entered in rows:
        indices, _ = parse_sparse(vector)
        yield Known(doc, length, kind, indices.tolist(), entered)


def _new_batches(connection: psycopg.Connection[Any]) -> Iterator[Batch]:
    """The documents that are not stored yet (`_known` leaves only these), in batches."""
    batch = Batch()
    with connection.cursor("search_new", row_factory=tuple_row) as cursor:
        cursor.itersize = 2000
        cursor.execute(
            """SELECT a.artifact_pk, a.text_digest, a.kind, a.logical_key, a.title, a.text
               FROM stage_search_change JOIN artifact a USING (artifact_pk) ORDER BY a.artifact_pk"""
        )
        for artifact_pk, digest, kind, key, title, text in cursor:
            batch.add(NewDocument(artifact_pk, digest, kind), document_words(key, title, text))
            if batch.full:
                yield batch
                batch = Batch()
    if batch.documents:
        yield batch


def _write(
    connection: psycopg.Connection[Any], state: IndexState, batch: Batch, frequencies: Counter[int]
) -> None:
    """Stores a batch: texts, terms, documents with their forward vectors, blocks."""
    if state.documents + len(batch.documents) > _MOST_DOCUMENTS:
        raise IntegrityError(
            f"a lineage's search index holds at most {_MOST_DOCUMENTS:,} documents",
            hint="index the repository anew with --full: a new lineage starts from what is there today",
        )
    counted = batch.counted()
    total = int(counted.lengths.sum())
    if state.documents == 0:
        state.average_length = max(total / len(batch.documents), 1.0)
    term_ids = np.array(numbers_of_terms(connection, counted.vocabulary), dtype=np.int64)
    postings = counted.postings(state.documents, term_ids)
    scores = impacts(postings, state.average_length)
    text_pks = numbers_of_texts(connection, [document.text_digest for document in batch.documents])
    copy_rows(
        connection,
        """COPY search_document (lineage_id, artifact_pk, text_pk, doc, length, impacts)
           FROM STDIN (FORMAT BINARY)""",
        (
            (
                int8(state.lineage_id),
                int8(row.artifact_pk),
                int8(text_pks[row.text_digest]),
                int4(state.documents + at),
                int4(length),
                vector,
            )
            for at, (row, length, vector) in enumerate(
                zip(
                    batch.documents,
                    counted.lengths.tolist(),
                    forward_vectors(postings.terms, scores, counted.sizes),
                    strict=True,
                )
            )
        ),
    )
    put_blocks(connection, state, postings, scores)
    uniques, counts = np.unique(postings.terms, return_counts=True)
    frequencies.update(dict(zip(uniques.tolist(), counts.tolist(), strict=True)))
    state.documents += len(batch.documents)
    state.present += len(batch.documents)
    state.total_length += total


def put_blocks(
    connection: psycopg.Connection[Any], state: IndexState, postings: Postings, scores: Any
) -> None:
    """Stores postings as blocks and counts those that are small."""
    loose = 0

    def rows() -> Iterator[tuple[bytes, ...]]:
        nonlocal loose
        for block in blocks(postings, quantised(scores)):
            loose += block.size if block.size < BLOCK_SIZE // 4 else 0
            yield (
                int8(state.lineage_id),
                int4(block.term),
                int2(block.impact),
                int2(block.size),
                raw(block.packed),
            )

    copy_rows(
        connection,
        "COPY search_block (lineage_id, term_id, impact, size, postings) FROM STDIN (FORMAT BINARY)",
        rows(),
    )
    if state.through_ordinal >= 0:
        state.loose_postings += loose
    state.postings += len(postings.docs)


def _put_frequencies(
    connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, changes: Mapping[int, int]
) -> None:
    """Writes the document frequency, valid from `ordinal` on, of each term whose number changed."""
    changed = {term: change for term, change in changes.items() if change}
    terms = sorted(changed)
    before: dict[int, int] = {}
    if ordinal > 0:
        # Bounded by the ordinal: an index that was emptied in this transaction has later rows, which are dead
        # and would be gone through for each term.
        rows = connection.execute(
            """SELECT t, f.documents FROM unnest(%s::int4[]) AS t CROSS JOIN LATERAL (
                   SELECT documents FROM search_frequency WHERE lineage_id = %s AND term_id = t
                     AND from_ord < %s ORDER BY from_ord DESC LIMIT 1) f""",
            (terms, lineage_id, ordinal),
        ).fetchall()
        before = {int(term): int(documents) for term, documents in rows}
    copy_rows(
        connection,
        "COPY search_frequency (lineage_id, term_id, from_ord, documents) FROM STDIN (FORMAT BINARY)",
        (
            (int8(lineage_id), int4(term), int4(ordinal), int4(before.get(term, 0) + changed[term]))
            for term in terms
        ),
    )


def _tidy(connection: psycopg.Connection[Any], state: IndexState) -> None:
    """Computes impacts and blocks anew where they no longer serve: the average moved, or blocks are small."""
    average = state.total_length / state.present if state.present else state.average_length
    drifted = abs(average - state.average_length) > _DRIFT * state.average_length
    loose = state.loose_postings > max(_LOOSE_SHARE * state.postings, _FEW_LOOSE)
    if state.documents and (drifted or loose):
        rebuild(connection, state, max(average, 1.0))


def rebuild(connection: psycopg.Connection[Any], state: IndexState, average_length: float) -> None:
    """Blocks and forward vectors for a new average length; documents keep their numbers."""
    connection.execute("DELETE FROM search_block WHERE lineage_id = %s", (state.lineage_id,))
    connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS stage_search_impacts (doc int4, impacts sparsevec) ON COMMIT DELETE ROWS"
    )
    old_average, state.average_length = state.average_length, average_length
    state.postings = state.loose_postings = 0
    through, state.through_ordinal = state.through_ordinal, -1
    for postings, sizes, docs in _stored_postings(connection, state.lineage_id, old_average):
        scores = impacts(postings, average_length)
        copy_rows(
            connection,
            "COPY stage_search_impacts FROM STDIN (FORMAT BINARY)",
            (
                (int4(doc), vector)
                for doc, vector in zip(docs, forward_vectors(postings.terms, scores, sizes), strict=True)
            ),
        )
        put_blocks(connection, state, postings, scores)
        connection.execute(
            """UPDATE search_document d SET impacts = s.impacts FROM stage_search_impacts s
               WHERE d.lineage_id = %s AND d.doc = s.doc""",
            (state.lineage_id,),
        )
        connection.execute("TRUNCATE stage_search_impacts")
    state.through_ordinal = through


def _stored_postings(
    connection: psycopg.Connection[Any], lineage_id: int, average_length: float
) -> Iterator[tuple[Postings, Any, list[int]]]:
    """Every document's postings, with term frequencies read back from its impacts."""
    first = 0
    step = 40_000
    while True:
        rows = connection.execute(
            """SELECT doc, length, sparsevec_send(impacts) FROM search_document
               WHERE lineage_id = %s AND doc >= %s AND doc < %s ORDER BY doc""",
            (lineage_id, first, first + step),
        ).fetchall()
        if not rows:
            row = connection.execute(
                "SELECT min(doc) FROM search_document WHERE lineage_id = %s AND doc >= %s",
                (lineage_id, first),
            ).fetchone()
            if row is None or row[0] is None:
                return
            first = int(row[0])
            continue
        parsed = [parse_sparse(vector) for _, _, vector in rows]
        sizes = np.array([len(indices) for indices, _ in parsed], dtype=np.int64)
        docs = np.repeat(np.array([row[0] for row in rows], dtype=np.int64), sizes)
        lengths = np.repeat(np.array([row[1] for row in rows], dtype=np.int64), sizes)
        terms = np.concatenate([indices for indices, _ in parsed]).astype(np.int64)
        values = np.concatenate([values for _, values in parsed]).astype(np.float64)
        norm = K1 * (1 - B + B * lengths / average_length)
        frequencies = np.rint(values * norm / np.maximum(CEILING - values, 1e-6)).astype(np.int64)
        yield Postings(docs, terms, np.maximum(frequencies, 1), lengths), sizes, [row[0] for row in rows]
        first += step
