"""Every unit that is served points at lines of a commit that hold exactly the span it names.

The bytes are read with `git show`, and the span is found by parsing them anew: nothing of the database,
and nothing of kb's own reading of git, takes part in the check.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import anyio
import pytest
from mcp import Client

from kb.extract.registry import load_extractors
from kb.mcp.server import build_server
from kb.retrieve.library import Library
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.structure.dialects import dialect_of
from kb.structure.reader import read_blob
from tests.databases import fresh_database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts
from tests.mcp.conftest import make_searchable
from tests.mcp.shop import change, shop

pytestmark = pytest.mark.gate("citations.resolve")

FIXTURES = Path(__file__).parents[1] / "fixtures"
BUDGET = 50_000
TWINS = "import os\n\n\ndef twin():\n    return os\n\n\nclass A:\n    def same(self):\n        return 1\n"


class Served:
    """A repository with the server over it, and its commits."""

    def __init__(self, repo: GitRepo, server, shas: list[str]) -> None:
        self.repo, self.server, self.shas = repo, server, shas

    def pages(self, *questions):
        """Every answer to every question, read through to its end."""

        async def ask():
            answers = []
            async with Client(self.server, mode="legacy") as client:
                for tool, arguments in questions:
                    cursor = {}
                    while cursor is not None:
                        result = await client.call_tool(tool, {**arguments, **cursor, "token_budget": BUDGET})
                        assert not result.is_error, result.content[0].text
                        answers.append(result.structured_content)
                        following = result.structured_content.get("next_cursor")
                        cursor = {"cursor": following} if following else None
            return answers

        return anyio.run(ask)


@pytest.fixture(scope="module")
def served(server_url, template, tmp_path_factory):
    """Everything that kb has fixtures of, with twins of files and odd bytes; two commits."""
    folder = tmp_path_factory.mktemp("citations")
    (folder / "home").mkdir()
    for database in fresh_database(server_url, template):
        parts = TestParts(database, folder / "home")
        repo = shop(folder / "shop")
        for path in sorted((FIXTURES / "apps").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                repo.write(f"fixtures/{path.relative_to(FIXTURES).as_posix()}", path.read_bytes())
        repo.write("twins/one.py", TWINS).write("twins/two.py", TWINS + TWINS.replace("A", "B"))
        repo.write("odd/crlf.py", b"\xef\xbb\xbfimport os\r\n\r\n\r\ndef f():\r\n    return os\r\n")
        repo.write("odd/broken.py", b"def good():\n    return 1\n\n\ndef bad(:\n    pass\n")
        repo.commit("everything")
        shas = [repo.sha()]
        index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
        shas.append(change(repo).sha())
        index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
        make_searchable(database)
        yield Served(repo, build_server(Library(parts, cwd=folder)), shas)


@cache
def spans_at(folder: str, sha: str, path: str) -> frozenset[tuple[str, int, int]]:
    """(span id, first line, last line) of a file at a commit, its bytes read by git itself."""
    shown = subprocess.run(["git", "-C", folder, "show", f"{sha}:{path}"], capture_output=True, check=True)
    dialect = dialect_of(path)
    assert dialect is not None, path
    blob = read_blob("-", shown.stdout, dialect, load_extractors())
    return frozenset((one.span.span_id.hex(), one.start_line, one.end_line) for one in blob.occurrences)


def citations(value) -> Iterator[dict]:
    """Whatever in an answer names a file, lines, a commit and a span."""
    if isinstance(value, dict):
        if {"file", "start_line", "end_line", "sha", "span_id"} <= value.keys():
            yield value
        for item in value.values():
            yield from citations(item)
    elif isinstance(value, list):
        for item in value:
            yield from citations(item)


def unresolved(served: Served, answers) -> list[dict]:
    return [
        cited
        for cited in citations(answers)
        if (cited["span_id"], cited["start_line"], cited["end_line"])
        not in spans_at(str(served.repo.folder), cited["sha"], cited["file"])
    ]


def units(answers) -> Iterator[dict]:
    for answer in answers:
        yield from answer.get("units", ())
        yield from (hit["unit"] for hit in answer.get("hits", ()))
        yield from (one["unit"] for one in answer.get("dependents", ()))


def test_every_unit_of_every_file_resolves_at_both_commits(served):
    first, second = served.shas
    questions = [
        ("get_knowledge", {"target": path, "sha": sha})
        for sha in (first, second)
        for path in served.repo.git("ls-tree", "-r", "--name-only", sha).splitlines()
        if dialect_of(path) is not None and (sha == second or path.startswith(("shop/", "odd/", "twins/")))
    ]
    answers = served.pages(*questions)
    found = list(units(answers))
    assert len(found) > 500
    assert all(unit["provenance"] for unit in found)
    assert unresolved(served, answers) == []


def test_every_list_search_edge_and_difference_resolves(served):
    first, second = served.shas
    answers = served.pages(
        *((f"list_{kind}", {}) for kind in ("contracts", "entities", "events", "settings")),
        *(
            ("search_knowledge", {"query": words, "k": 30})
            for words in ("order total", "import os", "twin same")
        ),
        ("dependents", {"target": "shop.models"}),
        ("dependents", {"target": "shop.models.Order"}),
        ("find_provenance", {"file": "twins/one.py", "line": 4}),
        ("find_provenance", {"file": "odd/crlf.py", "line": 4}),
        ("diff_knowledge", {"base": first, "head": second}),
        ("history", {"key": "entity:shop.models.Item"}),
    )
    assert len(list(citations(answers))) > 200
    assert all(unit["provenance"] for unit in units(answers))
    assert unresolved(served, answers) == []


def test_a_line_answers_with_its_own_places_and_not_with_its_twins(served):
    (answer,) = served.pages(("find_provenance", {"file": "twins/two.py", "line": 4}))
    symbols = [unit for unit in answer["units"] if unit["kind"] == "symbol"]
    assert symbols
    assert {place["file"] for unit in symbols for place in unit["provenance"]} == {"twins/two.py"}
