"""One indexed shop for all tests that only read; and how to ask a server over a real client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.server import MCPServer
from tokenizers import Tokenizer

from kb.mcp.server import build_server
from kb.retrieve.library import Library
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.store.database import Database
from kb.store.search import index as search_index
from tests.databases import fresh_database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts
from tests.mcp.shop import change, shop


@dataclass(frozen=True)
class Indexed:
    """The shop at two commits, of which both are indexed."""

    parts: TestParts
    repo: GitRepo
    first: str
    second: str


def make_searchable(database: Database) -> None:
    """Puts every lineage into the search index."""
    with database.writer() as connection:
        connection.autocommit = True
        lineages = [row[0] for row in connection.execute("SELECT lineage_id FROM lineage").fetchall()]
        for lineage in lineages:
            search_index.catch_up(connection, lineage)


@pytest.fixture(scope="session")
def indexed(server_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexed]:
    folder = tmp_path_factory.mktemp("mcp")
    home = folder / "home"
    home.mkdir()
    for database in fresh_database(server_url, template):
        parts = TestParts(database, home)
        repo = shop(folder / "shop")
        first = repo.sha()
        index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
        second = change(repo).sha()
        index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
        make_searchable(database)
        yield Indexed(parts, repo, first, second)


@pytest.fixture
def library(indexed: Indexed, tmp_path: Path) -> Library:
    return Library(indexed.parts, cwd=tmp_path)


@pytest.fixture
def server(library: Library) -> MCPServer:
    return build_server(library)


class Asked:
    """A server that is asked over a client of the SDK in this process, one connection a question."""

    def __init__(self, server: MCPServer, mode: str = "legacy") -> None:
        self.server = server
        self.mode = mode

    def result(self, tool: str, **arguments):
        async def ask():
            async with Client(self.server, mode=self.mode) as client:
                return await client.call_tool(tool, arguments)

        return anyio.run(ask)

    def answer(self, tool: str, **arguments):
        """The structured content of a call that succeeds."""
        result = self.result(tool, **arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content

    def error(self, tool: str, **arguments) -> str:
        """The text of a call that fails."""
        result = self.result(tool, **arguments)
        assert result.is_error, result.structured_content
        return result.content[0].text


@pytest.fixture
def asked(server: MCPServer) -> Asked:
    return Asked(server)


@pytest.fixture(scope="session")
def tokenizer():
    """The documented tokenizer, read by the test itself from the wheel."""
    import wordllama

    folder = wordllama.__path__[0]
    return Tokenizer.from_file(f"{folder}/tokenizers/l2_supercat_tokenizer_config.json")
