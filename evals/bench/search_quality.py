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
from evals.retrieval.corpus import Corpus, Doc
from evals.retrieval.datasets import ABSENT, SHARED, text_set, text_sets
from evals.retrieval.text_runs import embed, indexed, ndcgs
from kb.embed.embedding import embed_snapshots
from kb.errors import KbError
from kb.extract.passages import PassageFacts, PassagesExtractor
from kb.git.repository import Repository
from kb.providers import EmbeddingProvider, open_provider
from kb.retrieve.metrics import bootstrap_interval, hit, ndcg
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import SearchOptions
from kb.retrieve.select import select_snapshots
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.store.database import Database
from kb.store.search import index, reading, vectors
from kb.structure.facts import decode_payload
from kb.structure.reader import read_blob

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
            for path in ("fastapi/**/*.py", "*.py"):
                options = SearchOptions(mode=mode, path=path, k=100, per_file=1)
                values = []
                for row, relevant in zip(questions, judged, strict=True):
                    files = [one.document.path for one in rank(legs, row["query"], options).hits]
                    values.append(ndcg(files, relevant, 10))
                show(f"kb {mode}, files {path}", values)


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
    """hit@1, @5, @10 of the files of the accepted fix, for each issue at its base commit.

    Passages only: they are put into the database straight from the blobs, so that seventy commits take
    minutes and not hours.
    """
    rows = (SHARED / "data" / "code" / "localization.jsonl").read_text(encoding="utf-8").splitlines()
    outcomes: dict[str, list[tuple[list[str], list[str], set[str], bool]]] = defaultdict(list)
    skipped = 0
    reader = PassageReader()
    for number, row in enumerate(map(json.loads, rows)):
        repository = open_repository(folder, row["repo"])
        files = [] if repository is None else python_files(repository, row["base_commit"])
        if repository is None or not files:
            skipped += 1
            continue
        found = localise(parts.database, reader, repository, files, row)
        peer = plain_bm25([repository.read(oid).decode("utf-8", "replace") for _, oid in files])
        plain = [files[at][0] for at in plain_order(peer, row["issue"])[:10]]
        outcomes[row["repo"]].append((found, plain, set(row["gold_files"]), number % 2 == 1))
    print(f"issue localisation: {sum(map(len, outcomes.values()))} issues, {skipped} skipped")
    for repo, some in [
        *sorted(outcomes.items()),
        ("all", [one for rest in outcomes.values() for one in rest]),
    ]:
        report_hits(repo, some)
    held_out = [one for rest in outcomes.values() for one in rest if one[3]]
    report_hits("held-out half", held_out)


def open_repository(folder: Path | None, name: str) -> Repository | None:
    """The repository in the folder; None where it is not to be had."""
    where = None if folder is None else folder / name.replace("/", "+") / "repo"
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


class PassageReader:
    """The passages of blobs, each blob read once."""

    def __init__(self) -> None:
        self._extractor = PassagesExtractor()
        self._read: dict[str, list[tuple[str, str]]] = {}

    def passages(self, repository: Repository, oid: str) -> list[tuple[str, str]]:
        if oid not in self._read:
            parsed = read_blob(oid, repository.read(oid), "python", [self._extractor])
            rows = [row for row in parsed.facts if row.source == self._extractor.id]
            facts = decode_payload(rows[0].payload, PassageFacts) if rows else PassageFacts()
            header = [("", facts.header)] if facts.header else []
            self._read[oid] = header + [(one.symbol_path, one.words) for one in facts.definitions]
        return self._read[oid]

    def documents(self, repository: Repository, files: list[tuple[str, str]]) -> Iterator[Doc]:
        for path, oid in files:
            module = path.removesuffix(".py").removeprefix("src/").replace("/", ".")
            module = module.removesuffix(".__init__")
            counts: dict[str, int] = defaultdict(int)
            for symbol_path, words in self.passages(repository, oid):
                name = f"{module}.{symbol_path}" if symbol_path else module
                counts[name] += 1
                key = f"passage:{name}" + (f"~{counts[name]}" if counts[name] > 1 else "")
                yield Doc(key, words, f"{name} (source)", path=path)


def localise(
    database: Database, reader: PassageReader, repository: Repository, files, row: dict
) -> list[str]:
    provider = open_provider("static")
    with database.writer() as connection:
        connection.autocommit = True
        corpus = Corpus(connection, row["id"])
        corpus.commit(reader.documents(repository, files))
        index.catch_up(connection, corpus.lineage_id)
        model = vectors.put_model(connection, provider.model_id, provider.dimensions, None)
        for batch in vectors.missing_texts(connection, corpus.lineage_id, corpus.ordinal, model, 1024):
            made = provider.embed_documents([text for _, text in batch])
            vectors.put_vectors(connection, model, [pk for pk, _ in batch], made)
        view = reading.open_view(connection, corpus.lineage_id, corpus.ordinal)
        hits = rank(
            Legs(connection, view, model, provider), row["issue"], SearchOptions(k=60, per_file=1)
        ).hits
    return [one.document.path for one in hits][:10]


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
