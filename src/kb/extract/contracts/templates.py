"""URL templates of the frameworks, brought to one form: `/orders/{pk}/`, with what is known of each name."""

from __future__ import annotations

import re
from typing import Any

_BRACES = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
_ANGLES = re.compile(r"<(?:([\w.]+)(?:\([^()]*\))?:)?(\w+)>")
_NAMED_GROUP = re.compile(r"\(\?P<(\w+)>")

_CONVERTERS = {
    "str": "str", "string": "str", "int": "int", "float": "float", "path": "str", "uuid": "UUID", "slug": "str",
    "any": "str", "default": "str",
}  # fmt: skip


def from_braces(template: str) -> tuple[str, list[dict[str, Any]]]:
    """Starlette's `{name:converter}`: the plain path and its parameters."""
    return _BRACES.sub(r"{\1}", template), [_entry(name, kind) for name, kind in _BRACES.findall(template)]


def from_angles(template: str) -> tuple[str, list[dict[str, Any]]]:
    """Flask's and Django's `<converter:name>`: the plain path and its parameters."""
    return _ANGLES.sub(r"{\2}", template), [_entry(name, kind) for kind, name in _ANGLES.findall(template)]


def from_regex(pattern: str) -> tuple[str, list[dict[str, Any]], bool]:
    """Django's regular expressions: the plain path, its parameters, and whether nothing else was in it."""
    out: list[str] = []
    names: list[dict[str, Any]] = []
    at, plain = 0, True
    while at < len(pattern):
        char = pattern[at]
        if char == "(":
            end = _closing(pattern, at)
            named = _NAMED_GROUP.match(pattern, at)
            if named is not None:
                names.append(_entry(named.group(1), "str"))
                out.append("{" + named.group(1) + "}")
            elif not pattern.startswith("(?:", at):
                out.append("{" + f"arg{len(names)}" + "}")
                names.append(_entry(f"arg{len(names)}", "str"))
            else:
                plain = False
                out.append(pattern[at:end])
            at = end
        elif char == "[":
            end = max(at + 1, pattern.find("]", at + 2) + 1)
            out.append(pattern[at:end])
            at, plain = end, False
        elif char in "^$" or pattern.startswith(("\\Z", "\\A"), at):
            at += 1 if char in "^$" else 2
        elif char == "\\" and at + 1 < len(pattern) and not pattern[at + 1].isalnum():
            out.append(pattern[at + 1])
            at += 2
        else:
            plain = plain and char not in "*+?|\\"
            out.append(char)
            at += 1
    return "".join(out), names, plain


def angled_regex(pattern: str) -> tuple[str, bool]:
    """A regular expression in Django's other form, `<name>` for each group, and whether nothing else was in it."""
    plain, names, exact = from_regex(pattern)
    for entry in names:
        plain = plain.replace("{" + entry["name"] + "}", "<" + entry["name"] + ">", 1)
    return plain, exact


def _closing(pattern: str, start: int) -> int:
    depth, at = 0, start
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 2
            continue
        if pattern[at] == "[":
            at = max(at, pattern.find("]", at + 2))
        depth += {"(": 1, ")": -1}.get(pattern[at], 0)
        at += 1
        if depth == 0:
            break
    return at


def _entry(name: str, converter: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "in": "path", "required": True}
    entry["type"] = _CONVERTERS.get(converter or "default", converter)
    if converter == "path":
        entry["converter"] = "path"
    return entry
