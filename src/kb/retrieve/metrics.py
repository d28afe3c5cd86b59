"""Measures of a ranking against judgements. Plain functions; docs/search.md has their definitions.

A ranking is a list of document ids, best first; judgements map a document id to its grade, 1 or more
for relevant. Grade 0, and a document without judgement, is not relevant.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

Judgements = Mapping[str, int]


def recall(ranking: Sequence[str], judged: Judgements, k: int) -> float:
    """Share of the relevant documents that are among the first k; 0 where nothing is relevant."""
    relevant = {doc for doc, grade in judged.items() if grade > 0}
    return len(relevant & set(ranking[:k])) / len(relevant) if relevant else 0.0


def precision(ranking: Sequence[str], judged: Judgements, k: int) -> float:
    """Share of the first k places that hold a relevant document; empty places count against it."""
    return sum(judged.get(doc, 0) > 0 for doc in set(ranking[:k])) / k


def hit(ranking: Sequence[str], judged: Judgements, k: int) -> float:
    """1 where a relevant document is among the first k, else 0."""
    return float(any(judged.get(doc, 0) > 0 for doc in ranking[:k]))


def reciprocal_rank(ranking: Sequence[str], judged: Judgements, k: int) -> float:
    """1 / rank of the first relevant document among the first k, else 0; its mean is MRR@k."""
    return next((1 / rank for rank, doc in enumerate(ranking[:k], 1) if judged.get(doc, 0) > 0), 0.0)


def ndcg(ranking: Sequence[str], judged: Judgements, k: int) -> float:
    """DCG of the first k (gain = grade, discount = log2(rank + 1)) over that of the best ranking."""
    ideal = sorted((grade for grade in judged.values() if grade > 0), reverse=True)[:k]
    best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
    gained = sum(max(judged.get(doc, 0), 0) / math.log2(rank + 1) for rank, doc in enumerate(ranking[:k], 1))
    return gained / best if best else 0.0


Measure = Callable[[Sequence[str], Judgements, int], float]

MEASURES: dict[str, Measure] = {
    "recall": recall,
    "precision": precision,
    "mrr": reciprocal_rank,
    "ndcg": ndcg,
    "hit": hit,
}


def measure(ranking: Sequence[str], judged: Judgements, cutoffs: Sequence[int]) -> dict[str, float]:
    """Every measure at every cut-off, by names such as `ndcg@10`. A document counts once, where it
    stands first."""
    unique = list(dict.fromkeys(ranking))
    return {
        f"{name}@{k}": function(unique, judged, k) for name, function in MEASURES.items() for k in cutoffs
    }


def bootstrap_interval(
    values: Sequence[float], *, samples: int = 2000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean over queries; the same for the same values and seed."""
    if not values:
        return 0.0, 0.0
    chance = random.Random(seed)  # noqa: S311 - resampling, no secret
    count = len(values)
    means = sorted(sum(chance.choices(values, k=count)) / count for _ in range(samples))
    tail = (1 - confidence) / 2
    return means[int(tail * samples)], means[min(int((1 - tail) * samples), samples - 1)]


def paired_interval(
    before: Sequence[float], after: Sequence[float], *, samples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap interval of the mean difference, query by query: it excludes 0 where the change is real."""
    return bootstrap_interval([b - a for a, b in zip(before, after, strict=True)], samples=samples, seed=seed)
