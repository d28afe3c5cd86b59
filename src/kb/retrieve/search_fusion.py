"""Brings the legs of a search together, and thins out what is alike. Plain functions of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

RRF_CONSTANT = 60


def min_max(scores: Mapping[int, float], floor: float | None = None) -> dict[int, float]:
    """Scores moved to 0..1: the greatest is 1, the least (or `floor`) 0; all 1 where they are equal."""
    if not scores:
        return {}
    high = max(scores.values())
    low = min(scores.values()) if floor is None else floor
    if high <= low:
        return dict.fromkeys(scores, 1.0)
    return {doc: max(score - low, 0.0) / (high - low) for doc, score in scores.items()}


def convex(
    lexical: Mapping[int, float], dense: Mapping[int, float], shares: Mapping[int, float]
) -> dict[int, float]:
    """(1 - share) * lexical + share * dense for every document that has a share; an absent score is 0."""
    return {
        doc: (1 - share) * lexical.get(doc, 0.0) + share * dense.get(doc, 0.0)
        for doc, share in shares.items()
    }


def reciprocal_rank(*legs: Mapping[int, float]) -> dict[int, float]:
    """The sum of 1 / (60 + rank) over the legs that hold the document."""
    fused: dict[int, float] = {}
    for leg in legs:
        for rank, doc in enumerate(sorted(leg, key=lambda one: (-leg[one], one)), 1):
            fused[doc] = fused.get(doc, 0.0) + 1 / (RRF_CONSTANT + rank)
    return fused


def ranked(scores: Mapping[int, float]) -> list[tuple[int, float]]:
    """Best first; equal scores by document number, so that every run gives the same order."""
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def diversified(
    order: Sequence[tuple[int, float]], vectors: Mapping[int, npt.NDArray[np.float32]], weight: float, k: int
) -> list[tuple[int, float]]:
    """Maximal marginal relevance: each next one has the best score less `weight` times its likeness to
    the nearest one taken before. Scores come back unchanged."""
    left = list(order)
    taken: list[tuple[int, float]] = []
    likeness = dict.fromkeys((doc for doc, _ in left), 0.0)
    while left and len(taken) < k:
        best = max(left, key=lambda item: (1 - weight) * item[1] - weight * likeness[item[0]])
        left.remove(best)
        taken.append(best)
        mine = vectors.get(best[0])
        for doc, _ in left if mine is not None else ():
            other = vectors.get(doc)
            if other is not None and mine is not None:
                likeness[doc] = max(likeness[doc], float(mine @ other))
    return taken


def capped(
    order: Sequence[tuple[int, float]], group: Mapping[int, Hashable], most: int
) -> list[tuple[int, float]]:
    """The order without what comes after the first `most` of each group."""
    seen: dict[Hashable, int] = {}
    kept = []
    for doc, score in order:
        seen[group[doc]] = seen.get(group[doc], 0) + 1
        if seen[group[doc]] <= most:
            kept.append((doc, score))
    return kept
