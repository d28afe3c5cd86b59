"""The use case `kb show`: the units of a key, of a line of a file, or of a span."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from kb.errors import NotFoundError, UsageError
from kb.model.served import Unit
from kb.retrieve.select import Selected, select_snapshot
from kb.retrieve.units import UnitMaker
from kb.store.parts import Parts
from kb.store.units import SnapshotUnits

_LINE = re.compile(r"(?P<path>.+):(?P<line>[1-9][0-9]*)")
_SPAN = re.compile(r"[0-9a-f]{8,64}")
_NEAR = 5
_MOST = 50


class Shown(BaseModel):
    """What there is about a target in one snapshot."""

    model_config = ConfigDict(frozen=True)

    repository: str
    sha: str
    notice: str | None
    """Says so where another commit answers than the one asked for."""
    target: str
    matched: Literal["key", "name", "line", "span", "file"]
    units: tuple[Unit, ...]
    omitted: int = 0


def show(parts: Parts, target: str, *, repo: str | None, sha: str | None, source: bool) -> Shown:
    """The units of `target` in the snapshot that the selection rules choose.

    A target is a logical key, the end of one (`Order.total`), `file:line`, a file, or a span id (8 to 64
    hex digits).

    Raises:
        UsageError: the target is blank.
        NotFoundError: nothing by that name; the hint has the nearest names.
    """
    if not target.strip():
        raise UsageError("a blank names nothing", hint="name a key, a file, file:line or a span id")
    with parts.database.reader() as connection:
        selected = select_snapshot(connection, repo, sha, Path.cwd(), parts.home)
        stored = SnapshotUnits(connection, selected.snapshot.lineage_id, selected.snapshot.ordinal)
        matched, pks = _find(stored, target, selected)
        # A passage repeats in bare words what the other units say in full.
        rows = sorted(stored.by_pk(pks[:_MOST]), key=lambda row: row.kind == "passage")
    return Shown(
        repository=selected.row.name,
        sha=selected.snapshot.label,
        notice=selected.notice,
        target=target,
        matched=matched,
        units=UnitMaker(selected).units(rows, source=source),
        omitted=max(len(pks) - _MOST, 0),
    )


def _find(
    stored: SnapshotUnits, target: str, selected: Selected
) -> tuple[Literal["key", "name", "line", "span", "file"], list[int]]:
    exact = stored.with_key([target])
    if exact:
        return "key", exact
    line = _LINE.fullmatch(target)
    if line is not None and stored.file(line["path"]) is not None:
        return "line", _at_line(stored, line["path"], int(line["line"]))
    if _SPAN.fullmatch(target):
        on_span = stored.on_span(target)
        if on_span:
            return "span", on_span
    if stored.file(target) is not None:
        return "file", _in_file(stored, target)
    named = stored.keys_like(target, _MOST + 1)
    if named:
        return "name", [pk for _, pk in named]
    raise _nothing(stored, target, selected, line["path"] if line is not None else None)


def _at_line(stored: SnapshotUnits, path: str, line: int) -> list[int]:
    found = stored.at_line(path, line)
    if not found:
        raise NotFoundError(f"nothing is known about line {line} of {path}", hint=_file_hint(stored, path))
    return found


def _in_file(stored: SnapshotUnits, path: str) -> list[int]:
    found = stored.in_file(path)
    if not found:
        raise NotFoundError(f"nothing is known about {path}", hint=_file_hint(stored, path))
    return found


def _file_hint(stored: SnapshotUnits, path: str) -> str:
    file = stored.file(path)
    assert file is not None
    _, status, reason = file
    if status == "parsed":
        return f"the file was read; no unit stands there. All of it: kb show {path}"
    words = {
        "gap": "could not be read",
        "excluded": "is excluded",
        "no_language": "is in no language kb reads",
    }
    return f"the file {words[status]}" + (f" ({reason})" if reason else "")


def _nothing(stored: SnapshotUnits, target: str, selected: Selected, path: str | None) -> NotFoundError:
    word = re.split(r"[.:/ ]", (path or target).rstrip(".:/"))[-1]
    near = [*stored.keys_holding(word, 50), *stored.paths_like(word, 20)] if word else []
    near = difflib.get_close_matches(target, near, n=_NEAR, cutoff=0.0)
    hint = f"near it: {', '.join(near)}" if near else "search for it: kb search"
    return NotFoundError(
        f"nothing is called {target!r} in {selected.row.name} at {selected.snapshot.label[:12]}",
        hint=hint,
        near=near,
    )
