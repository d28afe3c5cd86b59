"""What a name that a person or an agent writes means in a snapshot, and what is near it where nothing is."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Literal

from kb.errors import NotFoundError
from kb.retrieve.library import Opened
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
_NEAR = 5
_MOST_NAMED = 200
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


def find_target(opened: Opened, text: str) -> Target:
    """What `text` means: a logical key, `file:line`, a span id, a file, a route, a dotted name or the end of one.

    Raises:
        NotFoundError: nothing by that name; the hint and `data["near"]` have the nearest names.
    """
    stored = opened.stored
    text = text.strip()[:LONGEST]
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
        end = int(lines["end"] or start)
        return Target(
            "line", _unique(stored.at_line(lines["path"], start)), lines["path"], start, max(start, end)
        )
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
    return None


def _named(stored: SnapshotUnits, text: str) -> Target | None:
    found = stored.with_key([f"{space}:{text}" for space in NAMESPACES])
    if found:
        return Target("name", _unique(found))
    ending = [pk for _, pk in stored.keys_like(text, _MOST_NAMED)] if text else []
    return Target("name", _unique(ending)) if ending else None


def _unique(found: list[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(found))


def nothing_called(opened: Opened, text: str) -> NotFoundError:
    """The error for an unknown name, with the names of the snapshot that are nearest to it."""
    near = near_names(opened.stored, text)
    hint = f"near matches: {', '.join(near)}" if near else "no name is near it: try search_knowledge"
    return NotFoundError(
        f"unknown target: nothing is called {text[:200]!r} in {opened.selected.row.name} "
        f"at {opened.snapshot.label[:12]}",
        hint=hint,
        near=near,
    )


def near_names(stored: SnapshotUnits, text: str) -> list[str]:
    """Up to five keys and paths that are like the text: those that share its last word, else its parts."""
    words = [word for word in re.split(r"[.:/ #\-]", text.rstrip(".:/")) if len(word) > 1][::-1]
    near: list[str] = []
    for word in words[:3]:
        near += [*stored.keys_holding(word, 50), *stored.paths_like(word, 20)]
        if near:
            break
    if not near and words:
        near = _misspelled(stored, words[0])
    return difflib.get_close_matches(text, dict.fromkeys(near), n=_NEAR, cutoff=0.0)


def _misspelled(stored: SnapshotUnits, word: str) -> list[str]:
    """Names that hold the beginning or the end of a word, for a word that is spelled wrong."""
    half = max(3, len(word) // 2)
    return [*stored.keys_holding(word[:half], 50), *stored.keys_holding(word[-half:], 50)]


def unknown_file(opened: Opened, path: str) -> NotFoundError:
    """The error for a path that the snapshot does not have, with the paths that are nearest to it."""
    name = path.rstrip("/").rpartition("/")[2][:LONGEST]
    stem = name.partition(".")[0]
    stored = opened.stored
    found = [*stored.paths_like(name, 20), *(stored.paths_like(stem, 20) if stem else [])]
    if not found:  # spelled wrong: what lies beside it, or begins alike
        folder = path.rpartition("/")[0]
        found = [
            *stored.paths_like(f"{folder}/", 100),
            *stored.paths_like(stem[: max(2, len(stem) // 2)], 100),
        ]
    near = difflib.get_close_matches(path, dict.fromkeys(found), n=_NEAR, cutoff=0.0)
    return NotFoundError(
        f"unknown file: {opened.selected.row.name} has no {path[:200]!r} at {opened.snapshot.label[:12]}",
        hint=f"near matches: {', '.join(near)}" if near else "paths are from the repository's root",
        near=near,
    )
