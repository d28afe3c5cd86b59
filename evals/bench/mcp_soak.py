"""Fifty concurrent clients for a minute: no error, no leaked connection, memory flat.

    python -m evals.bench.mcp_soak [--seconds 60] [--clients 50]

A server of its own (`kb serve --http`) over a small shop; each client asks every tool in turn over HTTP. Exits 1
where a call failed, a database connection was left beyond the pool, or memory grew by more than a tenth after
the first third.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import httpx
from mcp import Client

from evals.bench.servers import bench_parts
from kb.mcp.server import WORKERS
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from tests.mcp.conftest import make_searchable
from tests.mcp.shop import change, shop

GROWTH = 1.10


def questions(first: str) -> list[tuple[str, dict]]:
    return [
        ("find_provenance", {"file": "shop/app.py", "line": 18}),
        ("get_knowledge", {"target": "shop.models.Order"}),
        ("search_knowledge", {"query": "order total"}),
        ("get_source", {"target": "symbol:shop.money.charge"}),
        ("list_contracts", {}),
        ("list_entities", {"limit": 2}),
        ("list_events", {}),
        ("list_settings", {}),
        ("dependents", {"target": "shop.models"}),
        ("diff_knowledge", {"base": first}),
        ("history", {"key": "api:GET /items"}),
        ("verify_citation", {"file": "shop/billing.py", "lines": "6-8", "sha": first}),
        ("list_repositories", {}),
        ("status", {}),
    ]


def resident(pid: int) -> int:
    """Bytes that the process holds now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def one_client(url: str, first: str, until: float, done: list[int], failures: list[str]) -> None:
    async with Client(url) as client:
        for tool, arguments in itertools.cycle(questions(first)):
            if time.monotonic() >= until:
                return
            result = await client.call_tool(tool, arguments)
            done[0] += 1
            if result.is_error:
                failures.append(f"{tool}: {result.content[0].text[:200]}")


async def soak(url: str, pid: int, first: str, clients: int, seconds: float) -> dict:
    done, failures, memory = [0], [], []
    until = time.monotonic() + seconds
    async with anyio.create_task_group() as tasks:
        for _ in range(clients):
            tasks.start_soon(one_client, url, first, until, done, failures)
        while time.monotonic() < until:
            memory.append(resident(pid))
            await anyio.sleep(seconds / 60)
    third = len(memory) // 3
    return {
        "calls": done[0],
        "failures": failures[:10],
        "settled_mb": round(max(memory[: third + 1]) / 2**20, 1),
        "last_mb": round(memory[-1] / 2**20, 1),
    }


def latencies(metrics: str) -> dict[str, dict[str, float]]:
    """Tool -> share of calls within 20, 50 and 250 ms, from the server's own histogram."""
    found: dict[str, dict[str, float]] = {}
    for tool, bound, count in re.findall(r'call_seconds_bucket\{tool="(\w+)",le="([^"]+)"\} (\d+)', metrics):
        found.setdefault(tool, {})[bound] = float(count)
    return {
        tool: {
            f"within_{bound}": round(counts[bound] / counts["+Inf"], 3) for bound in ("0.02", "0.05", "0.25")
        }
        for tool, counts in found.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch, bench_parts(Path(scratch)) as parts:
        repo = shop(Path(scratch) / "shop")
        first = repo.sha()
        for commit in (lambda: repo, lambda: change(repo)):
            commit()
            index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
        make_searchable(parts.database)
        server = subprocess.Popen(
            [sys.executable, "-m", "kb", "serve", "--http", "127.0.0.1:0", "--rate", "0"],
            env={**os.environ, "KB_HOME": str(parts.home)},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            url = server.stderr.readline().split()[1]
            report = anyio.run(soak, url, server.pid, first, arguments.clients, arguments.seconds)
            report["latencies"] = latencies(httpx.get(url.replace("/mcp", "/metrics")).text)
            with parts.database.owner() as connection:
                row = connection.execute(
                    """SELECT count(*) FILTER (WHERE application_name = 'kb reader'),
                              count(*) FILTER (WHERE state LIKE 'idle in transaction%') FROM pg_stat_activity"""
                ).fetchone()
            report["connections"], report["in_transaction"] = row
        finally:
            server.terminate()
            code = server.wait()
    report["exit_code"] = code
    flat = report["last_mb"] <= report["settled_mb"] * GROWTH
    kept = report["connections"] <= WORKERS and report["in_transaction"] == 0
    report["passed"] = not report["failures"] and flat and kept and code == 0
    print(json.dumps(report, indent=2))
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
