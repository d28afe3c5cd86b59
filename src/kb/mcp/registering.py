"""How a tool is registered: read-only, closed-world, with its docstring as its description."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

from kb.mcp.rendering import Answers


def register(server: MCPServer[Any], tool: Callable[..., Any], title: str, answers: Answers) -> None:
    """Adds a function as a tool. It runs on a worker thread; its result type is its output schema.

    Where answers are text there is no schema: who declares one has to send structured content.
    """
    server.add_tool(
        tool,
        title=title,
        description=inspect.getdoc(tool),
        annotations=ToolAnnotations(
            title=title,
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
        structured_output=answers == "structured",
    )
