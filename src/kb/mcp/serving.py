"""Puts the server together from the parts, and runs it on a transport."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kb.bootstrap import App, embedding_endpoint
from kb.mcp.guard import parse_address, require_token, rules_for
from kb.mcp.http import Readiness, http_application, serve_http
from kb.mcp.metrics import Metrics
from kb.mcp.rendering import Answers
from kb.mcp.server import WORKERS, build_server
from kb.mcp.stdio import serve_stdio
from kb.retrieve.library import Library
from kb.retrieve.search import EmbeddingChoice
from kb.store.database import ReaderPool


def run_stdio(app: App, answers: Answers) -> None:
    """Serves one client over stdin and stdout."""
    with _pool(app) as pool:
        server = build_server(_library(app, pool), answers=answers)
        settle()
        serve_stdio(server)


def run_http(
    app: App,
    listen: str,
    *,
    token: str | None,
    hosts: Sequence[str],
    per_minute: int,
    answers: Answers,
    announce: Callable[[str], None],
) -> None:
    """Serves any number of clients over HTTP.

    Raises:
        UsageError: the address is none, is taken, or needs a token that there is not.
    """
    address = parse_address(listen)
    require_token(address, token)
    metrics = Metrics()
    with _pool(app) as pool:

        def probe() -> None:
            with pool.reader() as connection:
                connection.execute("SELECT 1")

        readiness = Readiness(probe)
        server = build_server(_library(app, pool), answers=answers, observer=metrics.call)
        rules = rules_for(address, token, hosts, per_minute)
        settle()
        serve_http(http_application(server, rules, metrics, readiness), address, readiness, announce)


def settle() -> None:
    """What is loaded now stays, so no garbage collection looks at it again: a full one took 80 ms, in the middle of
    every fiftieth search."""
    gc.collect()
    gc.freeze()


def _library(app: App, pool: ReaderPool) -> Library:
    """The snapshots, and where their models are asked: an endpoint and its key are never stored with them."""
    endpoint = embedding_endpoint()
    return Library(app, pool, embedding=EmbeddingChoice(url=endpoint.url, key=endpoint.key))


@contextmanager
def _pool(app: App) -> Iterator[ReaderPool]:
    pool = ReaderPool(app.database, WORKERS)
    try:
        yield pool
    finally:
        pool.close()
