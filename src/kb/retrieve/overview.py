"""The use cases `list_repositories` and `status` for agents: what is indexed, how fresh it is, what to run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kb.errors import KbError
from kb.model.served import AnsweredFrom, Sha
from kb.retrieve.budget import Budget, ShortenedAnswer
from kb.retrieve.cursors import Cursor, decode_cursor, question_digest
from kb.retrieve.kinds import kinds_here
from kb.retrieve.library import Library, Opened
from kb.retrieve.pages import MOST_SHOWN, Paging
from kb.store.catalog import RepositoryRow, repositories, snapshots
from kb.store.database import Connection
from kb.store.gaps import gaps_at
from kb.store.search import vectors
from kb.store.serving import is_searchable

_MOST_SNAPSHOTS = 10
_MOST_GAPS = 20


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KnownRepository(_Record):
    """A repository that kb has indexed."""

    name: Annotated[str, Field(description="What the argument `repo` takes.")]
    location: str
    snapshots: int
    newest_sha: Annotated[Sha | None, Field(description="Commit of the snapshot that HEAD is answered by.")]
    sealed_at: datetime | None
    head_sha: Annotated[Sha | None, Field(description="HEAD now; None where it cannot be read.")]
    commits_behind: int | None
    run: Annotated[str | None, Field(description="What to run where HEAD is not indexed.")] = None


class RepositoriesAnswer(_Record):
    """The repositories that this server answers about, by name."""

    repositories: tuple[KnownRepository, ...]
    total: Annotated[int, Field(ge=0, description="Repositories on all pages together.")]
    omitted: Annotated[int, Field(ge=0, description="Repositories that follow after this page.")]
    next_cursor: Annotated[
        str | None, Field(description="Pass as `cursor`, with the same arguments, for the next page.")
    ] = None
    note: str | None = None


class SealedSnapshot(_Record):
    """A commit that is indexed."""

    sha: Sha
    sealed_at: datetime
    artifacts: int


class GapSeen(_Record):
    """A file, or lines of one, that could not be read."""

    file: str
    reason: str
    start_line: int | None
    end_line: int | None


class StatusAnswer(ShortenedAnswer):
    """What is known of one repository, how fresh it is, what could not be read, and what to run."""

    answered_from: AnsweredFrom
    location: str
    files: int
    parsed: int
    no_language: int
    excluded: int
    artifacts: int
    kinds: Annotated[dict[str, int], Field(description="Kind -> units of it.")]
    gaps: Annotated[dict[str, int], Field(description="Reason -> how many files or parts could not be read.")]
    first_gaps: Annotated[tuple[GapSeen, ...], Field(description="Up to 20 of them, by file.")]
    searchable: Annotated[bool, Field(description="Whether search_knowledge can answer.")]
    embedded_with: Annotated[tuple[str, ...], Field(description="Models; empty: search is lexical.")]
    more_models: Annotated[int, Field(ge=0, description="Models more than embedded_with shows.")] = 0
    snapshots: Annotated[tuple[SealedSnapshot, ...], Field(description="The newest seals.")]
    snapshot_count: int
    run: Annotated[tuple[str, ...], Field(description="Commands that would fill what is missing.")]


def list_repositories(library: Library, *, paging: Paging) -> RepositoriesAnswer:
    """Every indexed repository with its freshness, by name; an empty list says what to run.

    Raises:
        UsageError: the cursor is none, or of a list that has other repositories by now.
    """
    with library.reader() as connection:
        rows = repositories(connection)
        digest = question_digest("repositories", [row.name for row in rows])
        start = 0
        if paging.cursor is not None:
            start = decode_cursor(paging.cursor, digest).offset
        note = None if rows else "nothing there: nothing is indexed yet; run: kb index <path or URL>"

        def load(numbers: Sequence[int]) -> list[KnownRepository]:
            return [_known(library, connection, rows[n]) for n in numbers]

        def answer(items: Sequence[KnownRepository], after: int) -> RepositoriesAnswer:
            return RepositoriesAnswer(
                repositories=tuple(items),
                total=len(rows),
                omitted=len(rows) - after,
                next_cursor=Cursor(0, digest, after).encoded() if after < len(rows) else None,
                note=note,
            )

        return paging.budget.fit(range(len(rows)), start, MOST_SHOWN, load, answer, _shorten)


def _shorten(item: KnownRepository, over: Callable[[KnownRepository], int]) -> KnownRepository | None:
    """The repository with the beginning of a very long location."""
    shorter = item.model_copy(update={"location": item.location[:200], "run": None})
    return shorter if over(shorter) <= 0 else None


def _known(library: Library, connection: Connection, row: RepositoryRow) -> KnownRepository:
    count = len(snapshots(connection, row.repository_id))
    try:
        source = Opened(connection, library.choose(connection, row.name, None))
    except KbError as error:
        return KnownRepository(
            name=row.name,
            location=row.location,
            snapshots=count,
            newest_sha=None,
            sealed_at=None,
            head_sha=None,
            commits_behind=None,
            run=error.hint,
        )
    answered = source.source()
    return KnownRepository(
        name=row.name,
        location=row.location,
        snapshots=count,
        newest_sha=source.snapshot.label,
        sealed_at=source.snapshot.sealed_at,
        head_sha=answered.head_sha,
        commits_behind=answered.commits_behind,
        run=answered.run,
    )


_CUT = (
    "first_gaps",
    "snapshots",
    "embedded_with",
    "location",
    "run",
    "answered_from.notice",
    "answered_from.run",
)
"""What may be cut of a status, the least telling first; the counts always stay."""


def repository_status(
    library: Library, *, repo: str | None, sha: str | None, budget: Budget | None = None
) -> StatusAnswer:
    """The status of the snapshot that the selection rules choose, cut to the budget where there is one.

    Raises:
        NotFoundError: as `select_snapshot`.
        UsageError: as `select_snapshot`; or the counts alone do not fit the budget.
    """
    answer = _status(library, repo, sha)
    if budget is None:
        return answer
    models = len(answer.embedded_with)
    return budget.trimmed(
        answer, _CUT, lambda now: now.model_copy(update={"more_models": models - len(now.embedded_with)})
    )


def _status(library: Library, repo: str | None, sha: str | None) -> StatusAnswer:
    with library.opened(repo, sha) as opened:
        snapshot = opened.snapshot
        at = (opened.connection, snapshot.lineage_id, snapshot.ordinal)
        kinds = kinds_here(opened)
        gaps = opened.kept("gaps", lambda: gaps_at(*at))
        sealed = snapshots(opened.connection, snapshot.repository_id)
        searchable = is_searchable(*at)
        models = [row.model_id for row in vectors.snapshot_models(opened.connection, snapshot.snapshot_id)]
        source = opened.source()
        return StatusAnswer(
            answered_from=source,
            location=opened.selected.row.location,
            files=snapshot.files,
            parsed=snapshot.parsed,
            no_language=snapshot.no_language,
            excluded=snapshot.excluded,
            artifacts=snapshot.artifacts,
            kinds=kinds,
            gaps=dict(Counter(gap[1] for gap in gaps)),
            first_gaps=tuple(
                GapSeen(file=path, reason=reason, start_line=start, end_line=end)
                for path, reason, start, end, _ in gaps[:_MOST_GAPS]
            ),
            searchable=searchable,
            embedded_with=tuple(models),
            snapshots=tuple(
                SealedSnapshot(sha=one.label, sealed_at=one.sealed_at, artifacts=one.artifacts)
                for one in sealed[:_MOST_SNAPSHOTS]
            ),
            snapshot_count=len(sealed),
            run=tuple(_missing(opened, source, searchable=searchable, embedded=bool(models))),
        )


def _missing(opened: Opened, source: AnsweredFrom, *, searchable: bool, embedded: bool) -> list[str]:
    name = opened.selected.row.name
    at = opened.snapshot.label.removeprefix("worktree:")[:12]
    commands = [source.run] if source.run else []
    if not embedded:
        commands.append(f"kb embed --repo {name} --sha {at}")
    elif not searchable:
        commands.append(f"kb search --repo {name} --sha {at} {name}")
    return commands
