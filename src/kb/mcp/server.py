"""Builds the server: tools, resources and prompts over one library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio.to_thread
from mcp.server import MCPServer

from kb import __version__
from kb.mcp.asking import AskedServer
from kb.mcp.calls import Calls, Observer, unobserved
from kb.mcp.comparing_tools import add_comparing_tools
from kb.mcp.instructions import INSTRUCTIONS
from kb.mcp.listing_tools import add_listing_tools
from kb.mcp.prompts import add_prompts
from kb.mcp.reading_tools import add_reading_tools
from kb.mcp.rendering import Answers, Renderer
from kb.mcp.resources import add_resources
from kb.providers.tokens import token_counter
from kb.retrieve.library import Library

WORKERS = 8
"""Calls that are answered at a time; as many connections are kept open. Further calls wait."""


def build_server(
    library: Library, *, answers: Answers = "structured", observer: Observer = unobserved
) -> MCPServer[Any]:
    """The server with everything registered; it holds no connection until it is asked something."""
    server = AskedServer(
        "kb",
        observer=observer,
        title="kb: knowledge that can be proven",
        instructions=INSTRUCTIONS,
        version=__version__,
        lifespan=_bounded(),
        subscriptions=False,
        log_level="WARNING",
    )
    calls = Calls(library, Renderer(token_counter(), answers), observer)
    add_reading_tools(server, calls, answers)
    add_listing_tools(server, calls, answers)
    add_comparing_tools(server, calls, answers)
    add_resources(server, library)
    add_prompts(server)
    return server


def _bounded() -> Callable[[MCPServer[Any]], AbstractAsyncContextManager[None]]:
    """Blocking work runs on worker threads, so many at a time: more would only wait for each other."""

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = WORKERS
        yield

    return lifespan
