"""`kb embed`: once for ever, resumable, several models side by side, artifacts untouched."""

import pytest

from evals.retrieval.corpus import Corpus, Doc
from kb.embed.embedding import embed_snapshots
from kb.store.catalog import snapshots
from kb.store.search import vectors
from tests.indexing import TestParts
from tests.providers.hashed import HashedWords


@pytest.fixture
def parts(database, tmp_path):
    return TestParts(database, tmp_path)


def sealed(parts, *states):
    """One snapshot for each state, the oldest first."""
    with parts.database.writer() as connection:
        connection.autocommit = True
        corpus = Corpus(connection, "corpus")
        for state in states:
            corpus.commit([Doc(f"passage:{key}", text) for key, text in state.items()])
        return sorted(snapshots(connection, corpus.repository_id), key=lambda one: one.ordinal)


def run(parts, rows, provider, progress=lambda *_: None):
    return embed_snapshots(parts, rows, provider, None, progress)


def artifacts(parts):
    with parts.database.reader() as connection:
        return connection.execute("SELECT * FROM artifact ORDER BY artifact_pk").fetchall()


def test_every_text_gets_its_vector_once_for_ever(parts):
    first, second = sealed(parts, {"a": "one", "b": "two", "c": "two"}, {"a": "one", "b": "three"})
    provider = HashedWords()
    assert run(parts, [first], provider).embedded == 2
    assert sorted(provider.embedded) == ["one", "two"]
    assert run(parts, [first], provider).embedded == 0
    report = run(parts, [second], provider)
    assert (report.embedded, report.snapshots, report.model) == (1, 1, "hashed:words")
    assert sorted(provider.embedded) == ["one", "three", "two"]


def test_a_run_that_failed_goes_on_where_it_was(parts):
    rows = sealed(parts, {str(n): f"text {n}" for n in range(250)})

    class Failing(HashedWords):
        def embed_documents(self, texts):
            if self.embedded:
                raise ConnectionError("gone")
            return super().embed_documents(texts)

    with pytest.raises(ConnectionError):
        run(parts, rows, Failing())
    with parts.database.reader() as connection:
        assert vectors.snapshot_models(connection, rows[0].snapshot_id) == []
    assert run(parts, rows, HashedWords()).embedded == 150


def test_progress_tells_how_much_there_is_and_how_far_it_is(parts):
    rows = sealed(parts, {str(n): f"text {n}" for n in range(150)})
    told = []
    run(parts, rows, HashedWords(), lambda *state: told.append(state))
    assert told == [("embed", 0, 150), ("embed", 100, 150), ("embed", 150, 150)]


def test_another_provider_leaves_every_artifact_as_it_is(parts):
    rows = sealed(parts, {"a": "one", "b": "two"})
    run(parts, rows, HashedWords())
    before = artifacts(parts)

    class Other(HashedWords):
        model_id = "hashed:other"

    assert run(parts, rows, Other()).embedded == 2
    assert artifacts(parts) == before
    with parts.database.reader() as connection:
        known = vectors.snapshot_models(connection, rows[0].snapshot_id)
    assert [row.model_id for row in known] == ["hashed:other", "hashed:words"]
