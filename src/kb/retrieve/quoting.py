"""Finds cited lines and quotes again in the lines of a file. Plain functions of texts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.model.spans import LocatedSpan

LONGEST = 4_000
"""Characters of a quote or a claim that are looked at."""


def _folded(text: str) -> str:
    return " ".join(text.split())


def has_quote(lines: Sequence[str], quote: str) -> bool:
    """Whether a quote stands on the lines, whitespace folded."""
    return _folded(quote[:LONGEST]) in _folded("\n".join(lines))


def lines_inside(lines: Sequence[str], span: LocatedSpan) -> list[str]:
    """The lines of a span, whitespace folded: code that is indented otherwise is the same."""
    return [_folded(line) for line in lines[span.start_line - 1 : span.end_line]]


def starts_of(lines: Sequence[str], part: Sequence[str]) -> list[int]:
    """Where the part stands among the lines, counted from 0."""
    wanted, first = list(part), part[0]
    return [
        at
        for at in range(len(lines) - len(wanted) + 1)
        if lines[at] == first and lines[at : at + len(wanted)] == wanted
    ]


def followed(then: Sequence[str], at: int, cited: Sequence[str], now: Sequence[str]) -> int | None:
    """Where cited lines of a span stand in the same span elsewhere, counted from 0; None where they do not.

    Of several alike it is the one with as many of them before it: the code is the same in both.
    """
    part = [_folded(line) for line in cited]
    before, after = starts_of(then, part), starts_of(now, part)
    if len(before) == len(after) and at in before:
        return after[before.index(at)]
    return min(after, key=lambda start: abs(start - at), default=None)


def find_quote(lines: Sequence[str], quote: str) -> tuple[int, int] | None:
    """First and last line of the quote in the file, whitespace folded."""
    words = quote[:LONGEST].split()
    if not words:
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), "\n".join(lines))
    if found is None:
        return None
    text = found.string
    return text.count("\n", 0, found.start()) + 1, text.count("\n", 0, found.end()) + 1
