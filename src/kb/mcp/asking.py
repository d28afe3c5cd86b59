"""What a client asks a tool or a prompt with, held against what they take: what does not fit is told in kb's words."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, Prompt
from pydantic import ValidationError

from kb.errors import KbError, NotFoundError, UsageError
from kb.mcp.calls import Observer, error_text

_MOST_TOLD = 3
"""Arguments that do not fit and are told of, each with what it takes."""
_LONGEST_SHOWN = 60

Schema = Mapping[str, Any]


class AskedServer(MCPServer[Any]):
    """A server that refuses what its tools do not take, and says in one line what they do take.

    An optional argument that is empty is one that is not given: many clients fill in every argument.

    Args:
        observer: is told of a call that was refused; the others are told of by who answers them.
    """

    def __init__(self, *arguments: Any, observer: Observer, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._observer = observer
        self._schemas: dict[str, Schema] = {}

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """As the SDK's; arguments that do not fit raise a `ToolError` with kb's words instead of pydantic's."""
        started = time.perf_counter()
        schema = await self._schema(name)
        if schema is None:
            return await super().call_tool(name, arguments, context)
        try:
            given = _given(schema, arguments)
            return await super().call_tool(name, given, context)
        except UsageError as error:
            cause: Exception = error
            said = error_text(error)
        except ToolError as error:
            if isinstance(error, UnexpectedToolError) or not isinstance(error.__cause__, ValidationError):
                raise
            cause = error.__cause__
            said = error_text(_misfit(schema, error.__cause__))
        self._observer(name, "UsageError", time.perf_counter() - started)
        raise ToolError(f"Error executing tool {name}: {said}") from cause

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """As the SDK's; a prompt or an argument that there is not, or one that is missing, is told as such.

        Raises:
            MCPError: with the code for invalid parameters; the SDK's own error reaches no client.
        """
        try:
            _require_prompt(await self.list_prompts(), name, arguments or {})
        except KbError as error:
            raise MCPError(INVALID_PARAMS, error_text(error)) from error
        return await super().get_prompt(name, arguments, context)

    async def _schema(self, name: str) -> Schema | None:
        """The input schema of a tool; None where there is no such tool. Tools are registered once."""
        if not self._schemas:
            self._schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
        return self._schemas.get(name)


def _require_prompt(prompts: Sequence[Prompt], name: str, arguments: Mapping[str, str]) -> None:
    """Returns where there is such a prompt, and the arguments are some of its own and all that it needs.

    Raises:
        NotFoundError, UsageError: it is not so; the hint names what there is.
    """
    known = {prompt.name: prompt for prompt in prompts}
    if name not in known:
        raise NotFoundError(f"no prompt is {_shown(name)}", hint=f"there are: {', '.join(known)}")
    takes = {one.name: one for one in known[name].arguments or ()}
    hint = "; ".join(f"{one.name}: {one.description}" for one in takes.values())
    wrong = [f"there is no argument {_shown(one)}" for one in arguments if one not in takes]
    wrong += [
        f"{one.name} is missing" for one in takes.values() if one.required and not arguments.get(one.name)
    ]
    if wrong:
        raise UsageError("; ".join(wrong[:_MOST_TOLD]), hint=hint)


def _given(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are given.

    Raises:
        UsageError: the tool does not take one of them: left out, it would be answered as if it said nothing.
    """
    takes = schema.get("properties", {})
    unknown = [name for name in arguments if name not in takes]
    if unknown:
        raise UsageError(
            f"there is no argument {', '.join(_shown(name) for name in unknown[:_MOST_TOLD])}",
            hint=" ".join(_meant(unknown[:_MOST_TOLD], takes)),
        )
    required = schema.get("required", ())
    return {name: value for name, value in arguments.items() if value != "" or name in required}


def _meant(unknown: list[str], takes: Mapping[str, Any]) -> Iterator[str]:
    for name in unknown:
        near = difflib.get_close_matches(name[:100].lower(), takes, n=1)
        if near:
            yield f"did you mean {near[0]}?"
    yield f"it takes {', '.join(takes)}"


def _misfit(schema: Schema, error: ValidationError) -> UsageError:
    """What does not fit, with what was given; and of each argument what it takes, as the hint."""
    takes = schema.get("properties", {})
    wrong = error.errors(include_url=False, include_context=False)
    names = list(dict.fromkeys(str(one["loc"][0]) for one in wrong if one["loc"]))[:_MOST_TOLD]
    told = [_told(one) for one in wrong[:_MOST_TOLD]]
    hints = [
        f"{name}: {takes[name]['description']}" for name in names if "description" in takes.get(name, {})
    ]
    return UsageError("; ".join(told), hint=" ".join(hints) or None)


def _told(wrong: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in wrong["loc"])
    if wrong["type"] == "missing":
        return f"{name} is missing"
    said = str(wrong["msg"])
    return f"{name} is {_shown(wrong['input'])}: {said[:1].lower()}{said[1:]}"


def _shown(value: Any) -> str:
    """A value in so many characters at most, on one line, whatever it is."""
    try:
        shown = repr(value[: _LONGEST_SHOWN + 1] if isinstance(value, str) else value)
    except ValueError:  # Python writes no integer of some thousands of digits
        return "a number of too many digits"
    return shown if len(shown) <= _LONGEST_SHOWN + 2 else f"{shown[:_LONGEST_SHOWN]}..."
