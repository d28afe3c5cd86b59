"""`kb serve` asks the very model that a snapshot is embedded with, and answers by words where that is down."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp import Client

from kb.embed.embedding import embed_snapshots
from kb.mcp.server import build_server
from kb.providers import open_provider
from kb.retrieve.library import Library
from kb.retrieve.search import EmbeddingChoice
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.store.catalog import repositories, snapshots
from tests.indexing import TestParts
from tests.mcp.conftest import Asked, Indexed, make_searchable
from tests.mcp.running import http_server
from tests.mcp.shop import shop
from tests.providers.endpoint import Endpoint

MINILM = Path(__file__).parents[2].parent / "shared/models/all-MiniLM-L6-v2-int8"


@pytest.fixture
def sealed(database, tmp_path):
    """The shop at one commit, searchable, without vectors."""
    home = tmp_path / "home"
    home.mkdir()
    parts = TestParts(database, home)
    repo = shop(tmp_path / "shop")
    index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
    make_searchable(database)
    return Indexed(parts, repo, repo.sha(), repo.sha())


def embed(sealed: Indexed, provider, locator: str | None) -> None:
    with sealed.parts.database.reader() as connection:
        (row,) = repositories(connection)
        rows = snapshots(connection, row.repository_id)
    embed_snapshots(sealed.parts, rows, provider, locator, lambda *_: None)


def test_the_endpoint_of_the_environment_is_asked_with_its_key(sealed):
    with Endpoint() as endpoint:
        embed(sealed, open_provider("openai", "fake", url=endpoint.url, key="sesame"), "fake")
        endpoint.requests.clear()

        async def talk(url):
            async with Client(url) as client:
                return await client.call_tool("search_knowledge", {"query": "order total"})

        variables = {"KB_EMBED_URL": endpoint.url, "KB_EMBED_API_KEY": "sesame"}
        with http_server(sealed, **variables) as (url, _):
            result = anyio.run(talk, url)

        assert not result.is_error, result.content[0].text
        assert result.structured_content["mode"] == "hybrid"
        assert ["order total"] in [request["input"] for request in endpoint.requests]
        assert set(endpoint.authorizations) == {"Bearer sesame"}


def test_where_the_endpoint_is_down_words_answer_and_the_answer_says_why(sealed):
    with Endpoint() as endpoint:
        embed(sealed, open_provider("openai", "gone", url=endpoint.url, key="sesame"), "gone")
        url = endpoint.url
    open_provider.cache_clear()
    choice = EmbeddingChoice(url=url, key="sesame")
    library = Library(sealed.parts, cwd=sealed.parts.home, embedding=choice)

    answer = Asked(build_server(library)).answer("search_knowledge", query="order total")

    assert answer["mode"] == "lexical"
    assert answer["hits"]
    (note,) = [note for note in answer["notes"] if "cannot be asked" in note]
    assert "openai:gone" in note
    assert "KB_EMBED_URL" in note
    assert "run it again" not in note  # nothing was embedded, and words have answered already
    assert "--mode" not in note  # a flag of the command line
    assert "sesame" not in str(answer)


def test_a_snapshot_that_is_embedded_while_the_server_runs_is_asked_by_meaning_from_then_on(sealed):
    asked = Asked(build_server(Library(sealed.parts, cwd=sealed.parts.home)))
    before = asked.answer("search_knowledge", query="order total")
    assert before["mode"] == "lexical"
    assert any("kb embed" in note for note in before["notes"])

    embed(sealed, open_provider("static"), None)

    assert asked.answer("search_knowledge", query="order total")["mode"] == "hybrid"


def test_a_page_of_another_order_is_refused(sealed):
    asked = Asked(build_server(Library(sealed.parts, cwd=sealed.parts.home)))
    question = {"query": "order total", "k": 30, "token_budget": 1000}
    first = asked.answer("search_knowledge", **question)
    assert first["mode"] == "lexical"
    second = asked.answer("search_knowledge", **question, cursor=first["next_cursor"])

    embed(sealed, open_provider("static"), None)

    for page in (first, second):
        error = asked.error("search_knowledge", **question, cursor=page["next_cursor"])
        assert "another order" in error
        assert "hybrid" in error
        assert "without a cursor" in error
    again = asked.answer("search_knowledge", **question)
    assert asked.answer("search_knowledge", **question, cursor=again["next_cursor"])["mode"] == "hybrid"


def test_a_model_in_a_folder_is_found_again(sealed):
    if not MINILM.is_dir():
        pytest.skip("the folder shared/models is absent beside the project")
    pytest.importorskip("onnxruntime")
    embed(sealed, open_provider("onnx", str(MINILM)), str(MINILM))

    answer = Asked(build_server(Library(sealed.parts, cwd=sealed.parts.home))).answer(
        "search_knowledge", query="order total"
    )

    assert answer["mode"] == "hybrid"
    assert not any("lexical" in note for note in answer.get("notes", ()))
