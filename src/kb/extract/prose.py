"""Sections of Markdown and reStructuredText: a heading and what stands under it until the next one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:\s+(.*?))?\s*#*\s*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)\s*$")
_ADORNMENT = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}\s*$")
_LONGEST_SECTION = 400
"""Words after which a section goes on in another passage, at the next empty line."""


class ProseSection(NamedTuple):
    """Lines are 1-based and inclusive; `headings` go from the outermost to the section's own."""

    headings: tuple[str, ...]
    text: str
    start_line: int
    end_line: int


class _Heading(NamedTuple):
    line: int
    """0-based index of the first line that belongs to the heading."""
    level: int
    title: str


def sections(source: bytes, dialect: str) -> list[ProseSection]:
    """The sections of a document in order, those without any word left out.

    The text is folded: one blank between words, an empty line between paragraphs.
    """
    lines = [line.decode("utf-8", "replace") for line in source.splitlines()]
    headings = list(_rst_headings(lines) if dialect == "rst" else _markdown_headings(lines))
    found: list[ProseSection] = []
    path: list[tuple[int, str]] = []
    if not headings or headings[0].line > 0:
        found += _split(lines, 0, headings[0].line if headings else len(lines), ())
    for at, heading in enumerate(headings):
        while path and path[-1][0] >= heading.level:
            path.pop()
        path.append((heading.level, heading.title))
        end = headings[at + 1].line if at + 1 < len(headings) else len(lines)
        found += _split(lines, heading.line, end, tuple(title for _, title in path))
    return found


def _markdown_headings(lines: list[str]) -> Iterator[_Heading]:
    fence = ""
    for number, line in enumerate(lines):
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif opened:
            fence = opened[1]
        elif atx := _ATX.match(line):
            yield _Heading(number, len(atx[1]), _title(atx[2] or ""))
        elif number and (setext := _SETEXT.match(line)) and _is_text(lines, number - 1):
            yield _Heading(number - 1, 1 if setext[1][0] == "=" else 2, _title(lines[number - 1]))


def _is_text(lines: list[str], number: int) -> bool:
    """Whether the line can be a heading that is underlined: a single line of words."""
    alone = number == 0 or not lines[number - 1].strip()
    line = lines[number]
    return alone and bool(line.strip()) and not line.startswith(("#", ">", "-", "*", "|", "    "))


def _rst_headings(lines: list[str]) -> Iterator[_Heading]:
    levels: list[str] = []
    for number in range(1, len(lines)):
        underline = _ADORNMENT.fullmatch(lines[number])
        title = lines[number - 1]
        if underline is None or not title.strip() or title[0].isspace() or _ADORNMENT.fullmatch(title):
            continue
        if len(lines[number].rstrip()) < len(title.rstrip()):
            continue
        over = number > 1 and _ADORNMENT.fullmatch(lines[number - 2]) is not None
        style = underline[1] * (2 if over else 1)
        if style not in levels:
            levels.append(style)
        yield _Heading(number - 2 if over else number - 1, levels.index(style), _title(title))


def _title(text: str) -> str:
    return " ".join(re.sub(r"\{[#.].*?\}\s*$", "", text).split())


def _split(lines: list[str], start: int, end: int, headings: tuple[str, ...]) -> Iterator[ProseSection]:
    """One section's lines as one passage or, where it is long, as several that break between paragraphs."""
    first, words = start, 0
    for number in range(start, end):
        words += len(lines[number].split())
        if words >= _LONGEST_SECTION and not lines[number].strip():
            yield from _passage(lines, first, number, headings)
            first, words = number + 1, 0
    yield from _passage(lines, first, end, headings)


def _passage(lines: list[str], start: int, end: int, headings: tuple[str, ...]) -> Iterator[ProseSection]:
    paragraphs = "\n".join(line.strip() for line in lines[start:end]).split("\n\n")
    text = "\n\n".join(folded for paragraph in paragraphs if (folded := " ".join(paragraph.split())))
    if any(letter.isalnum() for letter in text):
        yield ProseSection(headings, text, start + 1, end)
