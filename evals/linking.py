"""Artifacts of a folder by one extractor, in memory: what gates and benchmarks compare with an oracle."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kb.extract.api import Extractor
from kb.extract.factstore import MemoryFacts
from kb.extract.linking import Linker
from kb.model.artifacts import ArtifactDraft
from kb.model.spans import ParsedBlob
from kb.structure.dialects import dialect_of
from kb.structure.reader import read_blob


class Linked(NamedTuple):
    """An artifact's draft and the file that is home to it."""

    path: str
    draft: ArtifactDraft


def files_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Relative path and content of every file, sorted; version control and caches left out."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not {".git", "__pycache__", "node_modules"} & set(path.parts):
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def read_folder(folder: Path, extractor: Extractor) -> tuple[dict[str, ParsedBlob], list[str]]:
    """What each file says by itself, and the files that are of no language."""
    parsed: dict[str, ParsedBlob] = {}
    other: list[str] = []
    for path, data in files_of(folder):
        dialect = dialect_of(path)
        if dialect is None:
            other.append(path)
        else:
            parsed[path] = read_blob(hashlib.sha1(data).hexdigest(), data, dialect, [extractor])
    return parsed, other


def link_folder(folder: Path, extractor: Extractor) -> list[Linked]:
    """Every artifact of the folder by the extractor, in path order."""
    parsed, other = read_folder(folder, extractor)
    linker = Linker([extractor], MemoryFacts(parsed, other))
    return [
        Linked(path, artifact.draft)
        for path in sorted(parsed)
        for linked in linker.link(path)
        for artifact in linked.artifacts
    ]
