"""Candidates from rounded postings: what can be among the best is never left out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kb.store.search import postings as packing
from kb.store.search.candidates import TermPostings, candidates

DOCUMENTS = 200


@st.composite
def queries(draw):
    """Weights, and the true impact of each document for each term (0 where it does not hold it)."""
    terms = draw(st.integers(1, 5))
    weights = draw(st.lists(st.floats(0.01, 12), min_size=terms, max_size=terms))
    seed = draw(st.integers(0, 10_000))
    chance = np.random.default_rng(seed)
    impacts = chance.random((terms, DOCUMENTS)) * (
        chance.random((terms, DOCUMENTS)) < draw(st.floats(0.05, 1))
    )
    if draw(st.booleans()):  # many documents that are alike
        impacts = np.round(impacts * 4) / 4
    return np.array(weights), impacts


def packed(weights, impacts):
    read = []
    for weight, row in zip(weights, impacts, strict=True):
        docs = np.flatnonzero(row)
        levels = packing.quantised(row[docs])
        read.append(TermPostings(float(weight), int(levels.max(initial=0)), packing.pack(docs, levels)))
    return read


@given(queries(), st.integers(1, 40))
def test_every_document_among_the_best_is_a_candidate(query, limit):
    weights, impacts = query
    found = candidates(
        packed(weights, impacts), np.ones(DOCUMENTS, dtype=bool), limit=limit, most=DOCUMENTS, drift=1.0
    )
    exact = weights @ impacts
    last = np.sort(exact)[-limit]
    assert set(np.flatnonzero(exact > max(last, 0)).tolist()) <= set(found.tolist())


@given(queries(), st.integers(1, 40), st.floats(1.0, 1.1))
def test_impacts_that_drifted_are_allowed_for(query, limit, drift):
    weights, impacts = query
    chance = np.random.default_rng(7)
    exact = weights @ np.minimum(impacts * chance.uniform(1 / drift, drift, impacts.shape), 1)
    found = candidates(
        packed(weights, impacts), np.ones(DOCUMENTS, dtype=bool), limit=limit, most=DOCUMENTS, drift=drift
    )
    last = np.sort(exact)[-limit]
    assert set(np.flatnonzero(exact > max(last, 0)).tolist()) <= set(found.tolist())


def test_few_are_left_where_scores_differ():
    impacts = np.linspace(0.1, 0.9, DOCUMENTS)[None, :]
    found = candidates(
        packed([1.0], impacts), np.ones(DOCUMENTS, dtype=bool), limit=10, most=DOCUMENTS, drift=1.0
    )
    # Scores are 0.004 apart, which is one level: the ten best and their neighbours.
    assert 10 <= len(found) <= 13
    assert set(range(DOCUMENTS - 10, DOCUMENTS)) <= set(found.tolist())


def test_what_is_not_allowed_and_what_is_newer_is_left_out():
    impacts = np.full((1, DOCUMENTS), 0.5)
    allowed = np.zeros(DOCUMENTS // 2, dtype=bool)
    allowed[[3, 70]] = True
    found = candidates(packed([2.0], impacts), allowed, limit=10, most=100, drift=None)
    assert found.tolist() == [3, 70]


def test_of_equal_ones_the_first_are_taken():
    impacts = np.full((1, DOCUMENTS), 0.5)
    impacts[0, 150] = 0.9
    found = candidates(packed([1.0], impacts), np.ones(DOCUMENTS, dtype=bool), limit=5, most=5, drift=None)
    assert sorted(found.tolist()) == [0, 1, 2, 3, 150]
