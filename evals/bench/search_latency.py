"""How fast and how exact search is: modes, clients, filters, at 100,000 and 1,000,000 artifacts.

    python -m evals.bench.search_latency                 100,000 artifacts
    python -m evals.bench.search_latency --size 1000000  about ten minutes on two idle cores

Texts of about 40 words are put together from fragments of real ones; their vectors are those that the
static provider would give them (a static vector is the sum over the fragments). Queries are parts of
fragments. Every figure is server-side and warm: one connection per client, no provider's time in it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from evals.bench.servers import BenchParts, bench_parts
from evals.retrieval.corpus import Corpus, Doc
from evals.retrieval.datasets import ABSENT, text_set, text_sets
from kb.lexicon import analyze_query
from kb.providers import open_provider
from kb.retrieve import search_legs
from kb.retrieve.metrics import ndcg
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import SearchOptions
from kb.store.database import Database
from kb.store.search import index, lexical, reading, vectors

KINDS = (("passage", 0.60), ("symbol", 0.30), ("import", 0.09), ("event", 0.01))
FRAGMENT = 14


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
    chance = np.random.default_rng(1)
    parts = fragments()
    choices = chance.integers(0, len(parts), size=(size, 3))
    provider = open_provider("static")
    # Sums of token vectors before scaling: what a longer text's vector is the sum of.
    lengths = np.array(
        [len(one.ids) for one in provider._tokenizer.encode_batch_fast(parts, add_special_tokens=False)]
    )
    table = provider._table
    sums = np.array(
        [
            table[np.minimum(one.ids, len(table) - 1)].sum(axis=0)
            for one in provider._tokenizer.encode_batch_fast(parts, add_special_tokens=False)
        ],
        dtype=np.float32,
    )
    report["fragments"] = len(parts)
    report["mean_tokens"] = float(lengths.mean() * 3)
    corpus = Corpus(connection, f"latency{size}-{time.time()}", shared_spans=True)
    with stage("load artifacts", report):
        corpus.commit(generated(size, parts, choices))
    with stage("lexical index", report):
        index.catch_up(connection, corpus.lineage_id)
    view = reading.open_view(connection, corpus.lineage_id, corpus.ordinal)
    model = vectors.put_model(connection, f"static:sum-{size}-{corpus.lineage_id}", 256, None)
    with stage("store vectors", report):
        pairs = connection.execute(
            """SELECT d.text_pk, min(split_part(a.logical_key, '.f', 2)::int) FROM search_document d
               JOIN artifact a USING (artifact_pk) WHERE d.lineage_id = %s GROUP BY 1 ORDER BY 1""",
            (corpus.lineage_id,),
        ).fetchall()
        for at in range(0, len(pairs), 20_000):
            some = pairs[at : at + 20_000]
            made = sums[choices[[number for _, number in some]]].sum(axis=1)
            made /= np.linalg.norm(made, axis=1, keepdims=True)
            vectors.put_vectors(connection, model, [pk for pk, _ in some], made)
    with stage("vector index", report):
        vectors.ensure_index(connection, model)
    return view, model, parts, provider


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
    texts = list(asked)
    times: list[list[float]] = [[] for _ in range(clients)]

    def client(number: int) -> None:
        with database.reader() as connection:
            connection.autocommit = True
            legs = Legs(connection, view, model, Asked(model.model_id, asked))
            for text in texts[:5]:
                rank(legs, text, options)
            for at in range(rounds):
                text = texts[(at * clients + number) % len(texts)]
                started = time.perf_counter()
                rank(legs, text, options)
                times[number].append((time.perf_counter() - started) * 1000)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return [value for some in times for value in some]


def line(name: str, values: list[float], report: dict) -> None:
    p50, p95 = np.percentile(values, [50, 95])
    report[name] = [round(float(p50), 1), round(float(p95), 1)]
    print(f"{name:<44} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms", flush=True)


def exactness(connection, view, model, asked, report: dict) -> None:
    """nDCG@10 of the budgeted lexical leg with the exact ranking as judgement, recall@10 of the vectors."""
    gains, recalls = [], []
    for text, vector in list(asked.items())[:60]:
        prepared = lexical.prepare(connection, view, analyze_query(text).terms)
        call = {"members": view.members, "limit": 10}
        exact = lexical.search(connection, view, prepared, **call, budget=1 << 40)
        quick = lexical.search(connection, view, prepared, **call, budget=search_legs.BUDGET)
        by_score = {round(score, 4) for _, score in exact}
        # Equal scores are equally good: a tie broken otherwise is no loss.
        grades = {str(doc): 1 for doc, _ in exact}
        ranking = [
            str(doc)
            if str(doc) in grades
            else next((d for d in grades if d not in quick_keys(quick)), str(doc))
            if round(score, 4) in by_score
            else str(doc)
            for doc, score in quick
        ]
        gains.append(ndcg(list(dict.fromkeys(ranking)), grades, 10))
        true = vectors.scan(connection, view, model, vector, **call)
        near = vectors.nearest(connection, view, model, vector, **call, ef_search=search_legs.EF_SEARCH)
        floor = true[-1][1] - 1e-3
        recalls.append(sum(score >= floor for _, score in near[:10]) / 10)
    report["lexical_ndcg_against_exact"] = round(float(np.mean(gains)), 4)
    report["vector_recall_at_10"] = round(float(np.mean(recalls)), 4)
    print(
        f"lexical nDCG@10 against exact {np.mean(gains):.4f}   vector recall@10 {np.mean(recalls):.3f}",
        flush=True,
    )


def quick_keys(hits) -> set[str]:
    return {str(doc) for doc, _ in hits}


def measure(parts: BenchParts, size: int, rounds: int) -> dict:
    report: dict = {"size": size}
    with parts.database.writer() as connection:
        connection.autocommit = True
        view, model, texts, provider = load(connection, size, report)
        asked = queries(texts, provider, 200)
        with parts.database.owner() as owner:
            owner.autocommit = True
            owner.execute("VACUUM ANALYZE")
        bytes_ = connection.execute("SELECT pg_database_size(current_database())").fetchone()[0]
        report["database_gb"] = round(bytes_ / 1e9, 2)
        exactness(connection, view, model, asked, report)
        for mode in ("lexical", "dense", "hybrid"):
            for clients in (1, 2, 4):
                options = SearchOptions(mode=mode)
                values = timed(parts.database, view, model, asked, options, clients, rounds)
                line(f"{mode}, {clients} in flight", values, report)
        for share, kinds in (("30 %", ("symbol",)), ("1 %", ("event",))):
            for mode in ("lexical", "dense", "hybrid"):
                options = SearchOptions(mode=mode, kinds=kinds)
                values = timed(parts.database, view, model, asked, options, 1, rounds)
                line(f"{mode}, filter keeps {share}", values, report)
        busy(parts, view, model, asked, rounds, report)
    return report


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
    parser.add_argument("--db-url", help="an empty database of a superuser; default: an embedded server")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    if not text_sets():
        print(ABSENT)
        return 0
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        if arguments.db_url:
            database = Database.at(arguments.db_url)
            database.ensure_ready()
            report = measure(BenchParts(database, Path(scratch)), arguments.size, arguments.rounds)
        else:
            with bench_parts(Path(scratch)) as parts:
                report = measure(parts, arguments.size, arguments.rounds)
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
