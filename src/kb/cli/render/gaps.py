"""Gaps, for a person: where, why, and what exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from kb.cli.render.snapshots import read_from_line
from kb.cli.render.words import columns, line_range
from kb.cli.terminal import one_line

if TYPE_CHECKING:
    from kb.retrieve.gaps import GapList


class GapLike(Protocol):
    """What is shown of a gap, wherever it was read from."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def reason(self) -> str:
        """A stable word."""

    @property
    def start_line(self) -> int | None:
        """None for the whole file."""

    @property
    def end_line(self) -> int | None:
        """Inclusive."""

    @property
    def detail(self) -> str:
        """May be empty."""


def gap_lines(gaps: Sequence[GapLike]) -> Iterator[str]:
    """One line a gap: place, reason, detail."""
    rows = [
        (line_range(gap.path, gap.start_line, gap.end_line), gap.reason, one_line(gap.detail)) for gap in gaps
    ]
    yield from columns(rows)


def gap_list_lines(found: GapList) -> Iterator[str]:
    """The snapshot, then one line a gap, or the good news that there is none."""
    yield read_from_line(found.repository, found.sha, found.notice)
    if not found.gaps:
        yield "no gaps: every file in a language that kb reads was read whole"
        return
    yield from gap_lines(found.gaps)
