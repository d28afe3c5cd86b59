"""How fast and how exact search is: modes, clients, filters, at 100,000 and 1,000,000 artifacts.

    python -m evals.bench.search_latency                 100,000 artifacts
    python -m evals.bench.search_latency --size 1000000  about twenty minutes on two idle cores
    python -m evals.bench.search_latency --size 1000000 --keep FOLDER
                                                         builds in FOLDER once; the next run only measures

Texts of about 40 words are put together from fragments of real ones; their vectors are those that the
static provider would give them (a static vector is the sum over the fragments). Queries are parts of
fragments. Every figure is what `kb serve` would need for one search on a kept connection, without the
embedding of the query: a thread and a connection for each client, warm unless it says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from evals.bench.servers import BenchParts, bench_parts, kept_parts
from evals.retrieval.corpus import Corpus, Doc
from evals.retrieval.datasets import ABSENT, text_set, text_sets
from kb.lexicon import analyze_query
from kb.providers import open_provider
from kb.retrieve import search_legs
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import SearchOptions
from kb.store.database import Database, ReaderPool
from kb.store.search import index, lexical, reading, vectors

PEERS = {
    (100_000, "lexical, 1 in flight"): "prototype, exhaustive 15/35, blocks 20/28; tsvector and GIN 640/737",
    (
        1_000_000,
        "lexical, 1 in flight",
    ): "prototype, blocks 25/29, exhaustive 176/514; tsvector and GIN 6800/7000",
    (1_000_000, "lexical, filter keeps 30 %"): "prototype 24/26",
    (1_000_000, "dense, 1 in flight"): "prototype, p95 13 at recall .90, 8 at .87",
    (1_000_000, "hybrid, 1 in flight"): "prototype 27/32; limit p95 50",
    (1_000_000, "hybrid, 2 in flight"): "prototype 27/32; limit p95 50",
    (1_000_000, "hybrid, 4 in flight"): "prototype 57/68",
}
"""What DESIGN.md's prototype reached on an idle machine with two cores, p50/p95 in milliseconds."""

KINDS = (("passage", 0.60), ("symbol", 0.30), ("import", 0.09), ("event", 0.01))
FRAGMENT = 14
CHECKED = 100
"""Queries that are also answered exactly: of twenty the recall came out .02 too high."""


class Asked:
    """A provider that has the vectors of the queries at hand: its time is not the server's."""

    def __init__(self, model_id: str, answers: dict[str, np.ndarray]) -> None:
        self.model_id, self.dimensions, self.batch_size = model_id, 256, 1
        self._answers = answers

    def embed_query(self, text: str) -> np.ndarray:
        return self._answers[text]


def fragments() -> list[str]:
    found = []
    for name in text_sets():
        for _, text in text_set(name).documents.values():
            words = text.split()
            found += [" ".join(words[at : at + FRAGMENT]) for at in range(0, len(words) - FRAGMENT, FRAGMENT)]
    return list(dict.fromkeys(found))


def generated(size: int, parts: list[str], choices: np.ndarray) -> Iterator[Doc]:
    names = [name for name, _ in KINDS]
    kinds = np.random.default_rng(2).choice(len(names), size=size, p=[share for _, share in KINDS])
    for number in range(size):
        text = " ".join(parts[at] for at in choices[number])
        yield Doc(
            f"passage:m{number % 997}.f{number}", text, "", names[kinds[number]], f"src/m{number % 5000}.py"
        )


@contextmanager
def stage(name: str, report: dict) -> Iterator[None]:
    started = time.monotonic()
    yield
    report[name] = round(time.monotonic() - started, 1)
    print(f"{name:<28} {report[name]:8.1f} s", flush=True)


def load(connection, size: int, report: dict):
    """The view, the model, the fragments and the provider; what a kept database has already is used."""
    chance = np.random.default_rng(1)
    parts = fragments()
    choices = chance.integers(0, len(parts), size=(size, 3))
    provider = open_provider("static")
    report["fragments"] = len(parts)
    name = f"latency{size}"
    lineage = connection.execute(
        "SELECT lineage_id FROM lineage JOIN repository USING (repository_id) WHERE name = %s", (name,)
    ).fetchone()
    if lineage is None:
        corpus = Corpus(connection, name, shared_spans=True)
        with stage("load artifacts", report):
            corpus.commit(generated(size, parts, choices))
        lineage = (corpus.lineage_id,)
    with stage("lexical index", report):
        index.catch_up(connection, lineage[0])
    view = reading.open_view(connection, lineage[0], 0)
    model = vectors.put_model(connection, f"static:sum-{size}", 256, None)
    with stage("store vectors", report):
        put_sums(connection, view, model, sums_of(parts, provider), choices)
    with stage("vector index", report):
        vectors.ensure_index(connection, model)
    return view, model, parts, provider


def sums_of(parts: list[str], provider) -> np.ndarray:
    """Sums of token vectors before scaling: what a longer text's vector is the sum of."""
    table = provider._table
    return np.array(
        [
            table[np.minimum(one.ids, len(table) - 1)].sum(axis=0)
            for one in provider._tokenizer.encode_batch_fast(parts, add_special_tokens=False)
        ],
        dtype=np.float32,
    )


def put_sums(connection, view, model, sums: np.ndarray, choices: np.ndarray) -> None:
    pairs = connection.execute(
        """SELECT d.text_pk, min(split_part(a.logical_key, '.f', 2)::int) FROM search_document d
           JOIN artifact a USING (artifact_pk) WHERE d.lineage_id = %s AND NOT EXISTS (
               SELECT FROM artifact_embedding e WHERE e.model_pk = %s AND e.text_pk = d.text_pk)
           GROUP BY 1 ORDER BY 1""",
        (view.lineage_id, model.model_pk),
    ).fetchall()
    for at in range(0, len(pairs), 20_000):
        some = pairs[at : at + 20_000]
        made = sums[choices[[number for _, number in some]]].sum(axis=1)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        vectors.put_vectors(connection, model, [pk for pk, _ in some], made)


def queries(parts: list[str], provider, count: int) -> dict[str, np.ndarray]:
    chance = random.Random(3)
    asked = {}
    while len(asked) < count:
        words = chance.choice(parts).split()
        start = chance.randrange(0, len(words) - 5)
        text = " ".join(words[start : start + chance.randint(4, 8)]).replace('"', "")
        if len(analyze_query(text).terms) >= 2:
            asked[text] = provider.embed_query(text)
    return asked


def timed(
    database: Database, view, model, asked, options: SearchOptions, clients: int, rounds: int
) -> list[float]:
    """Milliseconds of each search; every client has a thread and a connection of its own, as in `kb serve`."""
    texts = list(asked)
    times: list[list[float]] = [[] for _ in range(clients)]
    pool = ReaderPool(database, clients)

    def search(text: str) -> None:
        with pool.reader() as connection:
            rank(Legs(connection, view, model, Asked(model.model_id, asked)), text, options)

    def client(number: int) -> None:
        for text in texts[-3:]:
            search(text)
        for at in range(rounds):
            started = time.perf_counter()
            search(texts[(at * clients + number) % len(texts)])
            times[number].append((time.perf_counter() - started) * 1000)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    pool.close()
    return [value for some in times for value in some]


def line(name: str, values: list[float], report: dict) -> None:
    p50, p95 = np.percentile(values, [50, 95])
    report[name] = [round(float(p50), 1), round(float(p95), 1)]
    peer = PEERS.get((report["size"], name), "")
    print(f"{name:<44} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms   {peer}".rstrip(), flush=True)


def exactness(connection, view, model, asked, report: dict) -> None:
    """nDCG@10 of the budgeted lexical leg with the exact ranking as judgement, recall@10 of the vectors."""
    legs = Legs(connection, view, model, Asked(model.model_id, asked))
    everything = legs.filter((), None, ())
    gains, recalls, reads = [], [], []
    for text, vector in list(asked.items())[:CHECKED]:
        prepared = lexical.prepare(connection, view, analyze_query(text).terms)
        reads.append(prepared.postings)
        call = {"members": view.members, "limit": 10}
        exact = lexical.search(connection, view, prepared, **call, budget=1 << 40)
        quick = lexical.search(connection, view, prepared, **call, budget=search_legs.BUDGET)
        gains.append(gain(exact, quick))
        true = legs.dense_exact(vector, everything, 10)
        near = vectors.nearest(connection, view, model, vector, **call)
        floor = true[-1][1] - 1e-3
        recalls.append(sum(score >= floor for _, score in near[:10]) / 10)
    report["lexical_ndcg_against_exact"] = round(float(np.mean(gains)), 4)
    report["vector_recall_at_10"] = round(float(np.mean(recalls)), 4)
    report["postings_p50_p95"] = [int(value) for value in np.percentile(reads, [50, 95])]
    print(
        f"lexical nDCG@10 against exact {np.mean(gains):.4f}   vector recall@10 {np.mean(recalls):.3f}   "
        f"postings of a query p50 {report['postings_p50_p95'][0]:,} p95 {report['postings_p50_p95'][1]:,}",
        flush=True,
    )


def gain(exact: list[tuple[int, float]], quick: list[tuple[int, float]]) -> float:
    """nDCG@10 where each of the ten best scores is worth its share of the best one. Equal scores are equally
    good: a tie broken otherwise is no loss."""
    places = 1 / np.log2(np.arange(2, 12))
    best = np.array([score for _, score in exact])
    ideal = float((best * places[: len(best)]).sum())
    reached = np.array([score for _, score in quick])
    return float((reached * places[: len(reached)]).sum()) / ideal if ideal else 1.0


def measure(parts: BenchParts, size: int, rounds: int) -> dict:
    report: dict = {"size": size}
    with parts.database.writer() as connection:
        connection.autocommit = True
        view, model, texts, provider = load(connection, size, report)
        asked = queries(texts, provider, 200)
        bytes_ = connection.execute("SELECT pg_database_size(current_database())").fetchone()[0]
        report["database_gb"] = round(bytes_ / 1e9, 2)
        exactness(connection, view, model, asked, report)
    for mode in ("lexical", "dense", "hybrid"):
        for clients in (1, 2, 4):
            values = timed(parts.database, view, model, asked, SearchOptions(mode=mode), clients, rounds)
            line(f"{mode}, {clients} in flight", values, report)
    for share, kinds in (("30 %", ("symbol",)), ("1 %", ("event",))):
        for mode in ("lexical", "dense", "hybrid"):
            options = SearchOptions(mode=mode, kinds=kinds)
            values = timed(parts.database, view, model, asked, options, 1, rounds)
            line(f"{mode}, filter keeps {share}", values, report)
    busy(parts, view, model, asked, rounds, report)
    started(parts, view, model, asked, report)
    return report


def started(parts: BenchParts, view, model, asked, report: dict) -> None:
    """The first search of a server that has just been started, each time with another query.

    Its buffers are empty and nothing is planned; in the second round the machine's cache of its files is
    dropped too, so that every page comes from the disk.
    """
    for name, dropped in (("hybrid, server just started", False), ("hybrid, and files not cached", True)):
        values = []
        for text in list(asked)[:8]:
            parts.server.stop()
            if dropped:
                drop_cached(parts.server.data)
            parts.server.ensure_running()
            with parts.database.reader() as connection:
                begun = time.perf_counter()
                opened = reading.open_view(connection, view.lineage_id, view.ordinal)
                rank(Legs(connection, opened, model, Asked(model.model_id, asked)), text, SearchOptions())
                values.append((time.perf_counter() - begun) * 1000)
        line(name, values, report)


def drop_cached(folder: Path) -> None:
    """The system forgets what it has cached of the folder's files."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def busy(parts: BenchParts, view, model, asked, rounds: int, report: dict) -> None:
    """Hybrid searches while another process's worth of artifacts is loaded and indexed."""
    stop = threading.Event()

    def write() -> None:
        with parts.database.writer() as connection:
            connection.autocommit = True
            corpus = Corpus(connection, f"busy-{time.time()}", shared_spans=True)
            number = 0
            while not stop.is_set():
                number += 1
                corpus.commit(
                    Doc(f"passage:b{number}.{n}", f"busy text {n} {number}", path=f"b{n}.py")
                    for n in range(500)
                )
                index.catch_up(connection, corpus.lineage_id)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        values = timed(parts.database, view, model, asked, SearchOptions(), 1, rounds)
        line("hybrid, during an index run", values, report)
    finally:
        stop.set()
        writer.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="build in this folder, or use what a run has built there")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    if not text_sets():
        print(ABSENT)
        return 0
    with ExitStack() as stack:
        if arguments.keep:
            parts = stack.enter_context(kept_parts(arguments.keep))
        else:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kb-bench-")))
            parts = stack.enter_context(bench_parts(scratch))
        report = measure(parts, arguments.size, arguments.rounds)
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
