"""The use case `kb diff`: what two snapshots know otherwise, and whether it breaks anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from kb.errors import UsageError
from kb.model.served import Provenance, Sha
from kb.retrieve.budget import Budget
from kb.retrieve.compatibility import Judgement, judge_standing
from kb.retrieve.cursors import Cursor, decode_cursor, question_digest
from kb.retrieve.differences import FieldChange, differences
from kb.retrieve.kinds import kinds_note
from kb.retrieve.library import Library, Opened
from kb.retrieve.pages import MOST_SHOWN, Paging
from kb.retrieve.standing import StandsIn, stands_in
from kb.retrieve.units import provenance_of
from kb.store.changes import Held, homes, only_in, relocated
from kb.store.units import ArtifactRow

What = Literal["added", "removed", "changed", "moved"]
_LEFT_OUT = ("passage",)
"""Kinds that a diff shows only when asked for: passages repeat what symbols say."""
_PLACES = 5
_DETAILS = 8


class Change(BaseModel):
    """An artifact that one of two snapshots knows otherwise than the other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    change: What
    kind: str
    key: str
    title: str
    compatibility: Annotated[
        Literal["breaking", "compatible"] | None,
        Field(
            description="For contracts and entities of what the repository offers; None for kinds that are "
            "not judged, and for what stands in tests or examples only: nobody relies on that."
        ),
    ]
    stands_in: Annotated[
        StandsIn | None, Field(description="Set where it is read from test or example files only.")
    ] = None
    reasons: Annotated[tuple[str, ...], Field(description="Why; the breaking ones first.")] = ()
    fields: Annotated[tuple[str, ...], Field(description="Entries of the body that differ.")] = ()
    details: Annotated[
        tuple[FieldChange, ...],
        Field(description="The same with what each was and is, as deep inside as it can be told."),
    ] = ()
    more_details: Annotated[int, Field(ge=0, description="Details that are not listed.")] = 0
    before: Annotated[tuple[Provenance, ...], Field(description="Where it stands at base.")] = ()
    after: Annotated[tuple[Provenance, ...], Field(description="Where it stands at head.")] = ()


class DiffAnswer(BaseModel):
    """What changed from one snapshot to another: breaking changes first, those of tests and examples last."""

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
    aside: Annotated[
        int, Field(description="Changes that stand in tests or examples only, on all pages together.")
    ]
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
    standing: StandsIn | None
    verdict: Judgement


class _Pair(NamedTuple):
    """What became of a key, before it is judged; an artifact that moved is the same on both sides."""

    what: What
    old: Held | None
    new: Held | None


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
        if cursor is None:
            before = Opened(connection, library.choose(connection, after.selected.row.name, base))
        else:
            before = Opened(connection, library.choose_again(connection, base_of(cursor)))
        key = (question, before.snapshot.snapshot_id)
        found: list[_Found] = after.kept(key, lambda: find_changes(before, after, kinds))
        return _answer(before, after, found, kinds, cursor.offset if cursor else 0, digest, paging)


def base_of(cursor: Cursor) -> int:
    """The snapshot that the first page compared with: another may be nearest to the base by now.

    Raises:
        UsageError: the cursor names none.
    """
    if not (cursor.order.isascii() and cursor.order.isdigit() and int(cursor.order) < 1 << 62):
        raise UsageError("this is no cursor", hint="ask again without a cursor")
    return int(cursor.order)


def find_changes(before: Opened, after: Opened, kinds: Sequence[str]) -> list[_Found]:
    """Every change: breaking ones first, those of tests and examples last, then by kind and key."""
    wanted = list(kinds) or None
    old = _kept(only_in(before.connection, before.snapshot, after.snapshot, wanted), kinds)
    new = _kept(only_in(before.connection, after.snapshot, before.snapshot, wanted), kinds)
    compared = (_compared(old.get(key), new.get(key)) for key in {**old, **new})
    found = [one for one in compared if one is not None]
    moved = relocated(before.connection, before.snapshot, after.snapshot, wanted)
    for row in after.stored.by_pk(moved):
        if row.kind in kinds or row.kind not in _LEFT_OUT:
            held = Held(row.artifact_pk, row.kind, row.logical_key, b"", row.body, row.title)
            found.append(_Pair("moved", held, held))
    return sorted(_judged(before, after, found), key=_rank)


def _rank(one: _Found) -> tuple[bool, bool, str, str, str]:
    breaks = one.verdict.compatibility == "breaking"
    return (not breaks, one.standing is not None, one.kind, one.key, one.what)


def _kept(held: Sequence[Held], kinds: Sequence[str]) -> dict[tuple[str, str], Held]:
    return {
        (one.kind, one.logical_key): one for one in held if one.kind in kinds or one.kind not in _LEFT_OUT
    }


def _compared(old: Held | None, new: Held | None) -> _Pair | None:
    """What became of a key; None where only its spans are others and it says the same."""
    if old is not None and new is not None and old.body_digest == new.body_digest:
        return None
    return _Pair("added" if old is None else "removed" if new is None else "changed", old, new)


def _judged(before: Opened, after: Opened, pairs: Sequence[_Pair]) -> list[_Found]:
    """The changes with where they stand, and with their verdicts."""
    was = homes(before.connection, before.snapshot, [pair.old.artifact_pk for pair in pairs if pair.old])
    now = homes(after.connection, after.snapshot, [pair.new.artifact_pk for pair in pairs if pair.new])

    def judged(pair: _Pair) -> _Found:
        what, old, new = pair
        shown = new or old
        assert shown is not None
        was_in = stands_in(was[old.artifact_pk]) if old else None
        is_in = stands_in(now[new.artifact_pk]) if new else None
        aside = (new is None or is_in) and (old is None or was_in)
        return _Found(
            what,
            shown.kind,
            shown.logical_key,
            shown.title,
            old.artifact_pk if old else None,
            new.artifact_pk if new else None,
            (is_in or was_in) if aside else None,
            judge_standing(
                shown.kind, old.body if old else None, new.body if new else None, was_in=was_in, is_in=is_in
            ),
        )

    return [judged(pair) for pair in pairs]


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(name for name in {*old, *new} if old.get(name) != new.get(name)))


def _answer(
    before: Opened,
    after: Opened,
    found: Sequence[_Found],
    kinds: Sequence[str],
    start: int,
    digest: str,
    paging: Paging | None,
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
        of = f" of kind {' or '.join(kinds)}" if kinds else ""
        notes.append(f"nothing there: both snapshots know the same{of}")
    notes += kinds_note(kinds, before, after)

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
            breaking=sum(one.verdict.compatibility == "breaking" for one in found),
            aside=sum(one.standing is not None for one in found),
            changes=tuple(items),
            total=len(found),
            omitted=len(found) - end,
            next_cursor=Cursor(
                after.snapshot.snapshot_id, digest, end, str(before.snapshot.snapshot_id)
            ).encoded()
            if more
            else None,
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

    def change(one: _Found) -> Change:
        was = old.get(one.before) if one.before is not None else None
        now = new.get(one.after) if one.after is not None else None
        details = differences(was.body, now.body) if was and now else ()
        return Change(
            change=one.what,
            kind=one.kind,
            key=one.key,
            title=one.title,
            compatibility=one.verdict.compatibility,
            stands_in=one.standing,
            reasons=one.verdict.reasons,
            fields=_differing(was.body, now.body) if was and now else (),
            details=details[:_DETAILS],
            more_details=max(0, len(details) - _DETAILS),
            before=_places(before, was, now),
            after=_places(after, now, was),
        )

    return [change(one) for one in found]


def _places(opened: Opened, row: ArtifactRow | None, other: ArtifactRow | None) -> tuple[Provenance, ...]:
    """Where an artifact stands; places that the other side has not come first: there it changed."""
    if row is None:
        return ()
    others = {(place.path, place.span_id) for place in other.places} if other else set()
    ranked = sorted(row.places, key=lambda place: (place.path, place.span_id) in others)
    return tuple(provenance_of(place, opened.snapshot.label) for place in ranked[:_PLACES])


def _shorten(item: Change, over: Callable[[Change], int]) -> Change | None:
    """The change with one place on each side, then with fewer details and reasons, until it fits."""
    item = item.model_copy(update={"before": item.before[:1], "after": item.after[:1]})
    every = len(item.details) + item.more_details
    for count in (10, 3, 1, 0):
        shorter = item.model_copy(
            update={
                "reasons": tuple(reason[:120] for reason in item.reasons[: max(count, 1)]),
                "title": item.title[:80],
                "fields": item.fields if count else (),
                "details": item.details[:count],
                "more_details": every - min(count, len(item.details)),
            }
        )
        if over(shorter) <= 0:
            return shorter
    return None
