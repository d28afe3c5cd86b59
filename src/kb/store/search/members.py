"""Which documents a snapshot holds, as bits: 8192 documents to a row, one set of rows for each kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg

from kb.store.search.binary import copy_rows, int4, int8, raw

CHUNK = 8192
_BYTES = CHUNK // 8

Bits = npt.NDArray[np.uint8]
"""Packed as PostgreSQL's get_bit reads a bytea: document n is bit n % 8 of byte n // 8, low bit first."""


def switch(
    connection: psycopg.Connection[Any],
    lineage_id: int,
    ordinal: int,
    changes: Iterable[tuple[str, int, bool]],
) -> None:
    """Puts documents, given as (kind, number, entered), in or out from `ordinal` on."""
    touched: dict[tuple[str, int], list[tuple[int, bool]]] = defaultdict(list)
    for kind, doc, entered in changes:
        touched[kind, doc // CHUNK].append((doc % CHUNK, entered))
    before = _before(connection, lineage_id, ordinal, touched)

    def rows() -> Iterable[tuple[bytes, ...]]:
        for (kind, chunk), places in sorted(touched.items()):
            held = flags(np.frombuffer(before.get((kind, chunk), bytes(_BYTES)), dtype=np.uint8))
            held[[place for place, _ in places]] = [entered for _, entered in places]
            bits = np.packbits(held, bitorder="little").tobytes()
            yield (int8(lineage_id), raw(kind.encode()), int4(chunk), int4(ordinal), raw(bits))

    copy_rows(
        connection,
        "COPY search_member (lineage_id, kind, chunk, from_ord, bits) FROM STDIN (FORMAT BINARY)",
        rows(),
    )


def _before(
    connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, keys: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], bytes]:
    wanted = list(keys)
    # Bounded by the ordinal: later rows are there, and dead, where the index is made anew.
    rows = connection.execute(
        """SELECT k.kind, k.chunk, m.bits FROM unnest(%s::text[], %s::int4[]) AS k (kind, chunk)
           CROSS JOIN LATERAL (
               SELECT bits FROM search_member m WHERE m.lineage_id = %s AND m.kind = k.kind
                 AND m.chunk = k.chunk AND m.from_ord < %s ORDER BY from_ord DESC LIMIT 1) m""",
        ([kind for kind, _ in wanted], [chunk for _, chunk in wanted], lineage_id, ordinal),
    ).fetchall()
    return {(str(kind), int(chunk)): bytes(bits) for kind, chunk, bits in rows}


def kinds_of(connection: psycopg.Connection[Any], lineage_id: int) -> list[str]:
    """The kinds that a lineage has ever held, sorted."""
    rows = connection.execute(
        """WITH RECURSIVE seen AS (
               (SELECT kind FROM search_member WHERE lineage_id = %(lineage)s ORDER BY kind LIMIT 1)
               UNION ALL
               SELECT (SELECT m.kind FROM search_member m WHERE m.lineage_id = %(lineage)s
                       AND m.kind > seen.kind ORDER BY m.kind LIMIT 1)
               FROM seen WHERE seen.kind IS NOT NULL)
           SELECT kind FROM seen WHERE kind IS NOT NULL""",
        {"lineage": lineage_id},
    ).fetchall()
    return [str(row[0]) for row in rows]


def of_snapshot(
    connection: psycopg.Connection[Any],
    lineage_id: int,
    ordinal: int,
    documents: int,
    wanted: Sequence[str],
) -> Bits:
    """The documents of the given kinds that the snapshot holds; `documents` numbers have been handed out."""
    chunks = -(-documents // CHUNK)
    bits = np.zeros(chunks * _BYTES, dtype=np.uint8)
    rows = connection.execute(
        """SELECT c, m.bits
           FROM unnest(%s::text[]) AS k (kind) CROSS JOIN generate_series(0, %s) AS c
           CROSS JOIN LATERAL (
               SELECT bits FROM search_member m WHERE m.lineage_id = %s AND m.kind = k.kind
                 AND m.chunk = c AND m.from_ord <= %s ORDER BY from_ord DESC LIMIT 1) m""",
        (list(wanted), chunks - 1, lineage_id, ordinal),
        binary=True,
    )
    for chunk, piece in rows:
        start = chunk * _BYTES
        bits[start : start + _BYTES] |= np.frombuffer(piece, dtype=np.uint8)
    return bits


def from_numbers(numbers: npt.NDArray[np.int64], size: int) -> Bits:
    """Bits of `size` bytes with the given documents set."""
    held = np.zeros(size * 8, dtype=np.bool_)
    held[numbers] = True
    return np.packbits(held, bitorder="little")


def flags(bits: Bits) -> npt.NDArray[np.bool_]:
    """One truth value for each document number."""
    return np.unpackbits(bits, bitorder="little").view(np.bool_)


def count(bits: Bits) -> int:
    """How many documents are set."""
    return int(np.bitwise_count(bits).sum())


def numbers(bits: Bits) -> npt.NDArray[np.int64]:
    """The documents that are set, rising."""
    return np.flatnonzero(flags(bits))
