"""How well search finds: public text sets, questions on FastAPI, issue localisation; each with its peer.

    python -m evals.bench.search_quality                         what needs no repository
    python -m evals.bench.search_quality --repositories FOLDER   FOLDER/<owner>+<name>: git directories

The peers run in the same process: bm25s over the same texts, chunks of fifty lines, plain BM25 over
files. A repository that is not in the folder is skipped and counted.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import bm25s
import numpy as np

from evals.bench.servers import BenchParts, bench_parts
from evals.retrieval.datasets import ABSENT, SHARED, text_set, text_sets
from evals.retrieval.text_runs import embed, indexed, ndcgs
from kb.embed.embedding import embed_snapshots
from kb.errors import KbError
from kb.git.repository import Repository
from kb.providers import EmbeddingProvider, open_provider
from kb.retrieve.metrics import bootstrap_interval, hit, ndcg
from kb.retrieve.search import search
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import SearchOptions
from kb.retrieve.select import select_snapshots
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.store.database import Database
from kb.store.search import reading, vectors

FASTAPI_COMMIT = "c3c9dd6b1a08bcda766e7b43eafe72c4c5e9e193"
CHUNK_LINES = 50


def show(name: str, values: list[float], note: str = "") -> None:
    low, high = bootstrap_interval(values)
    print(f"  {name:<44} {np.mean(values):.3f}  [{low:.3f}, {high:.3f}]  {note}", flush=True)


def providers() -> Iterator[EmbeddingProvider]:
    yield open_provider("static")
    folder = SHARED / "models" / "all-MiniLM-L6-v2-int8"
    if folder.is_dir():
        yield open_provider("onnx", str(folder))
    else:
        print("the folder shared/models is absent: no run with the provider onnx")


def plain_bm25(texts: list[str]) -> bm25s.BM25:
    model = bm25s.BM25(k1=1.5, b=0.75)
    model.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    return model


def plain_order(model: bm25s.BM25, query: str) -> np.ndarray:
    tokens = bm25s.tokenize([query], stopwords="en", return_ids=False, show_progress=False)[0]
    known = [token for token in tokens if token in model.vocab_dict]
    return np.argsort(-model.get_scores(known), kind="stable") if known else np.array([], dtype=int)


def text_quality(parts: BenchParts) -> None:
    """nDCG@10 on the text sets: legs, fused, and bm25s with its own words."""
    for name in text_sets():
        texts = text_set(name)
        queries = [query for query in texts.queries if texts.relevant.get(query)]
        print(f"{name}: {len(texts.documents)} texts, {len(queries)} judged queries, nDCG@10")
        names = list(texts.documents)
        peer = plain_bm25([text for _, text in texts.documents.values()])
        peer_values = []
        for query in queries:
            ranking = [names[at] for at in plain_order(peer, texts.queries[query])[:10]]
            peer_values.append(ndcg(ranking, texts.relevant[query], 10))
        show("peer: bm25s, its own words", peer_values)
        with parts.database.writer() as connection:
            connection.autocommit = True
            corpus = indexed(connection, texts)
            for number, provider in enumerate(providers()):
                legs = embed(connection, corpus, provider)
                if number == 0:
                    show("kb lexical", ndcgs(legs, texts, queries, "lexical"))
                show(f"kb dense, {provider.model_id}", ndcgs(legs, texts, queries, "dense"))
                fused = ndcgs(legs, texts, queries, "hybrid")
                # The shares were chosen on the even queries of these sets: the odd ones were not looked at.
                show(f"kb hybrid, {provider.model_id}", fused, f"held-out half {np.mean(fused[1::2]):.3f}")
                show("kb hybrid by reciprocal rank", ndcgs(legs, texts, queries, "hybrid", "rrf"))


def fastapi_quality(parts: BenchParts, folder: Path | None) -> None:
    """File-level nDCG@10 of the questions on FastAPI; a file ranks where its first unit does."""
    where = None if folder is None else folder / "fastapi+fastapi" / "repo"
    if where is None or not where.is_dir():
        print("fastapi/fastapi is not to be had: its questions were skipped")
        return
    rows = (SHARED / "data" / "code" / "fastapi_questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [json.loads(row) for row in rows]
    judged = [
        {one if isinstance(one, str) else one["path"]: 1 for one in [*row["relevant"], *row["secondary"]]}
        for row in questions
    ]
    index_repository(parts, IndexRequest(repo=str(where), commitish=FASTAPI_COMMIT))
    provider = open_provider("static")
    (snapshot,) = select_snapshots(parts, str(where), FASTAPI_COMMIT)
    embed_snapshots(parts, [snapshot], provider, None, lambda *_: None)
    print(f"FastAPI at {FASTAPI_COMMIT[:8]}: {len(questions)} questions, file-level nDCG@10 (target .80)")
    show("peer: BM25 of 50-line chunks of the package", chunk_peer(where, questions, judged))
    with parts.database.reader() as connection:
        connection.autocommit = True
        view = reading.open_view(connection, snapshot.lineage_id, snapshot.ordinal)
        (model,) = vectors.snapshot_models(connection, snapshot.snapshot_id)
        legs = Legs(connection, view, model, provider)
        for mode in ("lexical", "hybrid"):
            for path in ("fastapi/**/*.py", "*.py", None):
                options = SearchOptions(mode=mode, path=path, k=100, per_file=1)
                values = []
                for row, relevant in zip(questions, judged, strict=True):
                    files = [one.document.path for one in rank(legs, row["query"], options).hits]
                    values.append(ndcg(files, relevant, 10))
                show(f"kb {mode}, files {path or 'of every kind'}", values)


def chunk_peer(where: Path, questions: list[dict], judged: list[dict[str, int]]) -> list[float]:
    repository = Repository.open(str(where), where, fetch=False)
    texts, paths = [], []
    for path, oid in python_files(repository, FASTAPI_COMMIT):
        if path.startswith("fastapi/"):
            lines = repository.read(oid).decode("utf-8", "replace").splitlines()
            for start in range(0, max(len(lines), 1), CHUNK_LINES):
                texts.append("\n".join(lines[start : start + CHUNK_LINES]))
                paths.append(path)
    model = plain_bm25(texts)
    return [
        ndcg(list(dict.fromkeys(paths[at] for at in plain_order(model, row["query"]))), relevant, 10)
        for row, relevant in zip(questions, judged, strict=True)
    ]


def python_files(repository: Repository, commitish: str) -> list[tuple[str, str]]:
    """(path, blob) of the Python files of a commit; none where the repository does not hold it."""
    try:
        commit = repository.resolve(commitish)
    except KbError:
        return []
    return [(file.path, file.oid) for file in repository.files(commit) if file.path.endswith(".py")]


def localisation_quality(parts: BenchParts, folder: Path | None) -> None:
    """hit@1, @5, @10 of the files of the accepted fix, for each issue at its base commit, indexed whole."""
    rows = (SHARED / "data" / "code" / "localization.jsonl").read_text(encoding="utf-8").splitlines()
    provider = open_provider("static")
    waiting = []
    for number, row in enumerate(map(json.loads, rows)):
        repository = open_repository(folder, row["repo"])
        files = [] if repository is None else python_files(repository, row["base_commit"])
        if repository is not None and files:
            when = repository.resolve(row["base_commit"]).committed_at
            waiting.append((row["repo"], when, number, row, repository, files))
    outcomes: dict[str, list[tuple[list[str], list[str], set[str], bool]]] = defaultdict(list)
    # Oldest first: most commits are then the difference to one before.
    for repo, _, number, row, repository, files in sorted(waiting, key=lambda one: one[:3]):
        found = localise(parts, repo_folder(folder, repo), row, provider)
        peer = plain_bm25([repository.read(oid).decode("utf-8", "replace") for _, oid in files])
        plain = [files[at][0] for at in plain_order(peer, row["issue"])[:10]]
        outcomes[repo].append((found, plain, set(row["gold_files"]), number % 2 == 1))
    print(f"issue localisation: {len(waiting)} issues, {len(rows) - len(waiting)} skipped")
    for repo, some in [
        *sorted(outcomes.items()),
        ("all", [one for rest in outcomes.values() for one in rest]),
    ]:
        report_hits(repo, some)
    held_out = [one for rest in outcomes.values() for one in rest if one[3]]
    report_hits("held-out half", held_out)


def repo_folder(folder: Path | None, name: str) -> Path | None:
    return None if folder is None else folder / name.replace("/", "+") / "repo"


def open_repository(folder: Path | None, name: str) -> Repository | None:
    """The repository in the folder; None where it is not to be had."""
    where = repo_folder(folder, name)
    return Repository.open(str(where), where, fetch=False) if where is not None and where.is_dir() else None


def report_hits(name: str, outcomes) -> None:
    if not outcomes:
        return
    parts = []
    for at, label in ((0, "kb"), (1, "peer: BM25 of files")):
        values = [
            np.mean([hit(one[at], dict.fromkeys(one[2], 1), k) for one in outcomes]) for k in (1, 5, 10)
        ]
        parts.append(
            f"{label} "
            + " ".join(f"hit@{k} {value:.3f}" for k, value in zip((1, 5, 10), values, strict=True))
        )
    print(f"  {name:<22} {len(outcomes):>3}  {';  '.join(parts)}", flush=True)


def localise(parts: BenchParts, where: Path | None, row: dict, provider: EmbeddingProvider) -> list[str]:
    """The first ten files that `kb search` finds for the issue, over all that the commit holds."""
    index_repository(parts, IndexRequest(repo=str(where), commitish=row["base_commit"]))
    (snapshot,) = select_snapshots(parts, str(where), row["base_commit"])
    embed_snapshots(parts, [snapshot], provider, None, lambda *_: None)
    options = SearchOptions(k=10, per_file=1)
    result = search(parts, row["issue"], options, repo=str(where), sha=row["base_commit"])
    return list(dict.fromkeys(one.unit.provenance[0].file for one in result.hits))


def main() -> int:
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repositories", type=Path, help="folder of git directories, <owner>+<name>/repo")
    parser.add_argument("--only", choices=["text", "fastapi", "localisation"])
    parser.add_argument("--db-url", help="an empty database of a superuser; default: an embedded server")
    arguments = parser.parse_args()
    if not text_sets():
        print(ABSENT)
        return 0
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        if arguments.db_url:
            database = Database.at(arguments.db_url)
            database.ensure_ready()
            run(BenchParts(database, Path(scratch)), arguments)
        else:
            with bench_parts(Path(scratch)) as parts:
                run(parts, arguments)
    return 0


def run(parts: BenchParts, arguments: argparse.Namespace) -> None:
    if arguments.only in (None, "text"):
        text_quality(parts)
    if arguments.only in (None, "fastapi"):
        fastapi_quality(parts, arguments.repositories)
    if arguments.only in (None, "localisation"):
        localisation_quality(parts, arguments.repositories)


if __name__ == "__main__":
    sys.exit(main())
