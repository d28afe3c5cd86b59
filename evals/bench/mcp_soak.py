"""Fifty concurrent clients for a minute: no error, no leaked connection, memory flat.

    python -m evals.bench.mcp_soak [--seconds 60] [--clients 50]

A server of its own (`kb serve --http`) over a small shop; each client asks every tool in turn over HTTP, on a
connection that it keeps. They speak the protocol without the SDK, which takes more CPU for a call than the server
does: one process of fifty of its clients would be what is measured. Exits 1 where a call failed, a database
connection was left beyond the pool, or memory grew by more than a tenth after the first third.
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


HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "soak", "version": "1"},
}


class Counted:
    """What all clients have seen."""

    def __init__(self, clients: int) -> None:
        self.calls = 0
        self.failures: list[str] = []
        self.all_connected = anyio.Event()
        self._awaited = clients

    def connect(self) -> None:
        """One more client is connected."""
        self._awaited -= 1
        if not self._awaited:
            self.all_connected.set()


async def asked(http: httpx.AsyncClient, url: str, method: str, params: dict) -> dict:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = (await http.post(url, json=body)).raise_for_status().json()
    return answer.get("result") or {"isError": True, "content": [{"text": str(answer)}]}


async def one_client(url: str, first: str, at: int, counted: Counted, ended: anyio.Event) -> None:
    """Asks every tool in turn, each client from another one on, until all have asked for long enough."""
    async with httpx.AsyncClient(headers=HEADERS, timeout=60) as http:
        await asked(http, url, "initialize", HELLO)
        counted.connect()
        every = questions(first)
        for tool, arguments in itertools.cycle(every[at % len(every) :] + every[: at % len(every)]):
            if ended.is_set():
                return
            result = await asked(http, url, "tools/call", {"name": tool, "arguments": arguments})
            counted.calls += 1
            if result.get("isError"):
                counted.failures.append(f"{tool}: {result['content'][0]['text'][:200]}")


async def soak(url: str, pid: int, first: str, clients: int, seconds: float) -> dict:
    """The minute begins when every client is connected."""
    counted, memory, ended = Counted(clients), [], anyio.Event()
    async with anyio.create_task_group() as tasks:
        for at in range(clients):
            tasks.start_soon(one_client, url, first, at, counted, ended)
        await counted.all_connected.wait()
        before, began, used = counted.calls, time.monotonic(), cpu(pid)
        while time.monotonic() < began + seconds:
            memory.append(resident(pid))
            await anyio.sleep(seconds / 60)
        calls, spent = counted.calls - before, cpu(pid) - used
        ended.set()
    third = len(memory) // 3
    return {
        "calls": calls,
        "calls_per_second": round(calls / seconds, 1),
        "server_cpu_ms_per_call": round(1000 * spent / max(calls, 1), 1),
        "failures": counted.failures[:10],
        "settled_mb": round(max(memory[: third + 1]) / 2**20, 1),
        "last_mb": round(memory[-1] / 2**20, 1),
    }


def cpu(pid: int) -> float:
    """Seconds of CPU that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    report["passed"] = report["calls"] > 0 and not report["failures"] and flat and kept and code == 0
    print(json.dumps(report, indent=2))
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
