"""Whether what a unit stands on is still so at the repository's HEAD."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

from kb.errors import KbError
from kb.extract.registry import load_extractors
from kb.git.repository import Repository
from kb.model.commits import FileChange
from kb.model.served import Freshness
from kb.model.spans import LocatedSpan
from kb.store.units import Place
from kb.structure.dialects import dialect_of
from kb.structure.reader import FactReader, read_blob

Status = Literal["current", "moved", "changed", "gone", "unknown"]

_WORST: tuple[Status, ...] = ("current", "moved", "changed", "gone", "unknown")
_KEPT = 256
_MOST_ELSEWHERE = 64
"""Files changed since the snapshot that are searched for a span that left its own file."""

_CLASS = "class_header"
_FIELDS = frozenset({"assignment"})
_MEMBERS = frozenset({"assignment", "function_header", _CLASS})
"""Kinds of spans that make a class more than it was: to what lists its members, and to whatever else stands on it."""


class _Spans(NamedTuple):
    lines: dict[bytes, list[tuple[int, int]]]
    """span id -> its places."""
    symbols: set[tuple[str, str]]
    """(span kind, symbol path) that the file has."""


class HeadReader:
    """Compares places of one snapshot with HEAD; HEAD's blobs are parsed in memory, once each.

    Where the repository cannot be reached every answer is `unknown`.
    """

    def __init__(self, repository: Repository | None, snapshot_sha: str, snapshot_tree: str) -> None:
        self._repository = repository
        self._label = snapshot_sha
        self._tree = snapshot_tree
        self._head: str | None = None
        self._behind: int | None = None
        self._parsed: OrderedDict[str, _Spans] = OrderedDict()
        self._changes: list[FileChange] | None = None
        if repository is not None:
            try:
                self._head = repository.head().sha
                if not snapshot_sha.startswith("worktree:"):
                    self._behind = repository.distance(snapshot_sha, self._head)
            except KbError:
                # An unborn HEAD, or a commit that is no longer there: that much is unknown.
                self._behind = None

    @property
    def head(self) -> str | None:
        """HEAD's commit; None where the repository cannot be reached."""
        return self._head

    @property
    def behind(self) -> int | None:
        """Commits from the snapshot to HEAD; None where that is not known."""
        return self._behind

    def freshness(self, places: Sequence[Place]) -> Freshness:
        """The worst status of the places, with the distance of the snapshot to HEAD."""
        return Freshness(
            snapshot_sha=self._label,
            head_sha=self._head,
            status=self._status(places),
            commits_behind=self._behind,
        )

    def _status(self, places: Sequence[Place]) -> Status:
        if self._repository is None or self._head is None:
            return "unknown"
        if self._head == self._label:
            return "current"
        try:
            status = max((self._place(place) for place in places), key=_WORST.index)
            if status in ("current", "moved") and any(map(self._has_grown, places)):
                return "changed"
            return status
        except KbError:
            return "unknown"

    def _place(self, place: Place) -> Status:
        repository, head = self._reachable()
        file = repository.file_at(head, place.path)
        if file is not None and file.oid == place.oid:
            return "current"
        if file is not None:
            here = self._spans(file.oid, place.path)
            if here is None:
                return "unknown"
            if place.span_id in here.lines:
                same = (place.start_line, place.end_line) in here.lines[place.span_id]
                return "current" if same else "moved"
            if (place.span_kind, place.symbol_path) in here.symbols:
                return "changed"
        return "moved" if self._stands_elsewhere(place) else "gone"

    def _has_grown(self, place: Place) -> bool:
        """Whether the place is of a class that has members at HEAD which it had not: nothing that it stands on
        tells, since each member is a span of its own."""
        if place.span_kind != _CLASS:
            return False
        repository, head = self._reachable()
        file = repository.file_at(head, place.path)
        if file is None or file.oid == place.oid:
            return False
        now, then = self._spans(file.oid, place.path), self._spans(place.oid, place.path)
        if now is None or then is None:
            return False
        kinds = _MEMBERS if place.role == "signature" else _FIELDS
        inside = place.symbol_path + "."
        return any(
            kind in kinds and path.startswith(inside) and "." not in path[len(inside) :]
            for kind, path in now.symbols - then.symbols
        )

    def _reachable(self) -> tuple[Repository, str]:
        assert self._repository is not None
        assert self._head is not None
        return self._repository, self._head

    def _stands_elsewhere(self, place: Place) -> bool:
        """Whether a file that was added or changed since the snapshot holds the very span."""
        if self._changes is None:
            repository, head = self._reachable()
            self._changes = repository.diff(self._tree, head)
        added = [change.new for change in self._changes if change.new is not None]
        # A renamed file is an added one: those come first, and they are few.
        added.sort(key=lambda new: new.oid != place.oid)
        for new in added[:_MOST_ELSEWHERE]:
            if new.oid == place.oid:
                return True
            spans = self._spans(new.oid, new.path)
            if spans is not None and place.span_id in spans.lines:
                return True
        return False

    def _spans(self, oid: str, path: str) -> _Spans | None:
        if oid in self._parsed:
            self._parsed.move_to_end(oid)
            return self._parsed[oid]
        dialect = dialect_of(path)
        if dialect is None or self._repository is None:
            return None
        blob = read_blob(oid, self._repository.read(oid), dialect, readers())
        spans = _collect(blob.occurrences)
        self._parsed[oid] = spans
        if len(self._parsed) > _KEPT:
            self._parsed.popitem(last=False)
        return spans


@cache
def readers() -> tuple[FactReader, ...]:
    """Who reads facts of a blob: what they cite are spans too, and artifacts stand on those."""
    return load_extractors()


def _collect(occurrences: Sequence[LocatedSpan]) -> _Spans:
    lines: dict[bytes, list[tuple[int, int]]] = {}
    for place in occurrences:
        lines.setdefault(place.span.span_id, []).append((place.start_line, place.end_line))
    return _Spans(lines, {(place.span.kind, place.span.symbol_path) for place in occurrences})
