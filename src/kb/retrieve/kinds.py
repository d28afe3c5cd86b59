"""Kinds of unit that a question names and nothing is of: a word that is spelled wrong must not pass unseen."""

from __future__ import annotations

from collections.abc import Sequence

from kb.retrieve.library import Opened
from kb.store.sizes import kinds_of


def kinds_here(opened: Opened) -> dict[str, int]:
    """Kind -> how many units of it the snapshot has."""
    at = (opened.connection, opened.snapshot.lineage_id, opened.snapshot.ordinal)
    return opened.kept("kinds", lambda: kinds_of(*at))


def kinds_note(kinds: Sequence[str], *snapshots: Opened) -> list[str]:
    """What to say of kinds that no unit of the snapshots is of; nothing where there are units of each."""
    if not kinds:
        return []
    here = {kind for opened in snapshots for kind in kinds_here(opened)}
    missing = [kind[:60] for kind in dict.fromkeys(kinds) if kind not in here]
    if not missing:
        return []
    return [f"no unit is of kind {', '.join(missing)}; kinds here: {', '.join(sorted(here))}"]
