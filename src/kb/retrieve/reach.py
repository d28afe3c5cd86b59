"""What of the judged targets of a suite a search can find at all: a nought for one it cannot find says nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kb.errors import NotFoundError
from kb.retrieve.search import filters_note
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import SearchOptions
from kb.store.database import Connection
from kb.store.search import reading
from kb.store.units import SnapshotUnits

_NAMED = 5


class Reach(NamedTuple):
    """The judged targets, each once, by what stands against finding them; each list in order."""

    targets: int
    matched: int
    """Units that pass the filters."""
    absent: tuple[str, ...]
    """Neither a file of the snapshot nor the key of a unit."""
    without_units: tuple[str, ...]
    """Files of the snapshot from which no unit was made."""
    filtered_out: tuple[str, ...]
    """No unit of theirs passes the filters."""


def reach_of(
    legs: Legs,
    connection: Connection,
    stored: SnapshotUnits,
    judged: Collection[str],
    options: SearchOptions,
) -> Reach:
    """What of the judged targets (paths and logical keys) can be found with these filters.

    Raises:
        NotFoundError: nothing passes the filters, or not one target can be found: nothing could be measured. Its
            data are the fields of `Reach`.
    """
    allowed = legs.filter(options.kinds, options.path, ())
    numbers = reading.standing_for(connection, legs.view, judged)
    known: set[str] = set()
    passing: set[str] = set()
    for document in legs.documents(numbers):
        names = {document.logical_key, document.path}.intersection(judged)
        known |= names
        if allowed.holds(document.doc):
            passing |= names
    files = stored.files_among(judged) - known
    found = Reach(
        targets=len(judged),
        matched=allowed.count,
        absent=tuple(sorted(set(judged) - known - files)),
        without_units=tuple(sorted(files)),
        filtered_out=tuple(sorted(known - passing)),
    )
    if legs.view.present and not allowed.count:
        why = "; ".join(filters_note(connection, legs.view, options)) or "there are units of each alone"
        raise NotFoundError(
            f"nothing could be measured: no unit passes the filters: {why}", **found._asdict()
        )
    if not passing:
        raise NotFoundError(
            f"nothing could be measured: {'; '.join(reach_lines(found))}",
            hint="name the repository and the commit that the suite judges: --repo, --sha",
            **found._asdict(),
        )
    return found


def reach_lines(reach: Reach) -> list[str]:
    """What cannot be found and why, with counts, a line for each reason; nothing where all can be."""
    lines = []
    for targets, one, several in (
        (reach.absent, "is not in the snapshot", "are not in the snapshot"),
        (reach.without_units, "is a file without units", "are files without units"),
        (reach.filtered_out, "does not pass the filters", "do not pass the filters"),
    ):
        if targets:
            named = ", ".join(target[:100] for target in targets[:_NAMED])
            more = ", ..." if len(targets) > _NAMED else ""
            said = one if len(targets) == 1 else several
            lines.append(f"{len(targets)} of {reach.targets} judged targets {said}: {named}{more}")
    return lines
