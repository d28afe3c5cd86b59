"""The use case `search_knowledge`: ranked units of one snapshot, read-only, fitted to a token budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kb.errors import DatabaseError, IntegrityError, KbError, NotFoundError, UsageError
from kb.model.served import AnsweredFrom, Unit
from kb.retrieve.budget import shorten_unit
from kb.retrieve.cursors import decode_cursor
from kb.retrieve.kinds import kinds_note
from kb.retrieve.library import Library, Opened
from kb.retrieve.near import has_path, unknown_folder
from kb.retrieve.pages import MOST_SHOWN, Paging, cursor_after, opened_page
from kb.retrieve.paths import GLOB, plain_path
from kb.retrieve.search import choose_model
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import Hit, Ranking, SearchOptions
from kb.store.search import vectors

LONGEST_QUERY = 2_000
OF_A_FILE = 2
"""Units of a file that come first, where neither kinds nor a folder are named: so the right file is among ten hits
for 75 of 100 questions instead of 61 (docs/search.md), and more of it is one question away."""
_FILES_NAMED = 3


class FoundUnit(BaseModel):
    """A unit with the score that it was found by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: Annotated[float, Field(description="Compares hits of one answer; it is no probability.")]
    unit: Unit


class SearchAnswer(BaseModel):
    """The best units for a query, best first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answered_from: AnsweredFrom
    mode: Annotated[str, Field(description="hybrid, or lexical where the snapshot has no vectors.")]
    hits: tuple[FoundUnit, ...]
    total: Annotated[int, Field(ge=0, description="Hits on all pages together: at most k.")]
    omitted: Annotated[int, Field(ge=0, description="Hits that follow after this page.")]
    coverage: Annotated[
        float, Field(description="How much of the query the best hit covers, 0..1: low means no real answer.")
    ]
    next_cursor: Annotated[
        str | None, Field(description="Pass as `cursor`, with the same arguments, for the next page.")
    ] = None
    notes: tuple[str, ...] = ()


def search_knowledge(
    library: Library,
    query: str,
    *,
    repo: str | None,
    sha: str | None,
    k: int,
    kinds: Sequence[str],
    path: str | None,
    paging: Paging,
) -> SearchAnswer:
    """The best units for a query; lexical where the snapshot is not embedded, and says so.

    Raises:
        UsageError: the query is empty or too long; or the cursor is none, of another question, or of an order that
            is no more, since the model can be asked again or cannot any more.
        NotFoundError: the snapshot is not in the search index yet, the hint has the command; or it has no such
            file or folder.
    """
    if not query.strip():
        raise UsageError("the query is empty", hint="ask with words or names")
    if len(query) > LONGEST_QUERY:
        raise UsageError(f"the query has {len(query)} characters; at most {LONGEST_QUERY} are read")
    question = ("search", query, k, tuple(sorted(kinds)), path)
    with opened_page(library, repo, sha, paging.cursor, *question) as (opened, start, digest):
        folder = plain_path(path)
        if folder is not None and not GLOB.search(folder) and not has_path(opened, folder):
            raise unknown_folder(opened, folder)
        spread = None if kinds or path is not None else OF_A_FILE
        options = SearchOptions(k=k, kinds=tuple(kinds), path=path, spread=spread)
        ranking, notes, by = _ranked(library, opened, query, options, question)
        if paging.cursor is not None and decode_cursor(paging.cursor, digest).order != by:
            raise UsageError(
                f"the hits are in another order than on the page before: it is {ranking.mode} now",
                hint="ask again without a cursor",
            )
        return _page(opened, ranking, kinds, notes, start, digest, by, paging)


def _ranked(
    library: Library, opened: Opened, query: str, options: SearchOptions, question: tuple[object, ...]
) -> tuple[Ranking, list[str], str]:
    """The ranking, what is to be said about how it was made, and which model made it: no other one has its order.

    By words alone where the snapshot's model cannot be asked: an endpoint that is down leaves an answer.
    """
    view = opened.search_view()
    if view is None:
        raise _not_in_the_index(opened)
    at = opened.snapshot.label.removeprefix("worktree:")[:12]
    try:
        model, provider = choose_model(opened.connection, opened.snapshot, SearchOptions(), library.embedding)
        if model is not None:
            legs = Legs(opened.connection, view, model, provider)
            key = (*question, model.model_pk)
            return opened.kept(key, lambda: rank(legs, query, options), _weight), [], str(model.model_pk)
        notes = [f"lexical only: {at} is not embedded; run: kb embed --sha {at}"]
    except KbError as error:
        if isinstance(error, (DatabaseError, IntegrityError)):
            raise
        models = vectors.snapshot_models(opened.connection, opened.snapshot.snapshot_id)
        named = ", ".join(model.model_id for model in models)
        note = f"lexical only: {at} is embedded with {named}, which cannot be asked: {error}"
        notes = [f"{note} ({error.hint})" if error.hint else note]
    legs = Legs(opened.connection, view)
    return opened.kept(question, lambda: rank(legs, query, options), _weight), notes, "words"


def _weight(ranking: Ranking) -> int:
    """A hit holds its document and the parts of its score."""
    return 20 * len(ranking.hits)


def _not_in_the_index(opened: Opened) -> NotFoundError:
    at = opened.snapshot.label.removeprefix("worktree:")[:12]
    name = opened.selected.row.name
    return NotFoundError(
        f"{at} is sealed but not in the search index yet",
        hint=f"run: kb search --repo {name} --sha {at} {name!r}; other tools answer meanwhile",
    )


def _page(
    opened: Opened,
    ranking: Ranking,
    kinds: Sequence[str],
    said: Sequence[str],
    start: int,
    digest: str,
    by: str,
    paging: Paging,
) -> SearchAnswer:
    source = opened.source()
    hits = ranking.hits
    notes = list(said)
    if ranking.unknown_terms:
        notes.append(f"no text here has: {', '.join(term[:60] for term in ranking.unknown_terms[:10])}")
    if not hits:
        notes.append(f"nothing there: no unit fits ({ranking.matched} passed the filters)")
    notes += kinds_note(kinds, opened)
    if ranking.further:
        files = [f"{path} ({count})" for path, count in list(ranking.further.items())[:_FILES_NAMED]]
        more = " and other files" if len(ranking.further) > _FILES_NAMED else ""
        notes.append(f"more that fits in {', '.join(files)}{more}: ask with folder set to the file")

    def load(numbers: Sequence[int]) -> list[FoundUnit]:
        wanted: list[Hit] = [hits[n] for n in numbers]
        units = opened.units([hit.document.artifact_pk for hit in wanted])
        return [
            FoundUnit(score=round(hit.score, 4), unit=unit) for hit, unit in zip(wanted, units, strict=True)
        ]

    def answer(items: Sequence[FoundUnit], after: int) -> SearchAnswer:
        return SearchAnswer(
            answered_from=source,
            mode=ranking.mode,
            hits=tuple(items),
            total=len(hits),
            omitted=len(hits) - after,
            coverage=round(ranking.coverage, 3),
            next_cursor=cursor_after(opened, digest, after, len(hits), by),
            notes=tuple(notes),
        )

    limit = min(paging.limit or MOST_SHOWN, MOST_SHOWN)
    return paging.budget.fit(range(len(hits)), start, limit, load, answer, _shorten)


def _shorten(item: FoundUnit, over: Callable[[FoundUnit], int]) -> FoundUnit | None:
    unit = shorten_unit(item.unit, lambda unit: over(item.model_copy(update={"unit": unit})))
    return None if unit is None else item.model_copy(update={"unit": unit})
