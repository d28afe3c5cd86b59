"""What a name that a person or an agent writes means in a snapshot, and what is near it where nothing is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kb.errors import UsageError
from kb.retrieve.library import Opened
from kb.retrieve.near import nothing_called
from kb.store.units import SnapshotUnits

Matched = Literal["key", "name", "route", "line", "span", "file"]

NAMESPACES = (
    "symbol",
    "entity",
    "module",
    "package",
    "surface",
    "setting:env",
    "setting:django",
    "setting:field",
    "event:signal",
    "event:task",
    "event:topic",
    "command:click",
    "command:argparse",
    "dependency",
)
"""What a dotted name is looked up under, before the ends of longer names are tried."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "WEBSOCKET", "ANY", "MOUNT")

_LINES = re.compile(r"(?P<path>.+):(?P<start>[1-9][0-9]{0,8})(?:-(?P<end>[1-9][0-9]{0,8}))?")
_SPAN = re.compile(r"[0-9a-f]{8,64}")
_ROUTE = re.compile(r"(?:(?P<method>[A-Za-z]+)\s+)?(?P<path>/\S*)")
MOST_NAMED = 200
"""Artifacts of one name that are looked at: a name that more have says too little."""
MANY = f"more than {MOST_NAMED} units are called so, and others are not shown: give more of the name"
LONGEST = 1_000
"""Characters of a target that are looked at; a longer one names nothing."""


@dataclass(frozen=True)
class Target:
    """What was found under a name."""

    matched: Matched
    artifacts: tuple[int, ...]
    path: str = ""
    start: int = 0
    """First line, for `line`."""
    end: int = 0
    span: str = ""
    """Hex digits, for `span`."""
    more: bool = False
    """Whether more artifacts end so than are among these."""


def find_target(opened: Opened, text: str) -> Target:
    """What `text` means: a logical key, `file:line`, a span id, a file, a route, a dotted name or the end of one.

    Raises:
        UsageError: the text is blank.
        NotFoundError: nothing by that name; the hint and `data["near"]` have the nearest names.
    """
    stored = opened.stored
    text = text.strip()[:LONGEST]
    if not text:
        raise UsageError("a blank names nothing", hint="name a key, a symbol, a route, a file or file:line")
    found = _exact(stored, text) or _place(stored, text) or _route(stored, text) or _named(stored, text)
    if found is None:
        raise nothing_called(opened, text)
    return found


def _exact(stored: SnapshotUnits, text: str) -> Target | None:
    found = stored.with_key([text])
    return Target("key", _unique(found)) if found else None


def _place(stored: SnapshotUnits, text: str) -> Target | None:
    lines = _LINES.fullmatch(text)
    if lines is not None and stored.file(lines["path"]) is not None:
        start = int(lines["start"])
        end = max(start, int(lines["end"] or start))
        return Target("line", _unique(stored.at_line(lines["path"], start, end)), lines["path"], start, end)
    if _SPAN.fullmatch(text):
        on_span = stored.on_span(text)
        if on_span:
            return Target("span", _unique(on_span), span=text)
    path = text.removeprefix("./")
    if stored.file(path) is not None:
        return Target("file", _unique(stored.in_file(path)), path)
    return None


def _route(stored: SnapshotUnits, text: str) -> Target | None:
    route = _ROUTE.fullmatch(text)
    if route is None:
        return None
    methods = [route["method"].upper()] if route["method"] else METHODS
    path = route["path"]
    twin = path.rstrip("/") if path.endswith("/") and path != "/" else path + "/"
    for spelled in (path, twin):
        found = stored.with_key([f"api:{method} {spelled}" for method in methods])
        if found:
            return Target("route", _unique(found))
    return _route_below(stored, methods, path)


def _route_below(stored: SnapshotUnits, methods: Sequence[str], path: str) -> Target | None:
    """Routes that end with the path: below a prefix that whoever asks does not know."""
    end = path.strip("/")
    if not end:
        return None
    wanted = tuple(f"api:{method} " for method in methods)
    found = [
        pk
        for spelled in (end, end + "/")
        for key, pk in stored.named_keys(spelled, MOST_NAMED)
        if key.startswith(wanted)
    ]
    return Target("route", _unique(found)) if found else None


def _named(stored: SnapshotUnits, text: str) -> Target | None:
    found = stored.with_key([f"{space}:{text}" for space in NAMESPACES])
    if found:
        return Target("name", _unique(found))
    ending = stored.named(text, MOST_NAMED + 1) if text else []
    return Target("name", _unique(ending[:MOST_NAMED]), more=len(ending) > MOST_NAMED) if ending else None


def _unique(found: list[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(found))
