"""A small corpus in a fresh database, and what searches it."""

from __future__ import annotations

import pytest

from evals.retrieval.corpus import Corpus
from kb.store.search import index, reading


@pytest.fixture
def writer(database):
    with database.writer() as connection:
        connection.autocommit = True
        yield connection


@pytest.fixture
def corpus(writer):
    return Corpus(writer, "corpus")


@pytest.fixture
def view_of(writer):
    """The search view of a corpus at an ordinal, its newest one by default; brings the index up first."""

    def view(corpus, ordinal=None):
        index.catch_up(writer, corpus.lineage_id)
        return reading.open_view(writer, corpus.lineage_id, corpus.ordinal if ordinal is None else ordinal)

    return view
