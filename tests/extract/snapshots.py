"""Snapshots in memory for tests: sources by path, read and linked as the index does it."""

from __future__ import annotations

import hashlib
import textwrap

from kb.extract.factstore import MemoryFacts
from kb.extract.layout import Layout
from kb.extract.linking import Linker
from kb.extract.registry import builtin_extractors
from kb.structure.dialects import dialect_of
from kb.structure.reader import read_blob

EXTRACTORS = {extractor.id: extractor for extractor in builtin_extractors()}


def parse(path, source, ids=None):
    dialect = dialect_of(path)
    data = textwrap.dedent(source).lstrip("\n").encode("utf-8", "surrogatepass")
    readers = [EXTRACTORS[name] for name in ids or EXTRACTORS]
    return read_blob(hashlib.sha1(data).hexdigest(), data, dialect, readers)


class Snapshot:
    """Sources by path, with what chosen extractors make of them."""

    def __init__(self, files, ids=None, roots=()):
        self.ids = tuple(ids or EXTRACTORS)
        self.blobs = {path: parse(path, text, self.ids) for path, text in files.items() if dialect_of(path)}
        self.facts = MemoryFacts(self.blobs, [path for path in files if not dialect_of(path)])
        self.roots = tuple(roots)
        self.layout = Layout(self.facts, self.roots)
        self.linker = Linker([EXTRACTORS[name] for name in self.ids], self.facts, self.layout)
        self.linked = [one for path in sorted(self.blobs) for one in self.linker.link(path)]

    def artifacts(self, kind=None, extractor=None):
        return {
            artifact.draft.logical_key: artifact
            for linked in self.linked
            for artifact in linked.artifacts
            if kind in (None, artifact.draft.kind) and extractor in (None, artifact.extractor)
        }

    def body(self, key):
        return dict(self.artifacts()[key].draft.body)

    def ids_of(self, extractor=None):
        return {
            artifact.artifact_id
            for linked in self.linked
            for artifact in linked.artifacts
            if extractor in (None, artifact.extractor)
        }

    def lookups(self):
        return {
            (row.path, row.extractor, row.kind, row.key, row.answer)
            for linked in self.linked
            for row in linked.lookups
        }

    def lines(self, key, role=None):
        """(path, start, end) of an artifact's groundings."""
        found = []
        for grounding in self.artifacts()[key].draft.groundings:
            if role in (None, grounding.role):
                (place,) = [
                    located
                    for located in self.blobs[grounding.path].occurrences
                    if located.span.span_id == grounding.span_id and located.n == grounding.n
                ]
                found.append((grounding.path, place.start_line, place.end_line))
        return found
