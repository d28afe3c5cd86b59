"""The use case `kb diff`: what two snapshots know otherwise, and whether it breaks anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kb.model.served import Provenance, Sha
from kb.retrieve.budget import Budget
from kb.retrieve.compatibility import judge
from kb.retrieve.cursors import Cursor, decode_cursor, question_digest
from kb.retrieve.library import Library, Opened
from kb.retrieve.pages import MOST_SHOWN, Paging
from kb.retrieve.units import provenance_of
from kb.store.changes import Held, only_in, relocated

What = Literal["added", "removed", "changed", "moved"]
_LEFT_OUT = ("passage",)
"""Kinds that a diff shows only when asked for: passages repeat what symbols say."""
_PLACES = 5


class Change(BaseModel):
    """An artifact that one of two snapshots knows otherwise than the other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    change: What
    kind: str
    key: str
    title: str
    compatibility: Annotated[
        Literal["breaking", "compatible"] | None,
        Field(description="For contracts and entities; None for kinds that are not judged."),
    ]
    reasons: Annotated[tuple[str, ...], Field(description="Why; the breaking ones first.")] = ()
    fields: Annotated[tuple[str, ...], Field(description="Entries of the body that differ.")] = ()
    before: Annotated[tuple[Provenance, ...], Field(description="Where it stands at base.")] = ()
    after: Annotated[tuple[Provenance, ...], Field(description="Where it stands at head.")] = ()


class DiffAnswer(BaseModel):
    """What changed from one snapshot to another, breaking changes first, then by kind and key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: str
    base: Sha
    head: Sha
    repository_head: Annotated[
        Sha | None, Field(description="The repository's HEAD now; None where it cannot be read.")
    ]
    commits_behind: Annotated[int | None, Field(description="Commits from head's snapshot to HEAD.")]
    counts: Annotated[dict[str, dict[str, int]], Field(description="Kind -> added, removed, changed, moved.")]
    breaking: Annotated[int, Field(description="Breaking changes on all pages together.")]
    changes: tuple[Change, ...]
    total: Annotated[int, Field(ge=0, description="Changes on all pages together.")]
    omitted: Annotated[int, Field(ge=0, description="Changes that follow after this page.")]
    next_cursor: Annotated[
        str | None, Field(description="Pass as `cursor`, with the same arguments, for the next page.")
    ] = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Found:
    what: What
    kind: str
    key: str
    title: str
    before: int | None
    after: int | None
    compatibility: Literal["breaking", "compatible"] | None
    reasons: tuple[str, ...]
    fields: tuple[str, ...]


def diff_knowledge(
    library: Library,
    base: str,
    head: str | None,
    *,
    repo: str | None,
    kinds: Sequence[str] = (),
    paging: Paging | None = None,
) -> DiffAnswer:
    """The changes between the snapshots of two commits; all of them without paging.

    A commit that is not indexed is answered by its nearest indexed ancestor; a note says so.

    Raises:
        NotFoundError: no snapshot for one of the two; the hint has the command.
        UsageError: the cursor belongs to another question.
    """
    question = ("diff", base, tuple(sorted(kinds)))
    digest = question_digest(repo, head, *question)
    cursor = decode_cursor(paging.cursor, digest) if paging is not None and paging.cursor else None
    with library.reader() as connection:
        if cursor is None:
            after = Opened(connection, library.choose(connection, repo, head))
        else:
            after = Opened(connection, library.choose_again(connection, cursor.snapshot_id))
        before = Opened(connection, library.choose(connection, after.selected.row.name, base))
        key = (question, before.snapshot.snapshot_id)
        found: list[_Found] = after.kept(key, lambda: find_changes(before, after, kinds))
        return _answer(before, after, found, cursor.offset if cursor else 0, digest, paging)


def find_changes(before: Opened, after: Opened, kinds: Sequence[str]) -> list[_Found]:
    """Every change, breaking ones first, then by kind and key."""
    wanted = list(kinds) or None
    old = _kept(only_in(before.connection, before.snapshot, after.snapshot, wanted), kinds)
    new = _kept(only_in(before.connection, after.snapshot, before.snapshot, wanted), kinds)
    compared = (_compared(old.get(key), new.get(key)) for key in {**old, **new})
    found = [one for one in compared if one is not None]
    moved = relocated(before.connection, before.snapshot, after.snapshot, wanted)
    for row in after.stored.by_pk(moved):
        if row.kind in kinds or row.kind not in _LEFT_OUT:
            verdict = judge(row.kind, row.body, row.body)
            found.append(
                _Found(
                    "moved",
                    row.kind,
                    row.logical_key,
                    row.title,
                    row.artifact_pk,
                    row.artifact_pk,
                    verdict.compatibility,
                    (),
                    (),
                )
            )
    return sorted(found, key=lambda one: (one.compatibility != "breaking", one.kind, one.key, one.what))


def _kept(held: Sequence[Held], kinds: Sequence[str]) -> dict[tuple[str, str], Held]:
    return {
        (one.kind, one.logical_key): one for one in held if one.kind in kinds or one.kind not in _LEFT_OUT
    }


def _compared(old: Held | None, new: Held | None) -> _Found | None:
    """What became of a key; None where only its spans are others and it says the same."""
    if old is not None and new is not None and old.body_digest == new.body_digest:
        return None
    shown = new or old
    assert shown is not None
    what: What = "added" if old is None else "removed" if new is None else "changed"
    verdict = judge(shown.kind, old.body if old else None, new.body if new else None)
    fields = _differing(old.body, new.body) if old is not None and new is not None else ()
    return _Found(
        what,
        shown.kind,
        shown.logical_key,
        shown.title,
        old.artifact_pk if old else None,
        new.artifact_pk if new else None,
        verdict.compatibility,
        verdict.reasons,
        fields,
    )


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(name for name in {*old, *new} if old.get(name) != new.get(name)))


def _answer(
    before: Opened, after: Opened, found: Sequence[_Found], start: int, digest: str, paging: Paging | None
) -> DiffAnswer:
    counts: dict[str, dict[str, int]] = {}
    for one in found:
        kind = counts.setdefault(one.kind, {})
        kind[one.what] = kind.get(one.what, 0) + 1
    source = after.source()
    notes = [
        f"{name}: {opened.selected.notice}"
        for name, opened in (("base", before), ("head", after))
        if opened.selected.notice
    ]
    if not found:
        notes.append("nothing there: both snapshots know the same")

    def load(numbers: Sequence[int]) -> list[Change]:
        return _changes(before, after, [found[n] for n in numbers])

    def answer(items: Sequence[Change], end: int) -> DiffAnswer:
        more = end < len(found)
        return DiffAnswer(
            repository=after.selected.row.name,
            base=before.snapshot.label,
            head=after.snapshot.label,
            repository_head=source.head_sha,
            commits_behind=source.commits_behind,
            counts=counts,
            breaking=sum(one.compatibility == "breaking" for one in found),
            changes=tuple(items),
            total=len(found),
            omitted=len(found) - end,
            next_cursor=Cursor(after.snapshot.snapshot_id, digest, end).encoded() if more else None,
            notes=tuple(notes),
        )

    if paging is None:
        return answer(load(range(len(found))), len(found))
    budget: Budget = paging.budget
    limit = min(paging.limit or MOST_SHOWN, MOST_SHOWN)
    return budget.fit(range(len(found)), start, limit, load, answer, _shorten)


def _changes(before: Opened, after: Opened, found: Sequence[_Found]) -> list[Change]:
    old = {row.artifact_pk: row for row in before.stored.by_pk([f.before for f in found if f.before])}
    new = {row.artifact_pk: row for row in after.stored.by_pk([f.after for f in found if f.after])}

    def places(opened: Opened, rows: Mapping[int, Any], pk: int | None) -> tuple[Provenance, ...]:
        row = rows.get(pk) if pk is not None else None
        if row is None:
            return ()
        return tuple(provenance_of(place, opened.snapshot.label) for place in row.places[:_PLACES])

    return [
        Change(
            change=one.what,
            kind=one.kind,
            key=one.key,
            title=one.title,
            compatibility=one.compatibility,
            reasons=one.reasons,
            fields=one.fields,
            before=places(before, old, one.before),
            after=places(after, new, one.after),
        )
        for one in found
    ]


def _shorten(item: Change, over: Callable[[Change], int]) -> Change | None:
    """The change with one place on each side, then with fewer reasons, until it fits."""
    item = item.model_copy(update={"before": item.before[:1], "after": item.after[:1], "fields": ()})
    if over(item) <= 0:
        return item
    for count in (10, 3, 1):
        shorter = item.model_copy(
            update={
                "reasons": tuple(reason[:120] for reason in item.reasons[:count]),
                "title": item.title[:80],
            }
        )
        if over(shorter) <= 0:
            return shorter
    return None
