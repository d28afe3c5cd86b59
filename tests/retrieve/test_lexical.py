"""BM25 in SQL: equal to bm25s, with every snapshot's own statistics, whatever the way to the snapshot."""

import random
from collections import Counter
from itertools import pairwise
from statistics import mean

import bm25s
import numpy as np
import pytest

from evals.retrieval.corpus import Corpus, Doc
from evals.retrieval.datasets import ABSENT, text_set, text_sets
from kb.lexicon import analyze, analyze_query
from kb.store.search import index, lexical, reading
from kb.store.search import postings as packing

WORDS = [f"word{number}" for number in range(60)]
EVERYTHING = 1 << 40


def documents(seed, count, prefix="d"):
    chance = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    return [
        Doc(f"passage:{prefix}{number}", " ".join(chance.choices(WORDS, weights, k=chance.randint(3, 40))))
        for number in range(count)
    ]


def reference(docs):
    """bm25s over exactly what kb indexes of each document."""
    tokens = []
    for doc in docs:
        terms = analyze([doc.text, doc.title, doc.key.partition(":")[2]]).terms
        tokens.append([term for term, count in terms.items() for _ in range(count)])
    model = bm25s.BM25(k1=1.5, b=0.75)
    model.index(tokens, show_progress=False)
    return model


def expected(model, docs, query):
    asked = [
        term
        for term, count in analyze_query(query).terms.items()
        for _ in range(count)
        if term in model.vocab_dict
    ]
    scores = model.get_scores(asked) if asked else np.zeros(len(docs))
    return {doc.key: float(score) for doc, score in zip(docs, scores, strict=True) if score > 0}


def found(writer, view, query, limit=1000, budget=EVERYTHING):
    prepared = lexical.prepare(writer, view, analyze_query(query).terms)
    hits = lexical.search(writer, view, prepared, members=view.members, limit=limit, budget=budget)
    keys = {one.doc: one.logical_key for one in reading.documents(writer, view, [doc for doc, _ in hits])}
    return {keys[doc]: score for doc, score in hits}


def assert_equal_to_reference(writer, view, docs, queries):
    model = reference(docs)
    for query in queries:
        assert found(writer, view, query) == pytest.approx(expected(model, docs, query), abs=1e-5), query


QUERIES = ["word0 word5", "word59", "word1 word1 word30", "word2 word3 word4 word40 word41", "nothing here"]


def test_scores_equal_bm25s(writer, corpus, view_of):
    docs = documents(1, 300)
    corpus.commit(docs)
    assert_equal_to_reference(writer, view_of(corpus), docs, QUERIES)


@pytest.mark.parametrize("name", text_sets() or ["absent"])
def test_scores_equal_bm25s_on_public_texts(writer, corpus, view_of, name):
    if name == "absent":
        pytest.skip(ABSENT)
    texts = text_set(name)
    docs = [Doc(f"passage:{at}", text, title) for at, (title, text) in enumerate(texts.documents.values())]
    corpus.commit(docs)
    view = view_of(corpus)
    model = reference(docs)
    for query in list(texts.queries.values())[:60]:
        best = sorted(expected(model, docs, query).items(), key=lambda item: -item[1])[:50]
        scores = found(writer, view, query, limit=50)
        assert sorted(scores.values(), reverse=True) == pytest.approx([score for _, score in best], abs=1e-5)


def test_every_snapshot_of_a_lineage_has_its_own_statistics(writer, corpus, view_of):
    """Documents come, change, go and come back; each state scores as if it were the only one."""
    base = documents(2, 120)
    longer = [doc._replace(text=f"{doc.text} {doc.text} word7") for doc in base[:40]]
    states = [base, base[30:] + documents(3, 25, "new"), longer + base[60:], base, base[:5]]
    for state in states[:2]:
        corpus.commit(state)
    index.catch_up(writer, corpus.lineage_id)
    for state in states[2:]:
        corpus.commit(state)
    for ordinal, state in enumerate(states):
        assert_equal_to_reference(writer, view_of(corpus, ordinal), state, QUERIES)


def test_an_index_kept_up_commit_by_commit_equals_one_made_at_the_end(writer, view_of):
    early, late = Corpus(writer, "early"), Corpus(writer, "late")
    states = [documents(4, 80), documents(4, 60) + documents(5, 30, "x"), documents(6, 90)]
    for state in states:
        early.commit(state)
        index.catch_up(writer, early.lineage_id)
        late.commit(state)
    for query in QUERIES:
        assert found(writer, view_of(early), query) == pytest.approx(
            found(writer, view_of(late), query), abs=1e-5
        )


def test_indexing_again_adds_nothing(writer, corpus):
    corpus.commit(documents(7, 20))
    assert index.catch_up(writer, corpus.lineage_id) == 20
    assert index.catch_up(writer, corpus.lineage_id) == 0


def test_an_index_of_another_lexicon_is_made_anew(writer, corpus, view_of, monkeypatch):
    docs = documents(8, 30)
    corpus.commit(docs)
    index.catch_up(writer, corpus.lineage_id)
    monkeypatch.setattr(index, "LEXICON_VERSION", index.LEXICON_VERSION + 1)
    assert index.catch_up(writer, corpus.lineage_id) == 30
    assert_equal_to_reference(writer, view_of(corpus), docs, QUERIES[:2])


PAGES = """SELECT relname, pg_stat_get_xact_blocks_fetched(oid) FROM pg_class
           WHERE relname IN ('search_document', 'search_block', 'search_frequency', 'search_member',
                             'search_snapshot', 'stage_search_change')"""
"""Pages that the open transaction has looked at, of a lineage's index: those for rows that are dead count too."""


def pages_of_each_commit(writer, corpus, commits, monkeypatch):
    """By table, how many pages each commit's turn looks at while an index that was wiped is made anew."""
    docs = [
        Doc(f"passage:{n}", f"word{n % 9} common text number {n} of {commits}")
        for n in range(100 + 20 * commits)
    ]
    for first in range(0, 20 * commits, 20):
        corpus.commit(docs[first : first + 100])
    index.catch_up(writer, corpus.lineage_id)
    writer.execute("DELETE FROM search_index WHERE lineage_id = %s", (corpus.lineage_id,))
    # As the planner chooses where tables are large.
    for way in ("seqscan", "hashjoin", "mergejoin"):
        writer.execute(f"SET enable_{way} = off")
    advance, seen = index._advance, []

    def counted(connection, state, ordinal):
        added = advance(connection, state, ordinal)
        seen.append(Counter(dict(connection.execute(PAGES).fetchall())))
        return added

    with monkeypatch.context() as patched:
        patched.setattr(index, "_advance", counted)
        index.catch_up(writer, corpus.lineage_id)
    for way in ("seqscan", "hashjoin", "mergejoin"):
        writer.execute(f"RESET enable_{way}")
    return [now - before for before, now in pairwise(seen)]


def test_an_index_made_anew_costs_each_commit_the_same_however_many_there_are(writer, monkeypatch):
    few, many = (
        pages_of_each_commit(writer, Corpus(writer, f"of{commits}"), commits, monkeypatch)
        for commits in (30, 90)
    )
    for table in sorted(set().union(*few, *many)):
        usual = mean(pages[table] for pages in few[10:])
        for start in range(10, len(many), 10):
            taken = mean(pages[table] for pages in many[start : start + 10])
            assert taken <= 1.1 * usual + 5, (table, start)


def test_a_drifting_average_length_rebuilds_the_impacts(writer, corpus, view_of):
    short = [Doc(f"passage:s{number}", f"word{number % 9} word1") for number in range(50)]
    long = [Doc(f"passage:l{number}", "word1 word2 " * 60) for number in range(50)]
    corpus.commit(short)
    index.catch_up(writer, corpus.lineage_id)
    corpus.commit(short + long)
    view = view_of(corpus)
    (stored,) = writer.execute("SELECT average_length FROM search_index").fetchone()
    assert stored == pytest.approx(view.average_length)
    assert_equal_to_reference(writer, view, short + long, QUERIES)


def test_small_blocks_of_many_commits_are_packed(writer, corpus, view_of, monkeypatch):
    monkeypatch.setattr(index, "_LOOSE_SHARE", 0.0)
    monkeypatch.setattr(index, "_FEW_LOOSE", 100)
    state = documents(9, 200)
    corpus.commit(state)
    for number in range(12):
        state = state[1:] + documents(100 + number, 1, f"n{number}-")
        corpus.commit(state)
        index.catch_up(writer, corpus.lineage_id)
    (most,) = writer.execute(
        "SELECT max(n) FROM (SELECT count(*) AS n FROM search_block GROUP BY term_id) counted"
    ).fetchone()
    assert most <= 2
    assert_equal_to_reference(writer, view_of(corpus), state, QUERIES)


def test_beyond_the_budget_the_best_stay_the_best_and_scores_stay_exact(writer, corpus, view_of):
    docs = documents(10, 2000)
    corpus.commit(docs)
    view = view_of(corpus)
    everything = found(writer, view, "word0 word1 word50", limit=2000)
    within = found(writer, view, "word0 word1 word50", limit=10, budget=1500)
    assert all(within[key] == pytest.approx(everything[key], abs=1e-6) for key in within)
    best = sorted(everything, key=lambda key: -everything[key])[:10]
    assert len(set(best) & set(within)) >= 9


def test_long_documents_keep_their_most_frequent_terms(writer, corpus, view_of):
    words = " ".join(f"unique{number}x" for number in range(9000))
    corpus.commit([Doc("passage:long", f"{'needle ' * 5}{words}"), Doc("passage:short", "hay")])
    assert set(found(writer, view_of(corpus), "needle")) == {"passage:long"}


def test_blocks_are_ordered_by_impact_and_bounded_in_size():
    count = 2200
    postings = packing.Postings(
        docs=np.arange(count, dtype=np.int64),
        terms=np.full(count, 5, dtype=np.int64),
        frequencies=np.arange(count, dtype=np.int64) % 7 + 1,
        lengths=np.full(count, 10, dtype=np.int64),
    )
    blocks = list(packing.blocks(postings, packing.quantised(packing.impacts(postings, 10.0))))
    assert [block.size for block in blocks] == [1000, 1000, 200]
    assert [block.impact for block in blocks] == sorted((block.impact for block in blocks), reverse=True)
    # tf 7 at average length: 7 / (7 + 1.5) = 0.8235 of 255 levels, rounded up
    assert blocks[0].impact == 210
