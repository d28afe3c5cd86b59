"""Named points at which a test may end the process, to prove that no moment leaves a half state."""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
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

_hook: Callable[[str], None] | None = None


def install(hook: Callable[[str], None] | None) -> None:
    """Calls `hook` with the name of every point that is passed from now on; None stops that."""
    global _hook
    _hook = hook


def point(name: str) -> None:
    """A moment worth dying at; does nothing unless a hook is installed."""
    if _hook is not None:
        _hook(name)
