"""Which documents can be among the best for a query, from their postings alone. No SQL.

Levels of impact are rounded up, so the sum over a document's terms is an upper bound of its BM25, and less
than one level of each term away from it. That tells which documents need to be scored exactly.

Terms are taken by falling weight (MaxScore: Turtle and Flood 1995). Once those that are left cannot lift a
document among the best by themselves, their postings count only for documents that are there already: the
long lists of frequent words are looked up, not summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kb.store.search.postings import DOC_BITS, LEVEL_BITS, LEVELS, packed_postings, split_postings, unpack

_ROUNDING = 1e-5
"""Of sums of 32-bit floats, as a share."""

Docs = npt.NDArray[np.int64]


class TermPostings(NamedTuple):
    """Postings of one term as they are stored, and what they are worth."""

    weight: float
    """What an impact is multiplied by."""
    highest: int
    """A bound of the levels."""
    packed: bytes

    @property
    def step(self) -> float:
        """What one level is worth."""
        return self.weight / LEVELS

    @property
    def greatest(self) -> float:
        """The most that the term can give to a document."""
        return self.step * self.highest


def candidates(
    terms: Sequence[TermPostings],
    allowed: npt.NDArray[np.bool_],
    *,
    limit: int,
    most: int,
    drift: float | None,
) -> Docs:
    """Documents with a posting here, those with the greatest bounds, at most `most` of them.

    `allowed` has one truth value for each document number. `drift` says how far, as a factor, a stored
    impact may be from the snapshot's own: then what cannot be among the best `limit` is left out. It is
    None where some postings were not read: nothing can be told then.
    """
    sums = _Sums(allowed)
    falling = sorted(terms, key=lambda term: -term.greatest)
    rest = sum(term.greatest for term in falling)
    taken = slack = 0.0
    for at, term in enumerate(falling):
        # What was taken is all that a document can have: only then is it worth looking.
        if drift is not None and rest * drift < taken:
            reached = sums.reached(limit, slack, drift)
            if rest * drift < reached:
                sums.drop_below(reached / drift - rest)
                sums.add_to_met(falling[at:])
                slack += sum(late.step for late in falling[at:])
                break
        sums.add(term)
        rest, taken, slack = rest - term.greatest, taken + term.greatest, slack + term.step
    if drift is not None:
        sums.drop_below(sums.reached(limit, slack, drift) / drift)
    return _greatest(sums.docs(), sums.bounds(), most)


class _Sums:
    """Bounds of the documents that have been met, in an array with a place for each number."""

    def __init__(self, allowed: npt.NDArray[np.bool_]) -> None:
        self._open = allowed.copy()
        """Allowed and not met yet."""
        self._bounds = np.zeros(len(allowed), dtype=np.float32)
        self._met: list[Docs] = []

    def docs(self) -> Docs:
        """The documents that have been met."""
        if len(self._met) != 1:
            self._met = [np.concatenate(self._met) if self._met else np.zeros(0, dtype=np.int64)]
        return self._met[0]

    def bounds(self) -> npt.NDArray[np.float32]:
        """Their bounds, in parallel."""
        return self._bounds[self.docs()]

    def add(self, term: TermPostings) -> None:
        """Adds a term's postings."""
        docs, levels = unpack(term.packed)
        if len(docs) and docs.max() >= len(self._open):  # documents of later snapshots
            docs, levels = docs[docs < len(self._open)], levels[docs < len(self._open)]
        numbers = docs.astype(np.int64)
        self._bounds[numbers] += levels * np.float32(term.step)  # a document is there once for each term
        fresh = numbers[self._open[numbers]]
        self._open[fresh] = False
        self._met.append(fresh)

    def add_to_met(self, terms: Sequence[TermPostings]) -> None:
        """Adds postings of several terms to the documents that have been met."""
        met = np.zeros(1 << DOC_BITS, dtype=np.bool_)
        met[self.docs()] = True
        for term in terms:
            packed = packed_postings(term.packed)
            docs, levels = split_postings(packed[met[packed >> LEVEL_BITS]])
            self._bounds[docs] += levels * np.float32(term.step)

    def reached(self, limit: int, slack: float, drift: float) -> float:
        """What the `limit`-th best document has for certain."""
        bounds = self.bounds()
        if len(bounds) < limit:
            return 0.0
        best = float(np.partition(bounds, len(bounds) - limit)[len(bounds) - limit])
        return (best * (1 - _ROUNDING) - slack) / drift

    def drop_below(self, floor: float) -> None:
        """Forgets the documents whose bound is less."""
        docs, bounds = self.docs(), self.bounds()
        kept = bounds >= floor
        self._bounds[docs[~kept]] = 0
        self._met = [docs[kept]]


def _greatest(docs: Docs, bounds: npt.NDArray[np.float32], most: int) -> Docs:
    """The `most` documents with the greatest bounds; of equal ones those with the lower numbers."""
    if len(docs) <= most:
        return docs
    last = np.partition(bounds, len(docs) - most)[len(docs) - most]
    above = docs[bounds > last]
    return np.concatenate([above, np.sort(docs[bounds == last])[: most - len(above)]])
