"""The use case `verify_citation`: does a citation hold, and where does what it cites stand now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kb.errors import RepositoryError, UsageError
from kb.git.repository import Repository
from kb.lexicon import analyze
from kb.model.files import TreeFile
from kb.model.served import AnsweredFrom, Sha
from kb.model.spans import LocatedSpan
from kb.retrieve.freshness import readers
from kb.retrieve.library import Library, Opened
from kb.retrieve.lines import line_texts
from kb.retrieve.source import parse_lines
from kb.store.serving import spans_of_blob
from kb.structure.dialects import PARSER_VERSION, dialect_of
from kb.structure.reader import read_blob

Outcome = Literal["verified", "moved", "changed", "absent"]

_MOST_ELSEWHERE = 200
"""Files changed since the cited commit that are searched for what left its own file."""
_LONGEST = 4_000


class Anchor(BaseModel):
    """The narrowest span that covers the cited lines: what a citation is tied to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    span_id: str
    kind: str
    symbol: str
    start_line: int
    end_line: int


class Where(BaseModel):
    """Lines of a file at a commit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    start_line: int
    end_line: int
    sha: Sha


class Verdict(BaseModel):
    """Whether a citation holds at the commit it names, and what became of it at the other one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: Annotated[
        Outcome,
        Field(
            description="verified: stands there, unchanged; moved: the same, at `now`; changed: what stood "
            "there was edited, or does not say what was quoted; absent: no such lines, or gone."
        ),
    ]
    reason: str
    cited: Where
    now: Annotated[Where | None, Field(description="Where it stands at the commit compared with.")]
    anchor: Annotated[Anchor | None, Field(description="None where no span covers the lines.")]
    quote_found: Annotated[
        bool | None, Field(description="Whether the quote is in the cited lines; None without a quote.")
    ] = None
    claim_words_missing: Annotated[
        tuple[str, ...] | None,
        Field(description="Words of the claim that neither the lines nor the units on them have."),
    ] = None
    units: Annotated[
        tuple[str, ...], Field(description="Logical keys of the units that stand on the lines.")
    ] = ()
    answered_from: AnsweredFrom


@dataclass(frozen=True)
class Citation:
    """What is to be verified."""

    file: str
    lines: str
    sha: str
    quote: str | None = None
    claim: str | None = None
    against: str = "HEAD"


def verify_citation(library: Library, citation: Citation, *, repo: str | None) -> Verdict:
    """The verdict on a citation, read from git at both commits; spans decide, not line numbers.

    Raises:
        UsageError: the lines are none, or both a quote and a claim are given.
        NotFoundError: the commit does not exist, or the repository is not indexed.
        RepositoryError: the repository cannot be read.
    """
    if citation.quote is not None and citation.claim is not None:
        raise UsageError("give a quote or a claim, not both")
    start, end = parse_lines(citation.lines)
    with library.opened(repo, None) as opened:
        repository = opened.repository
        if repository is None:
            raise RepositoryError(
                f"{opened.selected.row.location} cannot be read, so nothing can be verified"
            )
        return _Check(opened, repository, citation, start, end).verdict()


class _Check:
    def __init__(
        self, opened: Opened, repository: Repository, citation: Citation, start: int, end: int
    ) -> None:
        self.opened = opened
        self.repository = repository
        self.citation = citation
        self.path = citation.file.removeprefix("./")
        self.old = repository.resolve(citation.sha).sha
        self.new = repository.resolve(citation.against).sha
        self.start, self.end = start, end
        self.anchor: LocatedSpan | None = None
        self.quote_found: bool | None = None
        self.missing: tuple[str, ...] | None = None
        self.keys: tuple[str, ...] = ()

    def verdict(self) -> Verdict:
        file = self.repository.file_at(self.old, self.path)
        if file is None:
            return self._made("absent", f"there is no file {self.path[:200]} at {self.old[:12]}")
        lines = self._lines(file)
        if self.end > len(lines):
            return self._made("absent", f"the file has {len(lines)} lines at {self.old[:12]}")
        cited = lines[self.start - 1 : self.end]
        spans = self._spans(file)
        self.anchor = _narrowest(spans, self.start, self.end)
        self._stand_on(cited)
        if self.quote_found is False:
            return self._misquoted(lines)
        return self._at_other(file, cited)

    def _stand_on(self, cited: Sequence[str]) -> None:
        """The units on the lines, and what of quote and claim they bear."""
        text = "\n".join(cited)
        if self.citation.quote is not None:
            self.quote_found = _folded(self.citation.quote[:_LONGEST]) in _folded(text)
        pks = list(dict.fromkeys(self.opened.stored.at_line(self.path, self.start)))
        here = [
            row
            for row in self.opened.stored.by_pk(pks)
            if any(place.path == self.path and place.start_line <= self.start for place in row.places)
        ]
        self.keys = tuple(row.logical_key for row in here[:20])
        if self.citation.claim is not None:
            said = set(analyze([self.citation.claim[:_LONGEST]]).terms)
            known = set(analyze([text, *(f"{row.title} {row.text}" for row in here)]).terms)
            self.missing = tuple(sorted(str(word) for word in said - known)[:50])

    def _misquoted(self, lines: Sequence[str]) -> Verdict:
        """The quote is not in the cited lines: elsewhere in the file, or nowhere in it."""
        found = _find_quote(lines, self.citation.quote or "")
        if found is None:
            return self._made("changed", "the file does not have the quote at that commit")
        return self._made(
            "moved", "the quote stands elsewhere in the file at that commit", (self.path, *found), self.old
        )

    def _at_other(self, file: TreeFile, cited: Sequence[str]) -> Verdict:
        """What became of the cited lines at the commit compared with."""
        there = self.repository.file_at(self.new, self.path)
        if there is not None and there.oid == file.oid:
            return self._made("verified", "unchanged, in the same place", (self.path, self.start, self.end))
        if self.anchor is None:
            return self._by_text(there, cited)
        if there is not None:
            spans = self._spans(there)
            same = [one for one in spans if one.span.span_id == self.anchor.span.span_id]
            if same:
                return self._found(self.path, same)
            if self.anchor.span.kind == "module" and len(cited) < len(self._lines(file)):
                return self._by_text(there, cited)
            named = [
                one
                for one in spans
                if (one.span.kind, one.span.symbol_path)
                == (self.anchor.span.kind, self.anchor.span.symbol_path)
            ]
            if named:
                place = (self.path, named[0].start_line, named[0].end_line)
                return self._made("changed", "what stood there was edited", place)
        return self._elsewhere(file)

    def _found(self, path: str, same: Sequence[LocatedSpan]) -> Verdict:
        assert self.anchor is not None
        anchor = self.anchor
        nearest = min(same, key=lambda one: (one.n != anchor.n, abs(one.start_line - anchor.start_line)))
        # Comments may grow or shrink inside a span: its length says whether the lines keep their offsets.
        if nearest.end_line - nearest.start_line == anchor.end_line - anchor.start_line:
            shift = nearest.start_line - anchor.start_line
            place = (path, self.start + shift, self.end + shift)
        else:
            place = (path, nearest.start_line, nearest.end_line)
        if place == (self.path, self.start, self.end):
            return self._made("verified", "the same span stands in the same place", place)
        return self._made("moved", "the same span stands elsewhere", place)

    def _elsewhere(self, file: TreeFile) -> Verdict:
        assert self.anchor is not None
        added = [one.new for one in self.repository.diff(self.old, self.new) if one.new is not None]
        added.sort(key=lambda new: new.oid != file.oid)
        for new in added[:_MOST_ELSEWHERE]:
            same = [one for one in self._spans(new) if one.span.span_id == self.anchor.span.span_id]
            if same:
                return self._found(new.path, same)
        return self._made("absent", f"what stood there is gone at {self.new[:12]}")

    def _by_text(self, there: TreeFile | None, cited: Sequence[str]) -> Verdict:
        """Lines that no span covers, or the whole file's alone, are compared as text."""
        if there is None:
            return self._made("absent", f"the file is gone at {self.new[:12]}")
        lines = self._lines(there)
        if lines[self.start - 1 : self.end] == list(cited):
            return self._made("verified", "the same text stands there", (self.path, self.start, self.end))
        for at in range(len(lines) - len(cited) + 1):
            if lines[at : at + len(cited)] == list(cited):
                return self._made(
                    "moved", "the same text stands elsewhere", (self.path, at + 1, at + len(cited))
                )
        return self._made("changed", "the lines were edited, and no span smaller than the file covers them")

    def _lines(self, file: TreeFile) -> list[str]:
        return line_texts(self.repository.read(file.oid))

    def _spans(self, file: TreeFile) -> tuple[LocatedSpan, ...]:
        dialect = dialect_of(file.path)
        if dialect is None:
            return ()
        stored = spans_of_blob(self.opened.connection, file.oid, dialect, PARSER_VERSION)
        if stored:
            return stored
        return read_blob(file.oid, self.repository.read(file.oid), dialect, readers()).occurrences

    def _made(
        self, outcome: Outcome, reason: str, now: tuple[str, int, int] | None = None, sha: str | None = None
    ) -> Verdict:
        anchor = self.anchor
        return Verdict(
            outcome=outcome,
            reason=reason,
            cited=Where(file=self.path, start_line=self.start, end_line=self.end, sha=self.old),
            now=None
            if now is None
            else Where(file=now[0], start_line=now[1], end_line=now[2], sha=sha or self.new),
            anchor=None
            if anchor is None
            else Anchor(
                span_id=anchor.span.span_id.hex(),
                kind=anchor.span.kind,
                symbol=anchor.span.symbol_path,
                start_line=anchor.start_line,
                end_line=anchor.end_line,
            ),
            quote_found=self.quote_found,
            claim_words_missing=self.missing,
            units=self.keys,
            answered_from=self.opened.source(),
        )


def _narrowest(spans: Sequence[LocatedSpan], start: int, end: int) -> LocatedSpan | None:
    covering = [one for one in spans if one.start_line <= start and one.end_line >= end]
    return min(
        covering, key=lambda one: (one.end_line - one.start_line, one.end_byte - one.start_byte), default=None
    )


def _folded(text: str) -> str:
    return " ".join(text.split())


def _find_quote(lines: Sequence[str], quote: str) -> tuple[int, int] | None:
    """First and last line of the quote in the file, whitespace folded."""
    words = quote[:_LONGEST].split()
    if not words:
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), "\n".join(lines))
    if found is None:
        return None
    text = found.string
    return text.count("\n", 0, found.start()) + 1, text.count("\n", 0, found.end()) + 1
