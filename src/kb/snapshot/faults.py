"""Named points at which a test may end the process, to prove that no moment leaves a half state."""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "opened",
    "registered",
    "planned",
    "parse_stored",
    "parsed",
    "lineage_made",
    "files_stored",
    "links_stored",
    "linked",
    "checked",
    "before_seal",
    "before_commit",
    "sealed",
)

hooks: list[Callable[[str], None]] = []
"""Called with the name of every point that is passed; empty but in tests."""


def point(name: str) -> None:
    """A moment worth dying at; does nothing unless a hook is installed."""
    for hook in hooks:
        hook(name)
