"""The endpoint adapter: batches, limits, retries, prefixes, and a key that stays secret."""

import time

import pytest

from kb.providers.openai import EndpointError, OpenAIProvider
from kb.providers.prefixes import prefixes_for
from tests.providers.endpoint import Endpoint


def provider_at(endpoint, model="fake", key="secret", pauses=None):
    return OpenAIProvider(endpoint.url, model, key, pause=(pauses if pauses is not None else []).append)


def test_texts_are_sent_in_batches_and_come_back_in_order():
    with Endpoint() as endpoint:
        provider = provider_at(endpoint)
        vectors = provider.embed_documents([f"word{at}" for at in range(600)])
        sizes = [len(body["input"]) for body in endpoint.requests]
        assert sizes == [256, 256, 88]
        assert (vectors[599] == provider.embed_documents(["word599"])[0]).all()


def test_a_request_is_bounded_by_its_characters_and_a_text_by_its_own():
    with Endpoint() as endpoint:
        provider_at(endpoint).embed_documents(["x" * 30_000] * 40)
        lengths = [[len(text) for text in body["input"]] for body in endpoint.requests]
        assert {length for request in lengths for length in request} == {24_000}
        assert [len(request) for request in lengths] == [16, 16, 8]


def test_what_may_pass_is_tried_again_with_growing_pauses():
    pauses = []
    with Endpoint(faults=[(429, {"Retry-After": "7"}), (503, {}), (500, {})]) as endpoint:
        provider_at(endpoint, pauses=pauses).embed_documents(["hello"])
    assert pauses[0] == 7
    assert 1 <= pauses[1] <= 1.25
    assert 2 <= pauses[2] <= 2.5


def test_after_the_last_attempt_the_error_says_what_is_kept():
    with Endpoint(faults=[(503, {})] * 6) as endpoint, pytest.raises(EndpointError) as failed:
        provider_at(endpoint).embed_documents(["hello"])
    assert "503" in str(failed.value)
    assert "kept" in failed.value.hint


def test_a_question_is_given_up_sooner_than_documents():
    pauses = []
    with Endpoint(faults=[(503, {})] * 3) as endpoint, pytest.raises(EndpointError, match="after 2 attempts"):
        provider_at(endpoint, pauses=pauses).embed_query("hello")
    assert len(pauses) == 1


def test_an_endpoint_that_left_a_question_unanswered_is_left_alone_for_a_while(monkeypatch):
    def unanswered(said):
        with pytest.raises(EndpointError, match=said):
            provider.embed_query("order")

    with Endpoint(faults=[(503, {})] * 4) as endpoint:
        provider = provider_at(endpoint)
        unanswered("HTTP 503$")
        unanswered(r"HTTP 503 \(a moment ago\)$")
        assert len(endpoint.authorizations) == 2
        later = time.monotonic() + 31
        monkeypatch.setattr(time, "monotonic", lambda: later)
        unanswered("HTTP 503$")
        unanswered("a moment ago")
        provider.embed_documents(["order"])  # it is back
        assert provider.embed_query("order").shape == (16,)


def test_a_refusal_is_not_tried_again_and_never_shows_the_key():
    with Endpoint(faults=[(401, {})]) as endpoint:
        with pytest.raises(EndpointError) as failed:
            provider_at(endpoint).embed_query("hello")
        assert endpoint.requests == []
    assert "secret" not in str(failed.value)
    assert "KB_EMBED_API_KEY" in failed.value.hint


def test_the_key_travels_in_the_header_only():
    with Endpoint() as endpoint:
        provider_at(endpoint).embed_query("hello")
        assert endpoint.authorizations == ["Bearer secret"]
        assert "secret" not in str(endpoint.requests)


def test_a_local_server_needs_no_key():
    with Endpoint() as endpoint:
        provider_at(endpoint, key=None).embed_query("hello")
        assert endpoint.authorizations == [None]


def test_another_number_of_dimensions_is_an_error():
    with Endpoint() as endpoint:
        provider = provider_at(endpoint)
        provider.embed_query("hello")
        endpoint.dimensions = 8
        with pytest.raises(EndpointError, match="8 dimensions"):
            provider.embed_query("hello")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda rows: [row | {"index": 0} for row in rows], "1 vectors for 2 texts"),
        (lambda rows: [row | {"index": row["index"] + 1} for row in rows], "not numbered by the texts"),
        (lambda rows: [row | {"embedding": [float("nan")] * 16} for row in rows], "not finite"),
        (lambda rows: [row | {"embedding": [1e300] * 16} for row in rows], "not finite"),
        (lambda rows: rows[:1], "1 vectors for 2 texts"),
        (lambda rows: [], "0 vectors for 2 texts"),
        (lambda rows: [row | {"embedding": "AAAA"} for row in rows], "no embeddings"),
    ],
)
def test_vectors_that_cannot_be_told_apart_or_are_none_are_refused(spoil, said):
    with Endpoint() as endpoint:
        endpoint.spoil = spoil
        with pytest.raises(EndpointError, match=said):
            provider_at(endpoint).embed_documents(["one", "two"])


def test_nobody_listening_is_reported():
    with Endpoint() as endpoint:
        url = endpoint.url
    with pytest.raises(EndpointError, match="did not answer"):
        OpenAIProvider(url, "fake", None, pause=lambda _: None).embed_query("hello")


def test_questions_and_documents_get_the_prefixes_of_their_family():
    with Endpoint() as endpoint:
        provider = provider_at(endpoint, model="intfloat/e5-small-v2")
        provider.embed_query("cat")
        provider.embed_documents(["cat"])
        assert [body["input"] for body in endpoint.requests] == [["query: cat"], ["passage: cat"]]


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("all-MiniLM-L6-v2", "", ""),
        ("text-embedding-3-small", "", ""),
    ],
)
def test_families_are_known_by_name(model, query, document):
    assert prefixes_for(model) == (query, document)
