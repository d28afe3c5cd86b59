"""Reading one blob: a pure function from bytes and dialect to spans, gaps and facts."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from kb.errors import IntegrityError
from kb.model.spans import BlobGap, FactRow, ParsedBlob
from kb.structure.decode import Limits, decode
from kb.structure.dialects import PARSER_VERSION, has_grammar
from kb.structure.facts import MODULE_SOURCE, MODULE_VERSION, encode_payload, encode_span_table
from kb.structure.parse import Parse
from kb.structure.python import grammar as g

_FRAMES_PER_LEVEL = 3
_DEFAULT_LIMITS = Limits()


class Reading(Protocol):
    """What a fact reader returns (`kb.extract.api.FactOutput`)."""

    @property
    def fact(self) -> msgspec.Struct:
        """The struct to store."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """What inverse look-ups find the blob by."""
        ...


class FactReader(Protocol):
    """The part of an extractor that reads one blob."""

    @property
    def id(self) -> str:
        """The source of its fact rows."""
        ...

    @property
    def version(self) -> int:
        """Bumped when it reads something else from some blob."""
        ...

    @property
    def dialects(self) -> frozenset[str]:
        """What it reads."""
        ...

    def facts(self, parse: Any, /) -> Reading | None:
        """What one blob says; None when it says nothing of interest."""
        ...


def read_blob(
    oid: str,
    data: bytes,
    dialect: str,
    fact_readers: Sequence[FactReader],
    limits: Limits = _DEFAULT_LIMITS,
) -> ParsedBlob:
    """Everything that the blob says by itself under one dialect.

    A blob that cannot be read at all has one gap without lines, and nothing else. Otherwise a Python
    blob has a `module` fact row, and each reader of the dialect adds at most one row of its own.

    Raises:
        IntegrityError: a reader failed; the message names the reader and the blob.
    """
    source = decode(data, limits, python=has_grammar(dialect))
    if isinstance(source, BlobGap):
        return ParsedBlob(oid, dialect, PARSER_VERSION, (), (source,), ())
    with _room_for(limits.max_depth):
        return _read_source(oid, source, dialect, fact_readers, limits)


def _read_source(
    oid: str, source: bytes, dialect: str, fact_readers: Sequence[FactReader], limits: Limits
) -> ParsedBlob:
    """Holds the tree in its own frame, so that it is gone before the garbage collector runs again."""
    root = g.parser().parse(source).root_node if has_grammar(dialect) else None
    if root is not None and root.descendant_count > limits.max_nodes:
        gap = BlobGap("too_large", f"{root.descendant_count} syntax nodes, the limit is {limits.max_nodes}")
        return ParsedBlob(oid, dialect, PARSER_VERSION, (), (gap,), ())
    parse = Parse(source, dialect, root, limits)
    rows = []
    if root is not None:
        table = encode_span_table(parse.module_table.keys)
        rows.append(FactRow(MODULE_SOURCE, MODULE_VERSION, table, encode_payload(parse.module)))
    for reader in fact_readers:
        if dialect in reader.dialects:
            row = _read_row(oid, parse, reader)
            if row is not None:
                rows.append(row)
    return ParsedBlob(oid, dialect, PARSER_VERSION, parse.occurrences, tuple(parse.gaps), tuple(rows))


def _read_row(oid: str, parse: Parse, reader: FactReader) -> FactRow | None:
    table = parse.begin_row()
    try:
        reading = reader.facts(parse)
        if reading is None:
            return None
        payload = encode_payload(reading.fact)
    except Exception as error:
        raise IntegrityError(
            f"extractor {reader.id} failed on blob {oid}: {type(error).__name__}: {error}",
            hint="This is a defect of the extractor; exclude the file or disable the extractor.",
            blob=oid,
            extractor=reader.id,
        ) from error
    keys = tuple(sorted(set(reading.keys)))
    return FactRow(reader.id, reader.version, encode_span_table(table.keys), payload, keys)


@contextmanager
def _room_for(max_depth: int) -> Iterator[None]:
    """Room for the walk's recursion, and no garbage collection during it.

    A walk makes many short-lived nodes and no cycles: collecting among them costs a fifth of the time.
    Python frames take no C stack, so a higher limit is safe; nothing here recurses through C.
    """
    limit = sys.getrecursionlimit()
    depth = limit + _FRAMES_PER_LEVEL * max_depth
    collecting = gc.isenabled()
    gc.disable()
    sys.setrecursionlimit(depth)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()
