"""BM25 in SQL: candidates from impact-ordered blocks, then exact scores with the snapshot's statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import psycopg

from kb.store.search.binary import SPARSE_DIMENSIONS, integers
from kb.store.search.candidates import TermPostings, candidates
from kb.store.search.members import Bits, flags
from kb.store.search.postings import K1, B
from kb.store.search.reading import SearchView
from kb.store.search.steering import steered

_CANDIDATES = 1000
"""Documents that are scored exactly, at most: more can only be among the best where very many are alike."""


class QueryTerm(NamedTuple):
    """A term of the query that the snapshot holds."""

    term: str
    term_id: int
    documents: int
    """Document frequency in the snapshot."""
    weight: float
    """idf times the term's count in the query."""


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query with the statistics of the snapshot it is asked of."""

    terms: tuple[QueryTerm, ...]
    unknown: tuple[str, ...]
    """Terms that no document of the snapshot holds; of a question the words, as they are written there."""
    drift: float = 1.0
    """How far, as a factor, stored impacts may be from the snapshot's own."""

    @property
    def postings(self) -> int:
        """How many (document, term) pairs an exhaustive scan would read."""
        return sum(term.documents for term in self.terms)


# One block of SQL shared by every way to come to candidates: exact BM25 of the rows of `near`.
# Stored impacts were computed with the index's average length; tf / (tf + norm) is moved to the
# snapshot's own norm in closed form, so that a snapshot's scores do not depend on when it was indexed.
_EXACT = """
    SELECT near.doc, x.score FROM near CROSS JOIN LATERAL (
        SELECT sum(q.weight * h.impact * near.old_norm
                   / (h.impact * near.old_norm + (1 - h.impact) * near.new_norm)) AS score
        FROM unnest(%(weights)s::float8[], %(onehots)s::sparsevec[]) AS q (weight, onehot)
        CROSS JOIN LATERAL (SELECT -(near.impacts <#> q.onehot) AS impact OFFSET 0) h
        WHERE h.impact > 0) x
    WHERE x.score > 0
    ORDER BY x.score DESC, near.doc LIMIT %(limit)s
"""

_NEAR = """
    SELECT d.doc, d.impacts,
           %(k1)s::float8 * (1 - %(b)s::float8 + %(b)s::float8 * d.length
               / (SELECT average_length FROM search_index WHERE lineage_id = %(lineage)s)) AS old_norm,
           %(k1)s::float8 * (1 - %(b)s::float8 + %(b)s::float8 * d.length / %(average)s::float8) AS new_norm
"""

_ALL_BLOCKS = """
    SELECT term_id, impact, postings FROM search_block
    WHERE lineage_id = %(lineage)s AND term_id = ANY(%(term_ids)s::int4[])
"""

_BEST_BLOCKS = """
    WITH ranked AS (
        SELECT s.block_id,
               sum(s.size) OVER (ORDER BY q.weight * s.impact DESC, s.block_id ROWS UNBOUNDED PRECEDING)
                   - s.size AS before
        FROM unnest(%(term_ids)s::int4[], %(weights)s::float8[]) AS q (term_id, weight)
        JOIN search_block s ON s.lineage_id = %(lineage)s AND s.term_id = q.term_id)
    SELECT s.term_id, s.impact, s.postings FROM ranked r JOIN search_block s USING (block_id)
    WHERE r.before < %(budget)s
"""

_FROM_DOCUMENTS = f"""
WITH near AS MATERIALIZED (
    {_NEAR} FROM unnest(%(docs)s::int4[]) AS w (doc)
    JOIN search_document d ON d.lineage_id = %(lineage)s AND d.doc = w.doc
    ORDER BY d.impacts <#> %(query)s::sparsevec LIMIT %(rescored)s)
{_EXACT}"""


def prepare(connection: psycopg.Connection[Any], view: SearchView, counts: Mapping[str, int]) -> LexicalQuery:
    """The query's terms with their document frequency in the snapshot and their weight.

    idf = ln(1 + (N - df + 0.5) / (df + 0.5)), as Lucene and bm25s.
    """
    rows = connection.execute(
        """SELECT w.term, t.term_id, f.documents, i.average_length
           FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS w (term, at)
           JOIN search_term t USING (term)
           JOIN search_index i ON i.lineage_id = %(lineage)s
           CROSS JOIN LATERAL (
               SELECT documents FROM search_frequency f WHERE f.lineage_id = %(lineage)s
                 AND f.term_id = t.term_id AND f.from_ord <= %(ordinal)s ORDER BY from_ord DESC LIMIT 1) f
           WHERE f.documents > 0 ORDER BY w.at""",
        {"terms": list(counts), "lineage": view.lineage_id, "ordinal": view.ordinal},
        prepare=True,
    ).fetchall()
    terms = tuple(
        QueryTerm(term, term_id, documents, counts[term] * _idf(view.present, documents))
        for term, term_id, documents, _ in rows
    )
    known = {term.term for term in terms}
    drift = max((max(row[3] / view.average_length, view.average_length / row[3]) for row in rows), default=1)
    return LexicalQuery(terms, tuple(term for term in counts if term not in known), drift)


def _idf(total: int, documents: int) -> float:
    return math.log1p((total - documents + 0.5) / (documents + 0.5))


def search(
    connection: psycopg.Connection[Any],
    view: SearchView,
    query: LexicalQuery,
    *,
    members: Bits,
    limit: int,
    budget: int,
) -> list[tuple[int, float]]:
    """The best documents among `members` with their BM25, best first.

    Exact where the query's postings fit into `budget`; beyond it the blocks with the greatest possible
    contribution are read, and the scores of what they name are exact.
    """
    if not query.terms:
        return []
    complete = query.postings <= budget
    with steered(connection):
        found = candidates(
            _postings(connection, view, query, None if complete else budget),
            flags(members),
            limit=limit,
            most=max(_CANDIDATES, 2 * limit) if complete else _rescored(limit),
            drift=query.drift if complete else None,
        )
        return _scores(connection, view, query, found.tolist(), limit)


def _postings(
    connection: psycopg.Connection[Any], view: SearchView, query: LexicalQuery, budget: int | None
) -> list[TermPostings]:
    """The query's postings, term by term; with a budget about so many of them, the most telling ones."""
    rows = connection.execute(
        _ALL_BLOCKS if budget is None else _BEST_BLOCKS,
        {
            "lineage": view.lineage_id,
            "term_ids": [term.term_id for term in query.terms],
            "weights": [term.weight for term in query.terms],
            "budget": budget,
        },
        prepare=True,
        binary=True,
    )
    highest = dict.fromkeys((term.term_id for term in query.terms), 0)
    packed: dict[int, list[bytes]] = {term.term_id: [] for term in query.terms}
    for term_id, impact, postings in rows:
        highest[term_id] = max(highest[term_id], impact)
        packed[term_id].append(postings)
    return [
        TermPostings(term.weight, highest[term.term_id], b"".join(packed[term.term_id]))
        for term in query.terms
    ]


def score(
    connection: psycopg.Connection[Any],
    view: SearchView,
    query: LexicalQuery,
    docs: Sequence[int],
    limit: int | None = None,
) -> list[tuple[int, float]]:
    """BM25 of the named documents that hold a term of the query, best first; exact."""
    if not query.terms or not len(docs):
        return []
    with steered(connection):
        return _scores(connection, view, query, docs, len(docs) if limit is None else limit)


def _scores(
    connection: psycopg.Connection[Any],
    view: SearchView,
    query: LexicalQuery,
    docs: Sequence[int],
    limit: int,
) -> list[tuple[int, float]]:
    parameters = _parameters(view, query, limit) | {"docs": integers(docs)}
    rows = connection.execute(_FROM_DOCUMENTS, parameters, prepare=True, binary=True).fetchall()
    return [(int(doc), float(value)) for doc, value in rows]


def contributions(
    connection: psycopg.Connection[Any], view: SearchView, query: LexicalQuery, docs: Sequence[int]
) -> dict[int, dict[str, float]]:
    """What each term gives to each document's BM25: the parts that `--explain` shows."""
    parts: dict[int, dict[str, float]] = {doc: {} for doc in docs}
    for term in query.terms:
        alone = LexicalQuery((term,), ())
        for doc, value in score(connection, view, alone, docs):
            parts[doc][term.term] = value
    return parts


def _parameters(view: SearchView, query: LexicalQuery, limit: int) -> dict[str, Any]:
    return {
        "lineage": view.lineage_id,
        "average": view.average_length,
        "k1": K1,
        "b": B,
        "weights": [term.weight for term in query.terms],
        "onehots": [f"{{{term.term_id + 1}:1}}/{SPARSE_DIMENSIONS}" for term in query.terms],
        "query": _sparse_text(query),
        "rescored": _rescored(limit),
        "limit": limit,
    }


def _rescored(limit: int) -> int:
    """Documents that come near the best, where all that is known are impacts of another average length, or
    of some of the postings."""
    return max(200, 3 * limit)


def _sparse_text(query: LexicalQuery) -> str:
    """The query as pgvector reads it: 1-based, ascending."""
    entries = sorted((term.term_id + 1, term.weight) for term in query.terms)
    return (
        "{" + ",".join(f"{at}:{np.float32(weight)!s}" for at, weight in entries) + f"}}/{SPARSE_DIMENSIONS}"
    )
