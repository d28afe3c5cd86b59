"""What rows of a search index are made of: forward vectors, and the numbers of terms and texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import psycopg

from kb.store.search.binary import sparse_vector


def parse_sparse(vector: bytes) -> tuple[Any, Any]:
    """Indices (0-based) and values of a sparse vector in its wire form."""
    count = int.from_bytes(vector[4:8], "big")
    indices = np.frombuffer(vector, dtype=">i4", count=count, offset=12)
    return indices, np.frombuffer(vector, dtype=">f4", count=count, offset=12 + 4 * count)


def forward_vectors(terms: Any, scores: Any, sizes: Any) -> Iterator[bytes]:
    """Each document's forward vector, encoded; entries are grouped by document, terms rising."""
    indices = terms.astype(">i4").tobytes()
    values = scores.astype(">f4").tobytes()
    start = 0
    for size in sizes.tolist():
        end = start + 4 * size
        yield sparse_vector(indices[start:end], values[start:end])
        start = end


def numbers_of_terms(connection: psycopg.Connection[Any], terms: Iterable[str]) -> list[int]:
    """The ids of terms in the given order, new ones stored."""
    wanted = list(terms)
    connection.execute(
        """INSERT INTO search_term (term) SELECT t FROM unnest(%s::text[]) AS t
           WHERE NOT EXISTS (SELECT FROM search_term WHERE term = t) ORDER BY t ON CONFLICT DO NOTHING""",
        (wanted,),
    )
    rows = connection.execute(
        """SELECT s.term_id FROM unnest(%s::text[]) WITH ORDINALITY AS t (term, at)
           JOIN search_term s USING (term) ORDER BY t.at""",
        (wanted,),
    ).fetchall()
    return [int(row[0]) for row in rows]


def numbers_of_texts(connection: psycopg.Connection[Any], digests: Iterable[bytes]) -> dict[bytes, int]:
    """The number of each text digest, new ones stored."""
    wanted = sorted(set(digests))
    connection.execute(
        """INSERT INTO search_text (text_digest) SELECT t FROM unnest(%s::bytea[]) AS t
           WHERE NOT EXISTS (SELECT FROM search_text WHERE text_digest = t) ORDER BY t
           ON CONFLICT DO NOTHING""",
        (wanted,),
    )
    rows = connection.execute(
        "SELECT text_digest, text_pk FROM search_text WHERE text_digest = ANY(%s)", (wanted,)
    ).fetchall()
    return {bytes(digest): int(pk) for digest, pk in rows}
