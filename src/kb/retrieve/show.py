"""The use case `kb show`: the units of a key, of a line of a file, or of a span."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from kb.errors import NotFoundError, UsageError
from kb.model.served import Unit
from kb.retrieve.library import Library, Opened
from kb.retrieve.provenance import file_note
from kb.retrieve.targets import Matched, Target, find_target
from kb.store.parts import Parts

_MOST = 50


class Shown(BaseModel):
    """What there is about a target in one snapshot."""

    model_config = ConfigDict(frozen=True)

    repository: str
    sha: str
    notice: str | None
    """Says so where another commit answers than the one asked for."""
    target: str
    matched: Matched
    units: tuple[Unit, ...]
    omitted: int = 0


def show(parts: Parts, target: str, *, repo: str | None, sha: str | None, source: bool) -> Shown:
    """The units of `target` in the snapshot that the selection rules choose.

    A target is a logical key, the end of one (`Order.total`), a route, `file:line`, a file, or a span id
    (8 to 64 hex digits).

    Raises:
        UsageError: the target is blank.
        NotFoundError: nothing by that name; the hint has the nearest names.
    """
    if not target.strip():
        raise UsageError("a blank names nothing", hint="name a key, a file, file:line or a span id")
    with Library(parts).opened(repo, sha) as opened:
        found = find_target(opened, target)
        if not found.artifacts:
            raise _nothing_there(opened, found)
        # A passage repeats in bare words what the other units say in full.
        rows = sorted(opened.stored.by_pk(found.artifacts[:_MOST]), key=lambda row: row.kind == "passage")
        return Shown(
            repository=opened.selected.row.name,
            sha=opened.snapshot.label,
            notice=opened.selected.notice,
            target=target,
            matched=found.matched,
            units=opened.made(rows, source=source),
            omitted=max(len(found.artifacts) - _MOST, 0),
        )


def _nothing_there(opened: Opened, found: Target) -> NotFoundError:
    where = f"line {found.start} of {found.path}" if found.matched == "line" else found.path
    unread = file_note(opened, found.path)
    hint = unread or f"the file was read; no unit stands there. All of it: kb show {found.path}"
    return NotFoundError(f"nothing is known about {where}", hint=hint)
