"""What can be asked of search, and what comes back before it is served."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kb.store.search.reading import Document

Mode = Literal["hybrid", "dense", "lexical"]
Fusion = Literal["convex", "rrf"]


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to search; the defaults are what `kb search` does."""

    k: int = 10
    kinds: tuple[str, ...] = ()
    """Only these kinds; empty for all."""
    path: str | None = None
    """Only what stands in files under this folder or fitting this glob."""
    mode: Mode = "hybrid"
    fusion: Fusion = "convex"
    dense_share: float | None = None
    """Weight of the dense leg, 0..1; None for the calibrated one."""
    diversity: float | None = None
    """0..1: how much a hit loses for being like a better one (MMR); None for off."""
    per_file: int | None = None
    """At most so many hits of one file."""
    spread: int | None = None
    """So many hits of each file come first; further ones of it only where there is room."""
    twins: bool = False
    """Keep a definition that is found twice, as a symbol (or module) and by its source; else the better one."""
    expand: bool = False
    """Also what is one edge away from the best hits."""
    explain: bool = False
    """Fill in what each term gave."""


@dataclass(slots=True)
class Parts:
    """The parts of a score; None where a leg was not asked or knows nothing of the document."""

    lexical: float | None = None
    """BM25 with the snapshot's statistics."""
    dense: float | None = None
    """Cosine similarity."""
    lexical_scaled: float = 0.0
    """Between 0 and 1 among this query's candidates."""
    dense_scaled: float = 0.0
    dense_share: float = 0.0
    """score = ((1 - share) * lexical_scaled + share * dense_scaled + evidence) * prior + coherence."""
    evidence: float = 0.0
    """What it adds that the query names the definition or its file."""
    prior: float = 1.0
    """What the place of the file says: below 1 for tests and examples that were not asked for."""
    coherence: float = 0.0
    """What other good units of the same file add."""
    related: str | None = None
    """`relation of key` for a hit that graph expansion added."""
    terms: dict[str, float] = field(default_factory=dict)
    """What each term gave to `lexical`, where it was asked to explain."""


@dataclass(slots=True)
class Hit:
    """A document with its score."""

    document: Document
    score: float
    parts: Parts


@dataclass(slots=True)
class Ranking:
    """Hits, best first, and how they came about."""

    hits: list[Hit]
    mode: Mode
    """What was done, which is less than asked where there are no vectors."""
    matched: int
    """Documents that passed the filters."""
    exact: bool
    """Every posting of the query was read."""
    unknown_terms: tuple[str, ...] = ()
    coverage: float = 0.0
    """BM25 of the best hit over what a text with every word of the query could reach: how far the
    snapshot can answer at all (DESIGN 8)."""
    further: dict[str, int] = field(default_factory=dict)
    """Files of which units as good as these were put off, since others of it came first; how many, the most first."""
