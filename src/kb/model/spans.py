"""Spans and what reading one blob yields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """A syntactic or textual unit with a content-addressed, location-free identity."""

    span_id: bytes
    """sha256, 32 bytes: `kb.identity.span_id` of the fields below."""
    language: str
    kind: str
    symbol_path: str
    """Qualified name inside the file in the language's convention (`outer.<locals>.inner`)."""
    fingerprint: bytes
    """sha256 of the normalised syntax tree, 32 bytes."""


class LocatedSpan(NamedTuple):
    """A span at its n-th place inside one blob, counted from 0 by (start, -end)."""

    span: Span
    n: int
    start_byte: int
    end_byte: int
    start_line: int
    """1-based."""
    end_line: int
    """1-based, inclusive."""


class SpanKey(NamedTuple):
    """Which occurrence inside a blob: enough to find its lines by join."""

    span_id: bytes
    n: int


class BlobGap(NamedTuple):
    """A part of a blob (lines, 1-based inclusive) or all of it (no lines) that could not be read."""

    reason: str
    """A stable word: `syntax_error`, `not_utf8`, `too_large`, `nul_bytes`, `too_deep`..."""
    detail: str = ""
    start_line: int | None = None
    end_line: int | None = None


@dataclass(frozen=True, slots=True)
class FactRow:
    """What one fact source read from one blob, encoded (see `kb.extract.facts`)."""

    source: str
    version: int
    spans: bytes
    """The payload's span table: 36 bytes an entry, span id followed by n as big-endian uint32."""
    payload: bytes
    """Compressed msgpack of the fact source's own struct."""
    keys: tuple[str, ...] = ()
    """What inverse look-ups (`World.who_has`) find this blob by; sorted, unique."""


@dataclass(frozen=True, slots=True)
class ParsedBlob:
    """Everything that a blob says by itself under one dialect; a pure function of its bytes."""

    oid: str
    dialect: str
    """Chosen from the path by `kb.structure.dialects`: `python`, `python-stub`..."""
    parser_version: str
    """Grammar versions and normalisation version."""
    occurrences: tuple[LocatedSpan, ...]
    """Every span that is stored for the blob, cited ones included; unique by (span_id, n)."""
    gaps: tuple[BlobGap, ...]
    facts: tuple[FactRow, ...]
