"""A list of units as it is answered: paged by a cursor, fitted to a budget, with what is left out counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kb.model.served import AnsweredFrom, Unit
from kb.retrieve.budget import Budget, shorten_unit
from kb.retrieve.cursors import Cursor, decode_cursor, question_digest
from kb.retrieve.library import Library, Opened

MOST_SHOWN = 100
"""Units of one answer, whatever the budget."""


class UnitsAnswer(BaseModel):
    """Units of one snapshot, in order; an empty list means that nothing is there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answered_from: AnsweredFrom
    units: tuple[Unit, ...]
    total: Annotated[int, Field(ge=0, description="Units that match, on all pages together.")]
    omitted: Annotated[int, Field(ge=0, description="Units that follow after this page.")]
    next_cursor: Annotated[
        str | None, Field(description="Pass as `cursor`, with the same arguments, for the next page.")
    ] = None
    note: Annotated[str | None, Field(description="Why nothing is there, or what to know.")] = None
    matched: Annotated[
        str | None,
        Field(description="How the target was understood: key, name, route, line, span, file or module."),
    ] = None


@dataclass(frozen=True)
class Paging:
    """How a list is to be read: the budget, a cursor from an earlier page, at most so many units."""

    budget: Budget
    cursor: str | None = None
    limit: int | None = None


@contextmanager
def opened_page(
    library: Library, repo: str | None, sha: str | None, cursor: str | None, *question: object
) -> Iterator[tuple[Opened, int, str]]:
    """The snapshot of a page, the place where the page begins, and the digest of its question.

    A cursor opens the snapshot that the first page was read from, whatever was sealed since.

    Raises:
        UsageError: the cursor is none, or belongs to another question.
        NotFoundError: its snapshot is gone; or as `select_snapshot`.
    """
    digest = question_digest(repo, sha, *question)
    if cursor is None:
        with library.opened(repo, sha) as opened:
            yield opened, 0, digest
        return
    place = decode_cursor(cursor, digest)
    with library.opened_again(place.snapshot_id) as opened:
        yield opened, place.offset, digest


def cursor_after(opened: Opened, digest: str, after: int, total: int, order: str = "") -> str | None:
    """The cursor of the page that begins at `after`; None at the end of the list."""
    return Cursor(opened.snapshot.snapshot_id, digest, after, order).encoded() if after < total else None


def units_page(
    opened: Opened,
    order: Sequence[int],
    start: int,
    digest: str,
    paging: Paging,
    *,
    matched: str | None = None,
    note: str | None = None,
    at: tuple[str, int] | None = None,
) -> UnitsAnswer:
    """One page of the artifacts in `order`; `at` is the file and line that were asked for."""
    source = opened.source()

    def answer(units: Sequence[Unit], after: int) -> UnitsAnswer:
        return UnitsAnswer(
            answered_from=source,
            units=tuple(units),
            total=len(order),
            omitted=len(order) - after,
            next_cursor=cursor_after(opened, digest, after, len(order)),
            note=note,
            matched=matched,
        )

    return paging.budget.fit(
        order,
        start,
        min(paging.limit or MOST_SHOWN, MOST_SHOWN),
        lambda pks: opened.units(list(pks), at),
        answer,
        shorten_unit,
    )
