"""On questions whose answer lies in several files, kb's artifacts against chunks of source.

The baseline arm is frozen here: chunks of twenty lines, the same embedder, the nearest ones. Its figure is
printed, never asserted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evals.folders import files_of
from kb.embed.embedding import embed_snapshots
from kb.providers import open_provider
from kb.retrieve.search import search
from kb.retrieve.search_request import SearchOptions
from kb.retrieve.select import select_snapshots
from tests.databases import fresh_database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index

pytestmark = pytest.mark.gate("retrieval.knowledge-against-rag")

EVALS = Path(__file__).parent.parent
SUITE = [
    json.loads(line)
    for line in (EVALS / "retrieval" / "suites" / "cross_file.jsonl").read_text(encoding="utf-8").splitlines()
]
K = 3
CHUNK_LINES = 20

Lines = set[tuple[str, int]]


def chunks(files: dict[str, bytes]) -> Iterator[tuple[str, Lines]]:
    """The baseline's units: twenty lines of a file, with its path as the first line."""
    for path, data in files.items():
        lines = data.decode().splitlines()
        for start in range(0, len(lines), CHUNK_LINES):
            text = "\n".join([path, *lines[start : start + CHUNK_LINES]])
            yield text, {(path, number) for number in range(start + 1, start + CHUNK_LINES + 1)}


def wanted(question: dict, files: dict[str, bytes]) -> Lines:
    found = set()
    for place in question["places"]:
        path, text = place.split(" | ", 1)
        lines = [line.strip() for line in files[path].decode().splitlines()]
        found.add((path, lines.index(text) + 1))
    return found


def recall(covered: list[Lines], places: Lines) -> float:
    return len(places & set().union(*covered)) / len(places)


@pytest.fixture(scope="module")
def parts(server_url, template, tmp_path_factory):
    for database in fresh_database(server_url, template):
        home = tmp_path_factory.mktemp("kb-home")
        yield TestParts(database, home)


@pytest.fixture(scope="module")
def fixture_files() -> dict[str, bytes]:
    return files_of(EVALS / "fixtures" / "knowledge" / "events")


@pytest.fixture(scope="module")
def recalls(parts, fixture_files, tmp_path_factory) -> dict[str, tuple[float, float]]:
    """Question id to (kb, baseline) recall of the places that the answer needs, at 3 units."""
    repo = GitRepo(tmp_path_factory.mktemp("events"))
    for path, data in fixture_files.items():
        repo.write(path, data.decode())
    index(parts, repo.commit("fixture"))
    provider = open_provider("static")
    where = str(repo.folder)
    embed_snapshots(parts, select_snapshots(parts, where, None), provider, None, lambda *_: None)
    baseline = list(chunks(fixture_files))
    matrix = provider.embed_documents([text for text, _ in baseline])
    found = {}
    for question in SUITE:
        places = wanted(question, fixture_files)
        result = search(parts, question["query"], SearchOptions(k=K), repo=where)
        covered = [
            {
                (place.file, number)
                for place in hit.unit.provenance
                for number in range(place.start_line, place.end_line + 1)
            }
            for hit in result.hits
        ]
        nearest = np.argsort(-(matrix @ provider.embed_query(question["query"])), kind="stable")[:K]
        found[question["id"]] = (
            recall(covered, places),
            recall([baseline[at][1] for at in nearest], places),
        )
    return found


@pytest.mark.parametrize("question", [question["id"] for question in SUITE])
def test_one_artifact_that_spans_the_files_answers_the_question_whole(recalls, question):
    knowledge, baseline = recalls[question]
    print(f"{question}: recall@{K} kb {knowledge:.2f}, chunks of source {baseline:.2f}")
    assert knowledge == 1.0
