"""Turns stored artifacts into served units: provenance with lines at a commit, and freshness."""

from __future__ import annotations

from collections.abc import Sequence

from kb.model.served import Provenance, SourceLine, Unit
from kb.retrieve.excerpts import Excerpts
from kb.retrieve.freshness import HeadReader
from kb.retrieve.lines import source_lines
from kb.retrieve.select import Selected
from kb.store.units import ASIDE, MEMBER, ArtifactRow, Place

_FIRST = ("definition", "handler", "route", "view", "entity", "declaration", "signature")
"""Roles of the lines that say what a unit is, the most telling ones first."""


class UnitMaker:
    """Makes units of one snapshot."""

    def __init__(self, selected: Selected) -> None:
        self._selected = selected
        self._sha = selected.snapshot.label
        self._excerpts = Excerpts(selected.repository)
        self.head = HeadReader(selected.repository, self._sha, selected.snapshot.tree)

    def units(
        self,
        rows: Sequence[ArtifactRow],
        *,
        source: bool = False,
        most: int | None = None,
        at: tuple[str, int] | None = None,
    ) -> tuple[Unit, ...]:
        """The rows as units, in order.

        Args:
            rows: the artifacts with their places.
            source: whether to add the very lines at the snapshot's commit.
            most: so many places of each at most, the most telling ones first; None for all, by path and line.
            at: a file and a line that were asked for: places there are the most telling ones.
        """
        return tuple(self._unit(row, source=source, most=most, at=at) for row in rows)

    def _unit(self, row: ArtifactRow, *, source: bool, most: int | None, at: tuple[str, int] | None) -> Unit:
        shown = row.places if most is None else most_telling(row.places, most, at)
        return Unit(
            key=row.logical_key,
            kind=row.kind,
            title=row.title,
            body=row.body,
            text=self._excerpts.text(row),
            provenance=tuple(self._provenance(place, source=source) for place in shown),
            more_places=len(row.places) - len(shown),
            method="llm_grounded" if row.method == "llm_grounded" else "deterministic",
            extractor=row.extractor,
            extractor_version=row.extractor_version,
            model=row.model_id,
            confidence=row.confidence,
            freshness=self.head.freshness(row.places),
            artifact_id=row.artifact_id.hex()[:16],
        )

    def _provenance(self, place: Place, *, source: bool) -> Provenance:
        found = provenance_of(place, self._sha)
        return found.model_copy(update={"source": self._lines(place)}) if source else found

    def _lines(self, place: Place) -> tuple[SourceLine, ...] | None:
        if self._selected.repository is None:
            return None
        return source_lines(self._selected.repository, place.oid, place.start_line, place.end_line)


def most_telling(places: Sequence[Place], most: int, at: tuple[str, int] | None) -> list[Place]:
    """Up to so many places: on the line that was asked for, then one of each role, then the rest.

    A class has a place for each of its members, an import one for each file: all of them would fill an answer.
    What a thing is comes before what it takes part in: a handler before the routers that lead to it.
    """

    def asked_for(place: Place) -> bool:
        return at is not None and place.path == at[0] and place.start_line <= at[1] <= place.end_line

    first: set[str] = set()
    ranked = []
    for place in places:
        aside = ASIDE.index(place.role) + 1 if place.role in ASIDE else 0
        known = _FIRST.index(place.role) if place.role in _FIRST else len(_FIRST)
        ranked.append((not asked_for(place), place.role == MEMBER, place.role in first, aside, known))
        first.add(place.role)
    order = sorted(range(len(places)), key=lambda number: ranked[number])
    return [places[number] for number in order[:most]]


def provenance_of(place: Place, sha: str) -> Provenance:
    """A place at a commit as it is served, without its lines."""
    return Provenance(
        file=place.path,
        start_line=place.start_line,
        end_line=place.end_line,
        sha=sha,
        symbol=place.symbol_path,
        role=place.role,
        span_id=place.span_id.hex(),
    )
