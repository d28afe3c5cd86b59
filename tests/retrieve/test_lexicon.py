"""The terms of texts: identifiers by their words, English by its stems, other languages unharmed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.lexicon import analyze, analyze_query, phrases, spellings
from kb.lexicon.words import split_word


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("getUserById", ["get", "User", "By", "Id"]),
        ("get_user_by_id", ["get", "user", "by", "id"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("parseHTTPResponse2", ["parse", "HTTP", "Response", "2"]),
        ("sha256", ["sha", "256"]),
        ("__init__", ["init"]),
        ("MAX_RETRIES", ["MAX", "RETRIES"]),
        ("größeÄndern", ["größe", "Ändern"]),
        ("новыйЗаказ", ["новый", "Заказ"]),
        ("___", []),
    ],
)
def test_a_word_is_split_where_its_parts_begin(word, parts):
    assert split_word(word) == parts


@pytest.mark.parametrize("spelling", ["getUserById", "get_user_by_id", "GetUserByID", "GET_USER_BY_ID"])
def test_every_spelling_of_an_identifier_gives_the_same_terms(spelling):
    assert analyze([spelling]).terms == {"get": 1, "user": 1, "by": 1, "id": 1, "getuserbyid": 1}


def test_dotted_names_and_paths_are_found_by_their_parts():
    assert analyze(["shop.orders.Order"]).terms == {"shop": 1, "order": 2}
    assert set(analyze(["src/shop/http_client.py"]).terms) == {
        "src",
        "shop",
        "http",
        "client",
        "httpclient",
        "py",
    }


def test_english_inflections_share_a_stem():
    assert set(analyze(["connection connected connecting connects"]).terms) == {"connect"}


def test_russian_and_german_words_stay_as_they_are():
    terms = analyze(["Загрузка настроек für größere Änderungen, Straße"]).terms
    assert set(terms) == {"загрузка", "настроек", "für", "größere", "änderungen", "straße"}


def test_a_decomposed_umlaut_is_the_same_letter():
    assert analyze(["gru\u0308n"]).terms == analyze(["grün"]).terms


def test_the_length_counts_every_occurrence():
    assert analyze(["the order of the orders", "Order"]) == ({"order": 3}, 3)


def test_a_question_is_asked_without_its_question_words():
    assert set(analyze_query("How does the dependency injection work?").terms) == {"depend", "inject", "work"}
    assert set(analyze_query("what does").terms) == {"what", "doe"}


def test_a_query_of_quoted_parts_alone_is_phrases():
    assert phrases('"exact  Phrase", \u201cthis one\u201d') == ["exact Phrase", "this one"]
    assert phrases('who asked about "Star Wars" first?') == []
    assert phrases("nothing quoted") == []
    assert phrases('"?!" "->" ""') == []


@pytest.mark.parametrize("written", ["IndexState", "indexstate", "INDEX_STATE", "_index_state", "indexState"])
def test_however_a_word_is_written_its_spellings_hold_the_term_it_is_indexed_by(written):
    assert set(analyze([written]).terms) & {*spellings("indexstate")}
    assert spellings(written) == spellings("indexstate")


def test_function_words_have_no_spelling():
    assert spellings("The") == spellings("_it_") == spellings("__") == ()


@given(st.text())
def test_any_text_has_terms_without_blanks(text):
    analysis = analyze([text])
    assert analysis.length == sum(analysis.terms.values())
    assert all(term and not any(letter.isspace() for letter in term) for term in analysis.terms)
