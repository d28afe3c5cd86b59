"""URL templates of the frameworks, brought to one form: `/orders/{pk}/`, with what is known of each name."""

from __future__ import annotations

import re
from typing import Any

from kb.extract.contracts.place import UNKNOWN

_UNTOLD = re.compile(f"<{UNKNOWN}.*?{UNKNOWN}>", re.DOTALL)
"""A part that only a run can tell: copied as it is, whatever it holds."""
_BRACES = re.compile(_UNTOLD.pattern + r"|\{(\w+)(?::([^{}]*))?\}", re.DOTALL)
_ANGLES = re.compile(_UNTOLD.pattern + r"|<(?:([\w.]+)(?:\([^()]*\))?:)?(\w+)(?P<optional>\?)?>", re.DOTALL)
_NAMED_GROUP = re.compile(r"\(\?P<(\w+)>")
_MAY_BE_LEFT_OUT = re.compile(r"[?*]|\{0?,|\{0\}")

_CONVERTERS = {
    "str": "str", "string": "str", "int": "int", "float": "float", "path": "str", "uuid": "UUID", "slug": "str",
    "any": "str", "default": "str",
}  # fmt: skip


def from_braces(template: str) -> tuple[str, list[dict[str, Any]]]:
    """Starlette's and FastAPI's `{name:converter}`: the plain path and its parameters."""
    return _read(template, _BRACES, name=1, converter=2)


def from_angles(template: str) -> tuple[str, list[dict[str, Any]]]:
    """Flask's and Django's `<converter:name>`, and `<name?>` of `from_regex`: the plain path and its parameters."""
    return _read(template, _ANGLES, name=2, converter=1)


def _read(
    template: str, form: re.Pattern[str], *, name: int, converter: int
) -> tuple[str, list[dict[str, Any]]]:
    entries: list[dict[str, Any]] = []

    def plain(match: re.Match[str]) -> str:
        if match[name] is None:
            return match[0]
        entry = _entry(match[name], match[converter] or "")
        if match.groupdict().get("optional"):
            entry["required"] = False
        entries.append(entry)
        return "{" + match[name] + "}"

    return form.sub(plain, template), entries


def from_regex(
    pattern: str, groups: int = 0, *, optional: bool = False, only_named: bool = False
) -> tuple[str, bool]:
    """A regular expression in Django's other form, `<name>` for each group, and whether nothing else was in it.

    A group that a match may leave out is `<name?>`; one without a name beside others that have one is no
    parameter, as Django has it. `groups` is the number of the first group without a
    name, `optional` says that the whole may be left out.
    """
    out: list[str] = []
    at, plain = 0, True
    optional = optional or _alternates(pattern)
    only_named = only_named or _NAMED_GROUP.search(pattern) is not None
    while at < len(pattern):
        char = pattern[at]
        untold = _UNTOLD.match(pattern, at)
        if untold is not None:
            out.append(untold[0])
            at = untold.end()
        elif char == "(":
            end = _closing(pattern, at)
            named = _NAMED_GROUP.match(pattern, at)
            maybe = optional or _MAY_BE_LEFT_OUT.match(pattern, end) is not None
            special = pattern.startswith("(?", at)
            if named is not None or not (special or only_named):
                out.append(f"<{named[1] if named is not None else f'arg{groups}'}{'?' if maybe else ''}>")
                groups += 1
            elif not special or pattern.startswith("(?:", at):
                # `(?:page-(?P<page>\d+)/)?`: the groups inside are parameters too
                plain = False
                opening = "(?:" if special else "("
                within = pattern[at + len(opening) : end - 1]
                inner, _ = from_regex(within, groups, optional=maybe, only_named=only_named)
                groups += inner.count("<arg")
                out.append(f"{opening}{inner})")
            else:  # flags, look-arounds, references: nothing that a view is given
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
    return "".join(out), plain


def _alternates(pattern: str) -> bool:
    """Whether a `|` stands outside of every group: then no group is in each match."""
    at = 0
    while at < len(pattern):
        untold = _UNTOLD.match(pattern, at)
        if untold is not None:
            at = untold.end()
        elif pattern[at] == "(":
            at = _closing(pattern, at)
        elif pattern[at] == "[":
            at = max(at + 1, pattern.find("]", at + 2) + 1)
        elif pattern[at] == "|":
            return True
        else:
            at += 2 if pattern[at] == "\\" else 1
    return False


def _closing(pattern: str, start: int) -> int:
    depth, at = 0, start
    while at < len(pattern):
        untold = _UNTOLD.match(pattern, at)
        if untold is not None or pattern[at] == "\\":
            at = untold.end() if untold is not None else at + 2
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
