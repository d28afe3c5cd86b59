"""Reads and links files that are in memory or in a folder: what the knowledge gates look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kb.extract.api import Extractor
from kb.extract.factstore import MemoryFacts
from kb.extract.linking import Linker
from kb.model.artifacts import ArtifactDraft, LookupRow
from kb.model.spans import ParsedBlob
from kb.structure.dialects import dialect_of
from kb.structure.reader import read_blob


class Knowledge(NamedTuple):
    """One artifact as linking yielded it, with the places that it stands on."""

    draft: ArtifactDraft
    home: str
    extractor: str
    places: tuple[tuple[str, str, int, int], ...]
    """(role, path, first line, last line), in the order of the groundings."""


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def parsed(files: Mapping[str, bytes], extractors: Sequence[Extractor]) -> dict[str, ParsedBlob]:
    """Every file that has a dialect, read."""
    found = {}
    for path, data in files.items():
        dialect = dialect_of(path)
        if dialect is not None:
            found[path] = read_blob(path, data, dialect, extractors)
    return found


def linked(files: Mapping[str, bytes], extractors: Sequence[Extractor]) -> Iterator[Knowledge]:
    """Every artifact of the files, in the order of paths and of the extractors."""
    yield from (knowledge for knowledge, _ in linked_with_lookups(files, extractors))


def linked_with_lookups(
    files: Mapping[str, bytes], extractors: Sequence[Extractor]
) -> Iterator[tuple[Knowledge, list[LookupRow]]]:
    """Every artifact with the look-ups of the file that is home to it."""
    blobs = parsed(files, extractors)
    lines = {
        (path, located.span.span_id, located.n): (located.start_line, located.end_line)
        for path, blob in blobs.items()
        for located in blob.occurrences
    }
    linker = Linker(extractors, MemoryFacts(blobs, other_paths=[path for path in files if path not in blobs]))
    for path in blobs:
        for answer in linker.link(path):
            for artifact in answer.artifacts:
                draft = artifact.draft
                places = tuple((g.role, g.path, *lines[g.path, g.span_id, g.n]) for g in draft.groundings)
                yield Knowledge(draft, path, answer.extractor, places), answer.lookups


def by_key(knowledge: Iterator[Knowledge]) -> dict[str, Knowledge]:
    """Artifacts by their logical key.

    Raises:
        ValueError: two artifacts have one key.
    """
    found: dict[str, Knowledge] = {}
    for entry in knowledge:
        key = entry.draft.logical_key
        if key in found:
            raise ValueError(f"{key} is yielded by {found[key].home} and by {entry.home}")
        found[key] = entry
    return found
