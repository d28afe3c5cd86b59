"""Which snapshot an answer comes from, for a person."""

from __future__ import annotations

from kb.cli.render.words import short_sha
from kb.cli.terminal import dim, one_line, warning


def read_from_line(repository: str, sha: str, notice: str | None) -> str:
    """One line: repository and commit, and where that is not the commit asked for, why."""
    place = f"{one_line(repository)} at {short_sha(sha)}"
    if notice is None:
        return dim(place)
    return f"{dim(place)}\n{warning(f'note: {one_line(notice)}')}"
