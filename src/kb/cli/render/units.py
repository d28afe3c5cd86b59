"""Served units, for a person: what is known, where it stands, and whether it still holds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kb.cli.render.snapshots import read_from_line
from kb.cli.render.words import counted, line_range, short_sha
from kb.cli.terminal import dim, one_line, printable, strong, warning

if TYPE_CHECKING:
    from kb.model.served import Freshness, Provenance, Unit
    from kb.retrieve.show import Shown

_INDENT = "  "


def shown_lines(shown: Shown) -> Iterator[str]:
    """The snapshot that was read, each unit after an empty line, and how many were left out."""
    yield read_from_line(shown.repository, shown.sha, shown.notice)
    for unit in shown.units:
        yield ""
        yield from unit_lines(unit)
    if shown.omitted:
        yield ""
        yield f"and {counted(shown.omitted, 'more unit')}"


def unit_lines(unit: Unit) -> Iterator[str]:
    """Title and key, the text, each place it stands on with its role, and how it was made."""
    yield strong(one_line(unit.title))
    yield dim(f"{_INDENT}{one_line(unit.key)}")
    if unit.text.strip():
        yield ""
        yield from textwrap.indent(printable(unit.text.strip("\n")), _INDENT).split("\n")
    yield ""
    for place in unit.provenance:
        yield from _place_lines(place)
    yield dim(f"{_INDENT}{_making(unit)}")
    yield _INDENT + _freshness(unit.freshness)


def _place_lines(place: Provenance) -> Iterator[str]:
    where = line_range(place.file, place.start_line, place.end_line)
    symbol = f" {one_line(place.symbol)}" if place.symbol else ""
    yield f"{_INDENT}{where}@{short_sha(place.sha)}  {place.role}{dim(symbol)}"
    if place.source:
        width = len(str(place.source[-1].line))
        for line in place.source:
            yield f"{_INDENT * 2}{dim(str(line.line).rjust(width))}  {printable(line.text)}".rstrip()


def _making(unit: Unit) -> str:
    writer = f", {unit.model}" if unit.model else ""
    return (
        f"{unit.method} by {unit.extractor} {unit.extractor_version}{writer}, confidence {unit.confidence} %"
    )


def _freshness(freshness: Freshness) -> str:
    if freshness.status == "unknown":
        return warning("unknown at HEAD: the repository or its HEAD cannot be read or compared")
    head = f"HEAD ({short_sha(freshness.head_sha)})" if freshness.head_sha else "HEAD"
    behind = freshness.commits_behind
    distance = f", {counted(behind, 'commit')} behind" if behind else ""
    said = f"{freshness.status} at {head}{distance}"
    return dim(said) if freshness.status == "current" else warning(said)
