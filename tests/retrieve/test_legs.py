"""Filters, phrases and both legs: nothing that fits is starved out by what does not."""

import numpy as np
import pytest

from evals.retrieval.corpus import Doc
from kb.errors import UsageError
from kb.retrieve import search_legs
from kb.retrieve.paths import path_pattern
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import SearchOptions
from kb.store.search import vectors
from tests.providers.hashed import HashedWords


@pytest.fixture
def legs_of(writer, view_of):
    """Legs over a corpus, embedded with the hashing provider."""

    def legs(corpus, *, embedded=True):
        view = view_of(corpus)
        if not embedded:
            return Legs(writer, view)
        provider = HashedWords()
        model = vectors.put_model(writer, provider.model_id, provider.dimensions, None)
        for batch in vectors.missing_texts(writer, corpus.lineage_id, corpus.ordinal, model, 500):
            made = provider.embed_documents([text for _, text in batch])
            vectors.put_vectors(writer, model, [pk for pk, _ in batch], made)
        return Legs(writer, view, model, provider)

    return legs


def keys(ranking):
    return [hit.document.logical_key for hit in ranking.hits]


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_a_selective_filter_still_fills_the_answer(corpus, legs_of, mode):
    docs = [Doc(f"passage:{n}", f"order total {n}", path=f"src/{n}.py") for n in range(3000)]
    docs += [Doc(f"symbol:{n}", f"order {n} of many other words", kind="symbol") for n in range(12)]
    corpus.commit(docs)
    ranking = rank(legs_of(corpus), "order total", SearchOptions(mode=mode, kinds=("symbol",)))
    assert len(ranking.hits) == 10
    assert {hit.document.kind for hit in ranking.hits} == {"symbol"}
    assert ranking.matched == 12
    assert ranking.exact


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_a_path_filter_keeps_what_stands_there(corpus, legs_of, mode):
    docs = [Doc(f"passage:{n}", f"order total {n}", path=f"src/{n % 7}/{n}.py") for n in range(200)]
    corpus.commit(docs)
    ranking = rank(legs_of(corpus), "order total", SearchOptions(mode=mode, path="src/3", k=50))
    assert len(ranking.hits) == len([n for n in range(200) if n % 7 == 3])
    assert {hit.document.path.split("/")[1] for hit in ranking.hits} == {"3"}


def test_the_vector_index_is_searched_until_the_filter_is_filled(writer, corpus, legs_of, monkeypatch):
    monkeypatch.setattr(vectors, "INDEX_FROM", 100)
    monkeypatch.setattr(search_legs, "FEW", 1)
    monkeypatch.setattr(search_legs, "SELECTIVE", 0.0)
    docs = [Doc(f"passage:{n}", f"order total alpha{n}") for n in range(1500)]
    docs += [Doc(f"symbol:{n}", f"zebra stripes beta{n}", kind="symbol") for n in range(20)]
    corpus.commit(docs)
    legs = legs_of(corpus)
    assert vectors.ensure_index(writer, legs.model)
    legs = Legs(writer, legs.view, legs.model, HashedWords())
    ranking = rank(legs, "order total", SearchOptions(mode="dense", kinds=("symbol",)))
    assert len(ranking.hits) == 10


def test_the_vector_index_finds_what_an_exact_scan_finds(writer, corpus, legs_of, monkeypatch):
    monkeypatch.setattr(vectors, "INDEX_FROM", 100)
    docs = [Doc(f"passage:{n}", f"w{n % 13} w{n % 17} w{n % 29} x{n}") for n in range(1200)]
    corpus.commit(docs)
    legs = legs_of(corpus)
    vectors.ensure_index(writer, legs.model)
    vector = HashedWords().embed_query("w3 w5 w7")
    near = vectors.nearest(writer, legs.view, legs.model, vector, members=legs.view.members, limit=10)
    exact = legs.dense_exact(vector, legs.filter((), None, ()), 10)
    assert [score for _, score in near] == pytest.approx([score for _, score in exact], abs=1e-3)


def test_a_quoted_phrase_must_occur(corpus, legs_of):
    corpus.commit(
        [
            Doc("passage:a", "the value must not be empty here"),
            Doc("passage:b", "empty values: not a must"),
            Doc("passage:c", "Must not, be empty!"),
        ]
    )
    legs = legs_of(corpus)
    assert set(keys(rank(legs, '"must not be empty"', SearchOptions()))) == {"passage:a", "passage:c"}
    assert keys(rank(legs, '"no such phrase at all"', SearchOptions())) == []


def test_a_rare_identifier_is_found_in_every_spelling(corpus, legs_of):
    filler = [Doc(f"passage:{n}", f"get the user of number {n} by name and id") for n in range(300)]
    corpus.commit([*filler, Doc("passage:rare", "def get_user_by_id(number): return 1")])
    legs = legs_of(corpus, embedded=False)
    for spelling in ("getUserById", "get_user_by_id", "GetUserByID"):
        assert keys(rank(legs, spelling, SearchOptions()))[0] == "passage:rare"


@pytest.mark.parametrize("written", ["IndexState", "indexstate", "index_state", "INDEXSTATE", "INDEX_STATE"])
@pytest.mark.parametrize("asked", ["IndexState", "indexstate", "index_state", "INDEXSTATE", "INDEX_STATE"])
def test_a_name_is_found_whether_its_parts_are_told_apart_or_not(corpus, legs_of, written, asked):
    corpus.commit([Doc("passage:a", "an order"), Doc("passage:b", f"return {written} here")])
    ranking = rank(legs_of(corpus, embedded=False), asked, SearchOptions())
    assert keys(ranking) == ["passage:b"]
    assert ranking.unknown_terms == ()


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("state: IndexState) ->", "def tidy(state: IndexState) -> None"),
        ("INDEXSTATE", "the IndexState of"),
        ("IndexState", "INDEXSTATE"),
        ("running numbers", "the Running numbers"),
        ("größe der", "die Gro\u0308ße der Bestellung"),
        ("gro\u0308ße der", "die Größe der Bestellung"),
        ("not in the", "it is not in the"),
        ("__init__", "def __init__(self)"),
        ("v2", "api V2 of it"),
        ("the İstanbul", "to the İstanbul"),
    ],
)
def test_a_phrase_is_found_by_whatever_words_it_has(corpus, legs_of, phrase, text):
    corpus.commit([Doc("passage:x", "some other words of the index state"), Doc("passage:y", text)])
    ranking = rank(legs_of(corpus, embedded=False), f'"{phrase}"', SearchOptions())
    assert keys(ranking) == ["passage:y"]
    assert ranking.matched == 1


def test_words_that_are_in_no_text_are_told_as_written(corpus, legs_of):
    corpus.commit([Doc("passage:a", "get the user by its name")])
    ranking = rank(legs_of(corpus, embedded=False), "Frobnicating get_user the user users", SearchOptions())
    assert ranking.unknown_terms == ("Frobnicating", "get_user")


def test_what_is_no_text_is_no_question(corpus, legs_of):
    corpus.commit([Doc("passage:a", "order")])
    with pytest.raises(UsageError, match="not UTF-8"):
        rank(legs_of(corpus), "order \udcff", SearchOptions())


def test_russian_and_german_are_found_by_their_words(corpus, legs_of):
    corpus.commit(
        [Doc("passage:ru", "Настройка базы данных"), Doc("passage:de", "Größe der Bestellung prüfen")]
    )
    legs = legs_of(corpus, embedded=False)
    assert keys(rank(legs, "базы", SearchOptions())) == ["passage:ru"]
    assert keys(rank(legs, "größe prüfen", SearchOptions())) == ["passage:de"]


def test_without_vectors_the_ranking_is_lexical_and_says_so(corpus, legs_of):
    corpus.commit([Doc("passage:a", "order total"), Doc("passage:b", "tax")])
    ranking = rank(legs_of(corpus, embedded=False), "order", SearchOptions(mode="hybrid"))
    assert ranking.mode == "lexical"
    assert keys(ranking) == ["passage:a"]


def test_the_parts_make_the_score(corpus, legs_of):
    corpus.commit([Doc(f"passage:{n}", f"order total {'tax ' * n}") for n in range(30)])
    ranking = rank(legs_of(corpus), "order tax", SearchOptions(explain=True, dense_share=0.25))
    assert ranking.hits == sorted(ranking.hits, key=lambda hit: -hit.score)
    for hit in ranking.hits:
        part = hit.parts
        fused = 0.75 * part.lexical_scaled + 0.25 * part.dense_scaled
        assert hit.score == pytest.approx((fused + part.evidence) * part.prior + part.coherence)
        assert sum(part.terms.values()) == pytest.approx(part.lexical, abs=1e-5)
        assert -1.001 <= part.dense <= 1.001


def test_coverage_is_low_where_there_is_no_answer(corpus, legs_of):
    docs = [Doc(f"passage:{n}", f"order total {n} tax of the shop") for n in range(50)]
    corpus.commit([*docs, Doc("passage:x", "zebra stripes explained"), Doc("passage:y", "llama wool")])
    legs = legs_of(corpus)
    good = rank(legs, "zebra stripes", SearchOptions()).coverage
    poor = rank(legs, "zebra wool shop", SearchOptions()).coverage
    assert 0 < poor < good < 1


def test_a_word_that_is_known_in_two_spellings_counts_once_in_coverage(corpus, legs_of):
    filler = [Doc(f"passage:{n}", f"order total {n} tax of the shop") for n in range(50)]
    plain, compound = Doc("passage:plain", "the indexstate here"), Doc("passage:compound", "IndexState here")

    def coverage(*docs):
        corpus.commit([*filler, *docs])
        return {
            query: rank(legs_of(corpus, embedded=False), query, SearchOptions()).coverage
            for query in ("indexstate", "IndexState")
        }

    alone, both = coverage(plain), coverage(plain, compound)
    # A second spelling elsewhere takes nothing from what the first one is worth: only its rarity is another.
    assert both["indexstate"] == pytest.approx(alone["indexstate"], rel=0.05)
    assert both["IndexState"] == pytest.approx(coverage(compound)["IndexState"], rel=0.05)
    assert coverage(Doc("passage:one", "indexstate IndexState " * 5))["indexstate"] == 1.0


def test_a_query_without_second_spellings_has_the_ceiling_of_its_terms(corpus, legs_of):
    corpus.commit([Doc(f"passage:{n}", f"order total {n} tax of the shop") for n in range(50)])
    legs = legs_of(corpus, embedded=False)
    for query in ("order total", "orders orders of a shop", "order_total zebra", "the"):
        question = legs.ask(query, dense=False)
        assert question.ceiling == pytest.approx(sum(term.weight for term in question.lexical.terms))


def test_of_the_spellings_of_a_word_the_rarest_counts_in_the_ceiling(corpus, legs_of):
    rare = [Doc(f"passage:plain{n}", "the indexstate here") for n in range(3)]
    corpus.commit([*rare, Doc("passage:compound", "IndexState here"), Doc("passage:other", "order total")])
    legs = legs_of(corpus, embedded=False)

    def weights(query):
        question = legs.ask(query, dense=False)
        return question.ceiling, {term.term: term.weight for term in question.lexical.terms}

    ceiling, held = weights("indexstate")
    assert set(held) == {"indexst", "indexstate"}
    assert held["indexst"] < held["indexstate"] == pytest.approx(ceiling)
    ceiling, held = weights("IndexState order")
    assert ceiling == pytest.approx(sum(held.values()) - held["indexst"])
    ceiling, held = weights("indexstate indexstate")
    assert ceiling == pytest.approx(2 * held["indexstate"])


def test_at_most_so_many_hits_of_one_file(corpus, legs_of):
    docs = [Doc(f"passage:{n}", f"order total {n}", path=f"f{n % 3}.py") for n in range(30)]
    corpus.commit(docs)
    ranking = rank(legs_of(corpus), "order total", SearchOptions(per_file=2))
    files = [hit.document.path for hit in ranking.hits]
    assert len(files) == 6
    assert max(files.count(file) for file in files) == 2


def test_no_file_crowds_out_others_and_none_is_cut_short_where_there_is_room(corpus, legs_of):
    docs = [Doc(f"passage:big.{n}", f"order total {n}", path="big.py") for n in range(8)]
    docs += [
        Doc(f"passage:small.{n}", f"order total of {n} many other words", path=f"{n}.py") for n in range(3)
    ]
    corpus.commit(docs)
    legs = legs_of(corpus, embedded=False)

    plain = rank(legs, "order total", SearchOptions(k=5))
    assert {hit.document.path for hit in plain.hits} == {"big.py"}
    assert plain.further == {}

    spread = rank(legs, "order total", SearchOptions(k=5, spread=2))
    files = [hit.document.path for hit in spread.hits]
    assert files[:2] == ["big.py"] * 2
    assert sorted(files[2:]) == ["0.py", "1.py", "2.py"]
    assert spread.further == {"big.py": 6}

    room = rank(legs, "order total", SearchOptions(k=11, spread=2))
    assert sorted(keys(room)) == sorted(doc.key for doc in docs)
    assert room.further == {}


def test_a_file_with_very_many_hits_leaves_room_for_others(corpus, legs_of):
    docs = [Doc(f"passage:a{n}", f"order total {n}", path="a.py") for n in range(300)]
    corpus.commit([*docs, Doc("passage:b", "order total among many other words of a file", path="b.py")])
    ranking = rank(legs_of(corpus, embedded=False), "order total", SearchOptions(per_file=1))
    assert [hit.document.path for hit in ranking.hits] == ["a.py", "b.py"]


def test_a_definition_is_one_hit_in_whichever_form_answers_better(corpus, legs_of):
    docs = [
        Doc("symbol:shop.total", "total of an order", kind="symbol", path="shop.py"),
        Doc("passage:shop.total", "total = order sum rows of the cart", path="shop.py"),
        Doc("passage:other.total", "order of other files than those", path="other.py"),
        Doc("entity:shop.total", "total order entity of many more words", kind="entity", path="shop.py"),
    ]
    corpus.commit(docs)
    legs = legs_of(corpus, embedded=False)
    both = keys(rank(legs, "order total", SearchOptions(twins=True)))
    assert len(both) == 4
    assert both.index("symbol:shop.total") < both.index("passage:shop.total")
    once = keys(rank(legs, "order total", SearchOptions()))
    assert once == [key for key in both if key != "passage:shop.total"]


def test_diversity_prefers_what_is_unlike_the_better_hits(corpus, legs_of):
    docs = [Doc(f"passage:same{n}", "order total of the cart") for n in range(5)]
    corpus.commit([*docs, Doc("passage:other", "order shipping label print")])
    legs = legs_of(corpus)
    plain = keys(rank(legs, "order total", SearchOptions(k=3)))
    varied = keys(rank(legs, "order total", SearchOptions(k=3, diversity=0.6)))
    assert "passage:other" not in plain
    assert "passage:other" in varied


def test_expansion_brings_neighbours_of_the_best_hits(writer, corpus, legs_of):
    corpus.commit(
        [Doc("api:GET /orders", "route of orders"), Doc("entity:Order", "zebra"), Doc("x:y", "none")]
    )
    writer.execute(
        """INSERT INTO artifact_edge (artifact_pk, relation, target_key)
           SELECT artifact_pk, 'responds_with', 'entity:Order' FROM artifact WHERE logical_key = 'api:GET /orders'"""
    )
    legs = legs_of(corpus, embedded=False)
    assert keys(rank(legs, "route", SearchOptions())) == ["api:GET /orders"]
    expanded = rank(legs, "route", SearchOptions(expand=True))
    assert keys(expanded) == ["api:GET /orders", "entity:Order"]
    assert expanded.hits[1].parts.related == "responds_with of api:GET /orders"
    backwards = rank(legs, "zebra", SearchOptions(expand=True))
    assert backwards.hits[1].parts.related == "~responds_with of entity:Order"


@pytest.mark.parametrize("others", [0, 3000], ids=["a wide filter", "a narrow filter"])
def test_expansion_stays_within_the_filters(writer, corpus, legs_of, others):
    docs = [Doc("passage:route", "route of orders"), Doc("entity:Order", "zebra", kind="entity")]
    corpus.commit([*docs, *(Doc(f"x:{n}", "none", kind="symbol") for n in range(others))])
    writer.execute(
        """INSERT INTO artifact_edge (artifact_pk, relation, target_key)
           SELECT artifact_pk, 'responds_with', 'entity:Order' FROM artifact WHERE logical_key = 'passage:route'"""
    )
    legs = legs_of(corpus, embedded=False)
    within = rank(legs, "route", SearchOptions(expand=True, kinds=("passage",)))
    assert keys(within) == ["passage:route"]
    both = rank(legs, "route", SearchOptions(expand=True, kinds=("passage", "entity")))
    assert keys(both) == ["passage:route", "entity:Order"]


def test_ranks_are_brought_to_the_scale_that_names_are_weighed_by(corpus, legs_of):
    docs = [Doc(f"passage:{n}", f"charge the card {'x ' * n}", path=f"p{n}.py") for n in range(5)]
    corpus.commit([*docs, Doc("symbol:shop.card", "far away", kind="symbol", path="shop.py")])
    legs = legs_of(corpus)
    ranking = rank(legs, "charge the card", SearchOptions(fusion="rrf"))
    assert keys(ranking)[0] == "passage:0"
    assert ranking.hits[0].score == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("src", ["src/a.py", "src/b/c.py"], ["tests/src/a.py", "srcs/a.py"]),
        ("src/a.py", ["src/a.py"], ["src/a.pyi", "src/aXpy"]),
        ("*.md", ["README.md", "docs/a.md"], ["a.mdx"]),
        ("src/*.py", ["src/a.py"], ["src/b/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/b/c/a.py"], ["lib/a.py"]),
        ("a+b(c).py", ["a+b(c).py"], ["aab(c).py"]),
        (".", ["anything/at.all"], []),
    ],
)
def test_paths_and_globs(writer, pattern, fits, fits_not):
    expression = path_pattern(pattern)
    for path in [*fits, *fits_not]:
        (matches,) = writer.execute("SELECT %s ~ %s", (path, expression)).fetchone()
        assert matches == (path in fits), path


def test_another_number_of_dimensions_under_one_name_is_refused(writer):
    vectors.put_model(writer, "fake:m", 8, None)
    with pytest.raises(UsageError, match="dimensions"):
        vectors.put_model(writer, "fake:m", 16, None)


def test_vectors_of_two_models_live_side_by_side(writer, corpus, legs_of):
    corpus.commit([Doc("passage:a", "order total"), Doc("passage:b", "tax")])
    legs = legs_of(corpus)
    other = vectors.put_model(writer, "fake:other", 3, None)
    for batch in vectors.missing_texts(writer, corpus.lineage_id, corpus.ordinal, other, 10):
        vectors.put_vectors(writer, other, [pk for pk, _ in batch], np.eye(3, dtype=np.float32)[: len(batch)])
    assert vectors.count_missing(writer, corpus.lineage_id, corpus.ordinal, other) == 0
    assert keys(rank(legs, "order total", SearchOptions(mode="dense")))[0] == "passage:a"
