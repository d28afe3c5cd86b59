"""Postings as arrays: impacts of BM25, quantised and packed into blocks ordered by impact. No SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kb.store.search.binary import int4_elements

K1 = 1.5
B = 0.75
CEILING = 1.0
"""What an impact (term frequency with saturation and length normalisation, no idf) stays below.

As Lucene and bm25s, without the constant factor k1 + 1: it changes no order.
"""

BLOCK_SIZE = 440
"""Postings in one row: the row stays under 2 kB and is never moved out of line."""

LEVELS = 255


class Postings(NamedTuple):
    """Parallel arrays, one entry per (document, term), grouped by document in rising order."""

    docs: npt.NDArray[np.int64]
    terms: npt.NDArray[np.int64]
    frequencies: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    """Length of the entry's document."""


class Block(NamedTuple):
    """One row of `search_block`; the elements are encoded for COPY."""

    term: int
    impact: int
    size: int
    elements: bytes


def impacts(postings: Postings, average_length: float) -> npt.NDArray[np.float64]:
    """Each entry's tf / (tf + k1 * (1 - b + b * length / average length))."""
    norm = K1 * (1 - B + B * postings.lengths / max(average_length, 1e-9))
    tf = postings.frequencies.astype(np.float64)
    scores: npt.NDArray[np.float64] = tf / (tf + norm)
    return scores


def quantised(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Impacts on 1..255, rounded up: a block's greatest level is a bound."""
    return np.clip(np.ceil(scores * (LEVELS / CEILING)), 1, LEVELS).astype(np.int64)


def blocks(postings: Postings, levels: npt.NDArray[np.int64]) -> Iterator[Block]:
    """The entries as blocks: by term, then by falling impact, at most 440 to a block."""
    if not len(levels):
        return
    # One stable sort of one integer key instead of three: term, then falling level, then document.
    order = np.argsort(postings.terms * (LEVELS + 1) + (LEVELS - levels), kind="stable")
    terms = postings.terms[order]
    sorted_levels = levels[order]
    elements = int4_elements(postings.docs[order] * (LEVELS + 1) + sorted_levels)
    starts = np.flatnonzero(np.r_[True, terms[1:] != terms[:-1]])
    ends = np.r_[starts[1:], len(terms)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        term = int(terms[start])
        for at in range(start, end, BLOCK_SIZE):
            stop = min(at + BLOCK_SIZE, end)
            yield Block(term, int(sorted_levels[at]), stop - at, elements[8 * at : 8 * stop])
