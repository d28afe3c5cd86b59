"""The use case `verify_citation`: does a citation hold, and where does what it cites stand now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kb.errors import NotFoundError, RepositoryError, UsageError
from kb.git.repository import Repository
from kb.lexicon import analyze
from kb.model.files import TreeFile
from kb.model.served import AnsweredFrom, Sha
from kb.model.spans import LocatedSpan
from kb.retrieve.budget import Budget, ShortenedAnswer
from kb.retrieve.freshness import readers
from kb.retrieve.library import Library, Opened
from kb.retrieve.lines import line_texts
from kb.retrieve.quoting import LONGEST, find_quote, followed, has_quote, lines_inside, starts_of
from kb.retrieve.source import parse_lines
from kb.store.serving import spans_of_blob
from kb.store.units import ArtifactRow
from kb.structure.dialects import PARSER_VERSION, dialect_of
from kb.structure.reader import read_blob

Outcome = Literal["verified", "moved", "changed", "absent"]

_MOST_ELSEWHERE = 200
"""Files changed since the cited commit that are searched for what left its own file."""
_MOST_UNITS = 200
"""Units on the lines whose words a claim is held against."""
_MOST_KEYS = 20
_MOST_WORDS = 50


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


class Verdict(ShortenedAnswer):
    """Whether a citation holds at the commit it names, and what became of it at the other one."""

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
    more_words_missing: Annotated[int, Field(ge=0, description="Such words more than are shown.")] = 0
    units: Annotated[
        tuple[str, ...], Field(description="Logical keys of the units that stand on the lines.")
    ] = ()
    more_units: Annotated[int, Field(ge=0, description="Units on the lines more than are shown.")] = 0
    note: Annotated[str | None, Field(description="Why `units` are not told, and what to run.")] = None
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


_CUT = (
    "units",
    "claim_words_missing",
    "anchor.symbol",
    "note",
    "cited.file",
    "now.file",
    "answered_from.notice",
    "answered_from.run",
)
"""What may be cut of a verdict, the least telling first."""


def verify_citation(
    library: Library, citation: Citation, *, repo: str | None, budget: Budget | None = None
) -> Verdict:
    """The verdict on a citation, read from git at both commits; spans decide, not line numbers.

    Raises:
        UsageError: the lines are none, the quote is blank, both a quote and a claim are given, or the verdict alone
            does not fit the budget.
        NotFoundError: the commit does not exist, or the repository is not indexed.
        RepositoryError: the repository cannot be read.
    """
    if citation.quote is not None and citation.claim is not None:
        raise UsageError("give a quote or a claim, not both")
    if citation.quote is not None and not citation.quote.strip():
        raise UsageError("a blank quote stands everywhere", hint="quote words, or leave the quote out")
    start, end = parse_lines(citation.lines)
    with library.opened(repo, None) as opened:
        repository = opened.repository
        if repository is None:
            raise RepositoryError(
                f"{opened.selected.row.location} cannot be read, so nothing can be verified"
            )
        check = _Check(library, opened, repository, citation, start, end)
        verdict = check.told(check.verdict())
        return verdict if budget is None else budget.trimmed(verdict, _CUT, check.told)


class _Check:
    def __init__(
        self,
        library: Library,
        opened: Opened,
        repository: Repository,
        citation: Citation,
        start: int,
        end: int,
    ) -> None:
        self.library = library
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
        self.missing_count = self.unit_count = 0
        """How many there are of both, shown or not."""
        self.note: str | None = None
        self.then: list[str] = []
        """The lines of the file at the cited commit."""

    def verdict(self) -> Verdict:
        file = self.repository.file_at(self.old, self.path)
        if file is None:
            return self._made("absent", f"there is no file {self.path[:200]} at {self.old[:12]}")
        self.then = lines = self._lines(file)
        if self.end > len(lines):
            return self._made("absent", f"the file has {len(lines)} lines at {self.old[:12]}")
        cited = lines[self.start - 1 : self.end]
        spans = self._spans(file)
        self.anchor = _narrowest(spans, self.start, self.end)
        self._stand_on(file, cited)
        if self.quote_found is False:
            return self._misquoted(lines)
        return self._at_other(file, cited)

    def _stand_on(self, file: TreeFile, cited: Sequence[str]) -> None:
        """The units on the lines, and what of quote and claim they bear."""
        text = "\n".join(cited)
        if self.citation.quote is not None:
            self.quote_found = has_quote(cited, self.citation.quote)
        here: list[ArtifactRow] = []
        holder = self._snapshot_with(file)
        if holder is not None:
            pks = list(dict.fromkeys(holder.stored.at_line(self.path, self.start, self.end)))
            here = holder.stored.by_pk(pks[:_MOST_UNITS])
            self.unit_count = len(pks)
        self.keys = tuple(row.logical_key for row in here[:_MOST_KEYS])
        if self.citation.claim is not None:
            said = set(analyze([self.citation.claim[:LONGEST]]).terms)
            known = set(analyze([text, *(f"{row.title} {row.text}" for row in here)]).terms)
            missing = sorted(str(word) for word in said - known)
            self.missing, self.missing_count = tuple(missing[:_MOST_WORDS]), len(missing)

    def told(self, verdict: Verdict) -> Verdict:
        """The verdict with how many units and words it does not show."""
        return verdict.model_copy(
            update={
                "more_units": self.unit_count - len(verdict.units),
                "more_words_missing": self.missing_count - len(verdict.claim_words_missing or ()),
            }
        )

    def _snapshot_with(self, file: TreeFile) -> Opened | None:
        """A snapshot whose file is the cited one, byte for byte: in any other one the lines are others."""
        for sha in (self.old, None):
            try:
                chosen = self.library.choose(self.opened.connection, self.opened.selected.row.name, sha)
            except NotFoundError:
                continue
            opened = Opened(self.opened.connection, chosen)
            stored = opened.stored.file(self.path)
            if stored is not None and stored[0] == file.oid:
                return opened
        where = self.opened.selected.row.location
        self.note = f"the units on the lines are not known; run: kb index {where} --sha {self.old[:12]}"
        return None

    def _misquoted(self, lines: Sequence[str]) -> Verdict:
        """The quote is not in the cited lines: elsewhere in the file, or nowhere in it."""
        found = find_quote(lines, self.citation.quote or "")
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
        if there is None:
            renamed = next((one.path for one in self._changed_files() if one.oid == file.oid), None)
            if renamed is not None:
                return self._made("moved", "the whole file stands elsewhere", (renamed, self.start, self.end))
        if self.anchor is None:
            return self._by_text(there, cited)
        if there is not None:
            spans = self._spans(there)
            same = [one for one in spans if one.span.span_id == self.anchor.span.span_id]
            if same:
                return self._found(there, same, cited)
            if self.anchor.span.kind == "module" and len(cited) < len(self._lines(file)):
                return self._by_text(there, cited)
            named = [
                one
                for one in spans
                if (one.span.kind, one.span.symbol_path)
                == (self.anchor.span.kind, self.anchor.span.symbol_path)
            ]
            if named:
                # Of several that are called so, the edited one is not among those that stood there before.
                before = {one.span.span_id for one in self._spans(file)}
                edited = [one for one in named if one.span.span_id not in before] or named
                nearest = min(edited, key=self._distance)
                place = (self.path, nearest.start_line, nearest.end_line)
                return self._made("changed", "what stood there was edited", place)
        return self._elsewhere(file, cited)

    def _distance(self, one: LocatedSpan) -> int:
        assert self.anchor is not None
        return abs(one.start_line - self.anchor.start_line)

    def _found(self, there: TreeFile, same: Sequence[LocatedSpan], cited: Sequence[str]) -> Verdict:
        """The same code stands in a file: comments and layout, which are not part of its identity, may be others."""
        assert self.anchor is not None
        anchor = self.anchor
        nearest = min(same, key=lambda one: (one.n != anchor.n, self._distance(one)))
        lines = self._lines(there)
        found = followed(
            lines_inside(self.then, anchor),
            self.start - anchor.start_line,
            cited,
            lines_inside(lines, nearest),
        )
        if found is None:
            place = (there.path, nearest.start_line, nearest.end_line)
            if all(line.lstrip().startswith("#") for line in cited if line.strip()):
                return self._made("changed", "the same code stands there, and other comments", place)
            otherwise = ", with other comments or laid out otherwise"
        else:
            first = nearest.start_line + found
            place = (there.path, first, first + len(cited) - 1)
            otherwise = ""
        if self.citation.quote is not None and not has_quote(
            lines[place[1] - 1 : place[2]], self.citation.quote
        ):
            return self._made("changed", "the same code stands there, and not as it is quoted", place)
        if place == (self.path, self.start, self.end):
            return self._made("verified", f"the same span stands in the same place{otherwise}", place)
        return self._made("moved", f"the same span stands elsewhere{otherwise}", place)

    def _changed_files(self) -> list[TreeFile]:
        """The files that are other or new at the commit compared with."""
        return [one.new for one in self.repository.diff(self.old, self.new) if one.new is not None]

    def _elsewhere(self, file: TreeFile, cited: Sequence[str]) -> Verdict:
        assert self.anchor is not None
        added = sorted(self._changed_files(), key=lambda new: new.oid != file.oid)
        for new in added[:_MOST_ELSEWHERE]:
            same = [one for one in self._spans(new) if one.span.span_id == self.anchor.span.span_id]
            if same:
                return self._found(new, same, cited)
        return self._made("absent", f"what stood there is gone at {self.new[:12]}")

    def _by_text(self, there: TreeFile | None, cited: Sequence[str]) -> Verdict:
        """Lines that no span covers, or the whole file's alone, are compared as text."""
        if there is None:
            return self._made("absent", f"the file is gone at {self.new[:12]}")
        lines = self._lines(there)
        if lines[self.start - 1 : self.end] == list(cited):
            return self._made("verified", "the same text stands there", (self.path, self.start, self.end))
        at = min(starts_of(lines, cited), key=lambda at: abs(at + 1 - self.start), default=None)
        if at is not None:
            return self._made("moved", "the same text stands elsewhere", (self.path, at + 1, at + len(cited)))
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
            note=self.note,
            answered_from=self.opened.source(),
        )


def _narrowest(spans: Sequence[LocatedSpan], start: int, end: int) -> LocatedSpan | None:
    covering = [one for one in spans if one.start_line <= start and one.end_line >= end]
    return min(
        covering, key=lambda one: (one.end_line - one.start_line, one.end_byte - one.start_byte), default=None
    )
