"""Differences and histories as lines for a person, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kb.cli.render.words import counted, line_range, short_sha
from kb.cli.terminal import dim, one_line, strong, warning

if TYPE_CHECKING:
    from kb.model.served import Provenance
    from kb.retrieve.diff import Change, DiffAnswer
    from kb.retrieve.history import HistoryAnswer

_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": ">"}
_MOST_IN_MARKDOWN = 200
_HARMLESS = str.maketrans(
    {**{mark: f"\\{mark}" for mark in "\\`*_[]|#"}, **{mark: f"&#{ord(mark)};" for mark in "<>@"}}
)
"""Markdown's marks, escaped; in one pass, so that no escape is escaped again."""


def diff_lines(found: DiffAnswer) -> Iterator[str]:
    """The changes by kind, each with its verdict, its reasons and one place."""
    yield strong(f"{one_line(found.repository)}: {short_sha(found.base)} -> {short_sha(found.head)}")
    for note in found.notes:
        yield warning(one_line(note))
    if found.counts:
        yield ", ".join(_counted(kind, counts) for kind, counts in sorted(found.counts.items()))
    if found.breaking:
        yield warning(f"{found.breaking} breaking")
    if found.aside:
        yield dim(f"{found.aside} in tests and examples, not judged")
    for change in found.changes:
        said = change.compatibility or (change.stands_in and f"in {change.stands_in}")
        verdict = f" [{said}]" if said else ""
        line = f"{_SIGNS[change.change]} {one_line(change.key)}{verdict}"
        yield warning(line) if change.compatibility == "breaking" else line
        for reason in change.reasons:
            yield f"    {one_line(reason)}"
        for detail in _details(change):
            yield f"    {one_line(detail)}"
        yield dim(f"    {_where(change)}")


def _details(change: Change) -> Iterator[str]:
    """Each entry that differs, from what to what; where reasons say it already, nothing."""
    if change.reasons:
        return
    for detail in change.details:
        if detail.before is None:
            yield f"{detail.field}: + {detail.after}"
        elif detail.after is None:
            yield f"{detail.field}: - {detail.before}"
        else:
            yield f"{detail.field}: {detail.before} -> {detail.after}"
    if change.more_details:
        yield f"and {change.more_details} more"


def _counted(kind: str, counts: dict[str, int]) -> str:
    return f"{kind}: " + " ".join(f"{_SIGNS[what]}{number}" for what, number in sorted(counts.items()))


def _where(change: Change) -> str:
    if change.change == "moved":
        return f"{_places(change.before)} -> {_places(change.after)}"
    return _places(change.after or change.before)


def _places(places: Sequence[Provenance]) -> str:
    return ", ".join(
        f"{line_range(place.file, place.start_line, place.end_line)}@{short_sha(place.sha)}"
        for place in places[:1]
    )


def diff_markdown(found: DiffAnswer) -> Iterator[str]:
    """A comment for a pull request: breaking changes open, the rest folded."""
    yield f"### Knowledge diff: `{short_sha(found.base)}` → `{short_sha(found.head)}`"
    yield ""
    for note in found.notes:
        yield f"> {_plain(note)}"
        yield ""
    if not found.changes:
        return
    yield "| kind | added | removed | changed | moved |"
    yield "|---|---|---|---|---|"
    for kind, counts in sorted(found.counts.items()):
        numbers = " | ".join(str(counts.get(what, 0)) for what in ("added", "removed", "changed", "moved"))
        yield f"| {_plain(kind)} | {numbers} |"
    yield ""
    breaking = [one for one in found.changes if one.compatibility == "breaking"]
    rest = [one for one in found.changes if one.compatibility != "breaking" and not one.stands_in]
    aside = [one for one in found.changes if one.stands_in]
    if breaking:
        yield f"**{found.breaking} breaking**"
        yield ""
        yield from _items(breaking)
        yield ""
    yield from _folded(counted(len(rest), "other change"), rest)
    yield from _folded(f"{counted(len(aside), 'change')} in tests and examples, not judged", aside)


def _folded(summary: str, changes: Sequence[Change]) -> Iterator[str]:
    if not changes:
        return
    yield f"<details><summary>{summary}</summary>"
    yield ""
    yield from _items(changes)
    yield ""
    yield "</details>"
    yield ""


def _items(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes[:_MOST_IN_MARKDOWN]:
        said = [*change.reasons, *_details(change)]
        why = f": {'; '.join(_plain(words) for words in said)}" if said else ""
        yield f"- {change.change} {_code(change.key)}{why} ({_code(_where(change))})"
    if len(changes) > _MOST_IN_MARKDOWN:
        yield f"- and {len(changes) - _MOST_IN_MARKDOWN} more"


def _code(text: str) -> str:
    """Text between backticks that it cannot close."""
    return "`" + one_line(text).replace("`", "'") + "`"


def _plain(text: str) -> str:
    """Text that neither formats, nor mentions anybody, nor opens a tag: it comes out of a repository."""
    return one_line(text).translate(_HARMLESS)


def history_lines(found: HistoryAnswer) -> Iterable[str]:
    """The moments of a key, newest first."""
    moments, commits = counted(len(found.moments), "moment"), counted(found.commits, "indexed commit")
    yield strong(f"{one_line(found.key)}: {moments} in {commits}")
    for note in found.notes:
        yield warning(one_line(note))
    for moment in found.moments:
        said = moment.compatibility or (moment.stands_in and f"in {moment.stands_in}")
        verdict = f" [{said}]" if said else ""
        when = moment.committed_at.date().isoformat()
        yield f"{_SIGNS[moment.event]} {short_sha(moment.sha)} {when} {one_line(moment.subject)}{verdict}"
        for reason in moment.reasons:
            yield f"    {one_line(reason)}"
        if moment.provenance:
            yield dim(f"    {_places(moment.provenance)}")
