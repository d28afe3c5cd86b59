"""Postings as arrays: impacts of BM25, quantised and packed into blocks ordered by impact. No SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

K1 = 1.5
B = 0.75
CEILING = 1.0
"""What an impact (term frequency with saturation and length normalisation, no idf) stays below.

As Lucene and bm25s, without the constant factor k1 + 1: it changes no order.
"""

BLOCK_SIZE = 1000
"""Postings in one row: two rows fill a page of PostgreSQL's."""

LEVEL_BITS = 8
LEVELS = 255
DOC_BITS = 23
"""A posting is a document number and a level: 31 bits."""


class Postings(NamedTuple):
    """Parallel arrays, one entry per (document, term), grouped by document in rising order."""

    docs: npt.NDArray[np.int64]
    terms: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    """Length of the entry's document."""


class Block(NamedTuple):
    """One row of `search_block`; the postings are packed as they are stored."""

    term: int
    impact: int
    size: int
    packed: bytes


def impacts(postings: Postings, average_length: float) -> npt.NDArray[np.float64]:
    """Each entry's tf / (tf + k1 * (1 - b + b * length / average length))."""
    norm = K1 * (1 - B + B * postings.lengths / max(average_length, 1e-9))
    tf = postings.frequencies.astype(np.float64)
    scores: npt.NDArray[np.float64] = tf / (tf + norm)
    return scores


def quantised(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Impacts on 1..255, rounded up: a block's greatest level is a bound."""
    return np.clip(np.ceil(scores * (LEVELS / CEILING)), 1, LEVELS).astype(np.int64)


def pack(docs: npt.NDArray[np.int64], levels: npt.NDArray[np.int64]) -> bytes:
    """Document numbers with their levels, 4 bytes each, high byte first."""
    return ((docs << LEVEL_BITS) + levels).astype(">u4").tobytes()


def packed_postings(packed: bytes) -> npt.NDArray[np.uint32]:
    """Packed postings as integers."""
    return np.frombuffer(packed, dtype=">u4").astype(np.uint32)


def split_postings(packed: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Document numbers and levels of packed postings, as 32-bit integers."""
    return packed >> LEVEL_BITS, packed & LEVELS


def unpack(packed: bytes) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Document numbers and levels of packed postings, as 32-bit integers."""
    return split_postings(packed_postings(packed))


def blocks(postings: Postings, levels: npt.NDArray[np.int64]) -> Iterator[Block]:
    """The entries as blocks: by term, then by falling impact, at most 1000 to a block."""
    if not len(levels):
        return
    # One stable sort of one integer key instead of three: term, then falling level, then document.
    order = np.argsort(postings.terms * (LEVELS + 1) + (LEVELS - levels), kind="stable")
    terms = postings.terms[order]
    sorted_levels = levels[order]
    packed = pack(postings.docs[order], sorted_levels)
    starts = np.flatnonzero(np.r_[True, terms[1:] != terms[:-1]])
    ends = np.r_[starts[1:], len(terms)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        term = int(terms[start])
        for at in range(start, end, BLOCK_SIZE):
            stop = min(at + BLOCK_SIZE, end)
            yield Block(term, int(sorted_levels[at]), stop - at, packed[4 * at : 4 * stop])
