"""Small pieces of text that every rendering needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kb.cli.terminal import one_line

SHORT_SHA = 12


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 gap`, `2 gaps`, `1,234 files`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def short_sha(sha: str) -> str:
    """The first twelve digits; of a working tree's name those of its tree."""
    prefix, colon, tree = sha.rpartition(":")
    return prefix + colon + tree[:SHORT_SHA]


def line_range(path: str, start: int | None, end: int | None) -> str:
    """`path`, `path:3` or `path:3-7`."""
    name = one_line(path)
    if start is None:
        return name
    return f"{name}:{start}" if end in {None, start} else f"{name}:{start}-{end}"


def human_size(size: int) -> str:
    """`812 B`, `14.2 MB`: three significant places are enough to plan a disk with."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> Iterator[str]:
    """The rows with their cells aligned on the left, two blanks between columns."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield (indent + "  ".join(cells)).rstrip()
