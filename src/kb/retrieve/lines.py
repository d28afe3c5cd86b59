"""Lines of blobs as text: one way to tell where they end and what their bytes mean."""

from __future__ import annotations

import codecs

from kb.git.repository import Repository
from kb.model.served import SourceLine


def source_lines(repository: Repository, oid: str, start: int, end: int) -> tuple[SourceLine, ...]:
    """Lines `start` to `end` (1-based, inclusive) of a blob, without line endings.

    Bytes that are not UTF-8 are shown as replacement characters.

    Raises:
        NotFoundError: the repository no longer holds the blob.
    """
    lines = line_texts(repository.read(oid))
    return tuple(SourceLine(line=number, text=lines[number - 1]) for number in range(start, end + 1))


def line_texts(data: bytes) -> list[str]:
    """The lines of a blob as text, without a BOM and line endings; lines end where Python's do.

    Bytes that are not UTF-8 are shown as replacement characters.
    """
    return [line.decode("utf-8", "replace") for line in data.removeprefix(codecs.BOM_UTF8).splitlines()]
