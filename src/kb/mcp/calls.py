"""One call of a tool: from arguments to the use case, and from its answer or error to what is sent."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, Protocol

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import BaseModel

from kb.errors import KbError, UsageError
from kb.mcp.rendering import Renderer
from kb.retrieve.budget import Budget
from kb.retrieve.library import Library
from kb.retrieve.pages import Paging

log = logging.getLogger("kb.mcp")


class Observer(Protocol):
    """Is told of every call: how long it took, and how it ended."""

    def __call__(self, tool: str, outcome: str, seconds: float, /) -> None:
        """One call has ended."""


def unobserved(tool: str, outcome: str, seconds: float, /) -> None:
    """Nobody wants to know."""


class Calls:
    """What the tools are given: the library, how to render, and whom to tell."""

    def __init__(self, library: Library, renderer: Renderer, observer: Observer = unobserved) -> None:
        self.library = library
        self._renderer = renderer
        self._observer = observer

    def paging(self, token_budget: int, cursor: str | None = None, limit: int | None = None) -> Paging:
        """How a list is to be read."""
        return Paging(self.budget(token_budget), cursor, limit)

    def budget(self, token_budget: int) -> Budget:
        """How large an answer without pages may be."""
        return Budget(token_budget, self._renderer.measure)

    def answer(
        self, tool: str, ask: Callable[..., BaseModel], *arguments: Any, **named: Any
    ) -> CallToolResult:
        """The rendered answer of a use case.

        Raises:
            ToolError: a `KbError`, as text that says what to do; nothing else of it reaches the model.
        """
        started = time.perf_counter()
        outcome = "defect"
        try:
            _require_text((*arguments, *named.values()))
            result = self._renderer.result(ask(self.library, *arguments, **named))
            outcome = "ok"
            return result
        except KbError as error:
            outcome = type(error).__name__
            raise ToolError(error_text(error)) from error
        finally:
            seconds = time.perf_counter() - started
            self._observer(tool, outcome, seconds)
            log.debug("%s %s %.1f ms", tool, outcome, seconds * 1000)


def _require_text(values: Iterable[Any]) -> None:
    """Returns where every string among the values is text that the database can hold.

    Raises:
        UsageError: one has a NUL character or half of a surrogate pair.
    """
    for value in values:
        if isinstance(value, str):
            if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
                raise UsageError("an argument holds a character that is no text")
        elif isinstance(value, list | tuple):
            _require_text(value)
        elif is_dataclass(value) and not isinstance(value, type):
            _require_text(getattr(value, field.name) for field in fields(value))
        elif isinstance(value, BaseModel):
            _require_text(value.model_dump().values())


def error_text(error: KbError) -> str:
    """What went wrong and what to do, in one line each."""
    kind = type(error).__name__.removesuffix("Error").lower()
    text = f"[{kind or 'failure'}] {' '.join(error.message.split())[:1000]}"
    return f"{text}\nhint: {' '.join(error.hint.split())[:1500]}" if error.hint else text
