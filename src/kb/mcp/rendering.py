"""From an answer to what is sent: structured content once, repository text delimited, tokens counted.

The data travels as structured content alone; the text block says in one line what came back. Sending
the JSON a second time as text, which the specification suggests for old clients, would double the price
of every answer. A client that reads text alone is served with `--answers text`: JSON as text, and no
structured content (docs/mcp.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel

from kb.providers.tokens import TokenCounter

Answers = Literal["structured", "text"]

DELIMITED = frozenset({"text", "source"})
"""Fields that hold running text of a repository."""
_COUNTS = {
    "excerpts": "excerpt",
    "hits": "hit",
    "dependents": "dependent",
    "changes": "change",
    "moments": "moment",
    "repositories": "repository",
    "units": "unit",
}
"""What an answer's list holds -> one of it."""


def delimited(text: str) -> str:
    """The text between two markers that it cannot contain: they carry its own digest."""
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:10]
    return f"<<<repository-text {mark}\n{text}\n{mark} repository-text>>>"


def undelimited(text: str) -> str:
    """What stands between the markers that `delimited` made."""
    return text.split("\n", 1)[1].rsplit("\n", 1)[0]


def payload(answer: BaseModel) -> dict[str, Any]:
    """The answer as JSON, without what is at its default, and with repository text between markers."""
    body: dict[str, Any] = answer.model_dump(mode="json", exclude_defaults=True)
    _mark(body)
    return body


def _mark(body: Any) -> None:
    if isinstance(body, list):
        for item in body:
            _mark(item)
    elif isinstance(body, dict):
        for name, value in body.items():
            if name in DELIMITED and isinstance(value, str):
                body[name] = delimited(value)
            elif name != "body":
                _mark(value)


def serialised(body: Mapping[str, Any]) -> str:
    """JSON as it goes over the wire: compact, and every character as itself."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def summary(body: Mapping[str, Any]) -> str:
    """One line for whoever looks at the text: how much came back, and that the data is beside it."""
    if "outcome" in body:
        return str(body["outcome"])
    for name, one in _COUNTS.items():
        if name in body:
            said = f"{len(body[name])} {one if len(body[name]) == 1 else name}"
            omitted = body.get("omitted", 0)
            return f"{said}, {omitted} more" if omitted else said
    return "done"


class Renderer:
    """Renders answers in one form, and counts them in it."""

    def __init__(self, counter: TokenCounter, answers: Answers = "structured") -> None:
        self._counter = counter
        self._answers = answers

    def measure(self, part: BaseModel, /) -> int:
        """Tokens of an answer as it is sent, or of a part of one."""
        body = payload(part)
        said = "" if self._answers == "text" else summary(body)
        return self._counter.count(serialised(body)) + self._counter.count(said)

    def result(self, answer: BaseModel) -> CallToolResult:
        """The answer as a tool's result."""
        body = payload(answer)
        if self._answers == "text":
            return CallToolResult(content=[TextContent(type="text", text=serialised(body))])
        return CallToolResult(content=[TextContent(type="text", text=summary(body))], structured_content=body)
