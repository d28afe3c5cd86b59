"""BM25 in SQL: candidates from impact-ordered blocks, then exact scores with the snapshot's statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import psycopg

from kb.store.search.binary import SPARSE_DIMENSIONS
from kb.store.search.members import Bits
from kb.store.search.postings import K1, B
from kb.store.search.reading import SearchView
from kb.store.search.steering import steered

_CANDIDATES = 1000
"""Documents whose exact forward product is computed."""

_WEIGHT_SCALE = 64
"""idf as an integer inside the first stage, where only the order of candidates matters."""


_PLAN = {"enable_sort": "off", "work_mem": "64MB", "jit": "off", "max_parallel_workers_per_gather": "0"}
"""Postings are summed in a hash table: nothing tells the planner how few documents they belong to, and
it would sort them on disk."""


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
    """Terms that no document of the snapshot holds."""

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

_FROM_BLOCKS = f"""
WITH ranked AS (
    SELECT s.block_id, q.weight,
           sum(s.size) OVER (ORDER BY q.weight * s.impact DESC, s.block_id ROWS UNBOUNDED PRECEDING)
               - s.size AS before
    FROM unnest(%(term_ids)s::int4[], %(levels)s::int4[]) AS q (term_id, weight)
    JOIN search_block s ON s.lineage_id = %(lineage)s AND s.term_id = q.term_id),
chosen AS (
    SELECT r.weight, unnest(s.postings) AS posting
    FROM ranked r JOIN search_block s USING (block_id) WHERE r.before < %(budget)s),
scored AS (
    SELECT posting >> 8 AS doc FROM chosen
    WHERE posting < %(end)s AND get_bit(%(members)s::bytea, posting >> 8) = 1
    GROUP BY 1 ORDER BY sum((posting & 255) * weight) DESC, 1 LIMIT %(candidates)s),
near AS MATERIALIZED (
    {_NEAR} FROM scored JOIN search_document d ON d.lineage_id = %(lineage)s AND d.doc = scored.doc
    ORDER BY d.impacts <#> %(query)s::sparsevec LIMIT %(rescored)s)
{_EXACT}"""

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
        """SELECT w.term, t.term_id, f.documents FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS w (term, at)
           JOIN search_term t USING (term)
           CROSS JOIN LATERAL (
               SELECT documents FROM search_frequency f WHERE f.lineage_id = %(lineage)s
                 AND f.term_id = t.term_id AND f.from_ord <= %(ordinal)s ORDER BY from_ord DESC LIMIT 1) f
           WHERE f.documents > 0 ORDER BY w.at""",
        {"terms": list(counts), "lineage": view.lineage_id, "ordinal": view.ordinal},
    ).fetchall()
    terms = tuple(
        QueryTerm(term, term_id, documents, counts[term] * _idf(view.present, documents))
        for term, term_id, documents in rows
    )
    known = {term.term for term in terms}
    return LexicalQuery(terms, tuple(term for term in counts if term not in known))


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
    parameters = _parameters(view, query, limit) | {
        "term_ids": [term.term_id for term in query.terms],
        "levels": [max(1, round(term.weight * _WEIGHT_SCALE)) for term in query.terms],
        "budget": budget,
        "end": view.handed_out << 8,
        "members": members.tobytes(),
        "candidates": max(_CANDIDATES, 2 * limit),
    }
    with steered(connection, _PLAN):
        rows = connection.execute(_FROM_BLOCKS, parameters, binary=True).fetchall()
    return [(int(doc), float(score)) for doc, score in rows]


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
    parameters = _parameters(view, query, len(docs) if limit is None else limit) | {"docs": list(docs)}
    rows = connection.execute(_FROM_DOCUMENTS, parameters, binary=True).fetchall()
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
        "rescored": max(200, 3 * limit),
        "limit": limit,
    }


def _sparse_text(query: LexicalQuery) -> str:
    """The query as pgvector reads it: 1-based, ascending."""
    entries = sorted((term.term_id + 1, term.weight) for term in query.terms)
    return (
        "{" + ",".join(f"{at}:{np.float32(weight)!s}" for at, weight in entries) + f"}}/{SPARSE_DIMENSIONS}"
    )
