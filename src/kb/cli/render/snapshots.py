"""Which snapshot an answer comes from, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.cli.render.words import counted, short_sha
from kb.cli.terminal import dim, one_line, warning

if TYPE_CHECKING:
    from kb.model.served import ReadFrom


def read_from_line(source: ReadFrom) -> str:
    """One line: repository, commit, and how far it is from what was asked for."""
    place = f"{one_line(source.repository)} at {short_sha(source.sha)}"
    target = one_line(source.asked) if source.asked else "HEAD"
    if source.commits_behind == 0:
        return dim(f"{place} ({target})")
    if source.commits_behind is None:
        return warning(f"{place} ({target} cannot be compared)")
    behind = counted(source.commits_behind, "commit")
    return warning(f"{place}, the nearest indexed ancestor of {target}, {behind} behind")
