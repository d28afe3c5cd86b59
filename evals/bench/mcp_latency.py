"""How fast every MCP tool answers, server-side: from parsed arguments to the rendered answer.

    python -m evals.bench.mcp_latency              at Django's size (fetches its sources)
    python -m evals.bench.mcp_latency --copies 29  thirty times Django's package: 1,000,000 artifacts

Prints JSON: for each tool p50, p95 and the most of many different questions, warm, one client. DESIGN 10 asks for
p95 <= 20 ms at Django's size and <= 50 ms with 1,000,000 artifacts. Beside the milliseconds that passed stand those
of CPU, of kb and of its database backend together: on a machine that does other work they alone say something.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from statistics import median, quantiles

from mcp.server.mcpserver.exceptions import ToolError

from evals.bench.copies import multiply
from evals.bench.index_django import fetch
from evals.bench.servers import BenchParts, bench_parts
from kb.embed.embedding import embed_snapshots
from kb.mcp.calls import Calls
from kb.mcp.rendering import Renderer
from kb.mcp.serving import settle
from kb.providers import open_provider
from kb.providers.tokens import token_counter
from kb.retrieve import answering, diff, history, knowledge, listing, overview, provenance, source, verify
from kb.retrieve import dependents as dependents_of
from kb.retrieve.library import Library
from kb.retrieve.listing import ListFilter, list_units
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from kb.store.catalog import snapshot_by_id
from kb.store.database import ReaderPool

QUESTIONS = 60
BUDGET = 6000


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def repository(sources: Path, folder: Path) -> Path:
    """A repository of Django's package, with one commit more that changes a file."""
    repo = folder / "repo"
    repo.mkdir()
    shutil.copytree(sources / "django", repo / "django")
    git(repo, "init", "-q", "-b", "main")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "base")
    changed = next(repo.rglob("shortcuts.py"))
    changed.write_text(
        changed.read_text() + "\n\ndef added_by_the_benchmark(request, extra=1):\n    return extra\n"
    )
    git(repo, "commit", "-qam", "change")
    return repo


def prepared(parts: BenchParts, repo: Path, copies: int) -> tuple[str, str]:
    """Indexes both commits, copies what was found, puts it into the search index and embeds it."""
    shas = [
        index_repository(parts, IndexRequest(repo=str(repo), commitish=commitish, jobs=2)).sha
        for commitish in ("HEAD~1", "HEAD")
    ]
    if copies:
        _, shas = multiply(parts, repo, "django", copies)
    with parts.database.reader() as connection:
        tip = snapshot_by_id(
            connection, connection.execute("SELECT max(snapshot_id) FROM snapshot").fetchone()[0]
        )
    embed_snapshots(parts, [tip], open_provider("static"), None, lambda *_: None)
    with parts.database.owner() as connection:
        connection.autocommit = True
        connection.execute("VACUUM (ANALYZE)")
    return shas[0], shas[1]


def sample(parts: BenchParts, kind: str, count: int) -> list[tuple[str, str, int, int]]:
    """(key, path, first line, last line) of artifacts of a kind, chosen by chance that is the same each time."""
    with parts.database.reader() as connection:
        rows = connection.execute(
            """SELECT DISTINCT ON (md5(a.logical_key)) a.logical_key, p.path, o.start_line, o.end_line
               FROM artifact a JOIN grounding_location g USING (artifact_pk) JOIN path p USING (path_id)
               JOIN snapshot_file f ON f.lineage_id = g.lineage_id AND f.path_id = g.path_id
                AND f.to_ord = 2147483647
               JOIN span_occurrence o ON o.parse_id = f.parse_id AND o.span_pk = g.span_pk AND o.n = g.n
               WHERE a.kind = %s AND g.to_ord = 2147483647
               ORDER BY md5(a.logical_key), p.path, o.start_line LIMIT %s""",
            (kind, count),
        ).fetchall()
    return [tuple(row) for row in rows]


def questions(parts: BenchParts, shas: tuple[str, str]) -> Iterator[tuple[str, object, tuple, dict]]:
    """(tool, use case, arguments, named arguments) of every question."""
    base, head = shas
    everywhere = {"repo": None, "sha": None}
    symbols = sample(parts, "symbol", QUESTIONS)
    modules = sample(parts, "module", QUESTIONS)
    entities = sample(parts, "entity", QUESTIONS) or symbols
    words = [key.rpartition(".")[2].replace("_", " ") for key, *_ in symbols]
    for (key, path, start, end), query in zip(symbols, words, strict=True):
        yield "find_provenance", provenance.find_provenance, (path, start), everywhere
        yield "get_knowledge", knowledge.get_knowledge, (key.partition(":")[2],), {**everywhere, "kinds": ()}
        yield "search_knowledge", answering.search_knowledge, (query,), {
            **everywhere, "k": 10, "kinds": (), "path": None,
        }  # fmt: skip
        yield "get_knowledge of nothing", knowledge.get_knowledge, (misspelled(key),), {
            **everywhere, "kinds": (),
        }  # fmt: skip
        yield "find_provenance of no file", provenance.find_provenance, (path[:-4] + "s.py", 1), everywhere
        yield "get_source", source.get_source, (source.Wanted(target=key),), everywhere
        yield "dependents", dependents_of.dependents, (key,), everywhere
        yield "history", history.history, (key,), {"repo": None}
        citation = verify.Citation(path, f"{start}-{end}", base)
        yield "verify_citation", verify.verify_citation, (citation,), {"repo": None}
    for key, path, *_ in modules:
        yield "get_knowledge of a module", knowledge.get_knowledge, (key,), {**everywhere, "kinds": ()}
        yield "list_entities in a file", list_units, (ListFilter(listing.ENTITIES, folder=path),), everywhere
    for key, *_ in entities:
        name = key.rpartition(".")[2]
        yield "list_entities", list_units, (ListFilter(listing.ENTITIES, name=name),), everywhere
        yield "list_contracts", list_units, (ListFilter(listing.CONTRACTS, name=name[:4]),), everywhere
        yield "list_events", list_units, (ListFilter(listing.EVENTS, name=name[:4]),), everywhere
        yield "list_settings", list_units, (ListFilter(listing.SETTINGS, name=name[:4]),), everywhere
        yield "diff_knowledge", diff.diff_knowledge, (base, head), {"repo": None}
        yield "list_repositories", overview.list_repositories, (), {}
        yield "status", overview.repository_status, (), everywhere


def misspelled(key: str) -> str:
    """The last name of a key with two letters in the middle gone: what no snapshot has."""
    name = key.rpartition(".")[2].rpartition(":")[2]
    half = max(1, len(name) // 2)
    return f"{name[:half]}{name[half + 2 :]}q"


UNPAGED = ("verify_citation", "status")
REFUSED = ("get_knowledge of nothing", "find_provenance of no file")
"""Questions whose answer is an error that says what is near; any other error ends the run."""


def cpu_of(pid: int) -> float:
    """Seconds that a process has been on a CPU; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def measure(parts: BenchParts, shas: tuple[str, str]) -> dict[str, dict[str, float]]:
    """Milliseconds by tool. The first question of each tool warms what a server keeps, and is told apart."""
    pool = ReaderPool(parts.database)
    with pool.reader() as connection:
        backend = connection.info.backend_pid
    seconds: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    calls = Calls(Library(parts, pool, parts.home), Renderer(token_counter()))
    settle()
    asked = list(questions(parts, shas))
    random.Random(7).shuffle(asked)
    try:
        for tool, use_case, arguments, named in asked:
            paging = {} if tool in UNPAGED else {"paging": calls.paging(BUDGET)}
            started, used = time.perf_counter(), time.process_time() + cpu_of(backend)
            with suppress(ToolError) if tool in REFUSED else nullcontext():
                calls.answer(tool, use_case, *arguments, **named, **paging)
            seconds.setdefault(tool, []).append(time.perf_counter() - started)
            cpu.setdefault(tool, []).append(time.process_time() + cpu_of(backend) - used)
    finally:
        pool.close()
    return {
        tool: {
            "first": round(1000 * times[0], 1),
            **spread(times[1:]),
            **{f"cpu_{name}": value for name, value in spread(cpu[tool][1:]).items()},
        }
        for tool, times in sorted(seconds.items())
    }


def spread(seconds: list[float]) -> dict[str, float]:
    """Milliseconds: median, 95th percentile and maximum."""
    return {
        "p50": round(1000 * median(seconds), 1),
        "p95": round(1000 * quantiles(seconds, n=20)[-1], 1),
        "most": round(1000 * max(seconds), 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=Path, help="Django's sources. Default: fetched.")
    parser.add_argument("--copies", type=int, default=0, help="How often more to have Django's package.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        sources = arguments.sources or fetch(Path(scratch))
        repo = repository(sources, Path(scratch))
        with bench_parts(Path(scratch)) as parts:
            shas = prepared(parts, repo, arguments.copies)
            with parts.database.reader() as connection:
                row = connection.execute("SELECT max(artifacts) FROM snapshot").fetchone()
            print(json.dumps({"artifacts": row[0], "milliseconds": measure(parts, shas)}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
