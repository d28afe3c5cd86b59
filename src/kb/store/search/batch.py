"""Collects analysed documents until there are enough to write them at once."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kb.store.search.postings import Postings

MOST_TERMS = 16_000
"""Different terms of one document: pgvector's limit for a sparse vector. The rarest ones are left out."""

_FULL = 2_000_000


class NewDocument(NamedTuple):
    """What a document's row needs beside its terms."""

    artifact_pk: int
    text_digest: bytes
    kind: str
    length: int


@dataclass(slots=True)
class Batch:
    """Documents and their terms under numbers of the batch's own."""

    documents: list[NewDocument] = field(default_factory=list)
    vocabulary: dict[str, int] = field(default_factory=dict)
    terms: array[int] = field(default_factory=lambda: array("i"))
    frequencies: array[int] = field(default_factory=lambda: array("i"))
    sizes: array[int] = field(default_factory=lambda: array("i"))

    def add(self, document: NewDocument, counts: Mapping[str, int]) -> None:
        """Takes in one document."""
        if len(counts) > MOST_TERMS:
            counts = dict(sorted(counts.items(), key=lambda item: -item[1])[:MOST_TERMS])
        vocabulary = self.vocabulary
        self.terms.extend([vocabulary.setdefault(term, len(vocabulary)) for term in counts])
        self.frequencies.extend(counts.values())
        self.sizes.append(len(counts))
        self.documents.append(document)

    @property
    def full(self) -> bool:
        """Whether it is time to write: memory is bounded by this, not by the repository."""
        return len(self.terms) >= _FULL

    def postings(self, first_doc: int, term_ids: npt.NDArray[np.int64]) -> Postings:
        """The batch as postings: documents numbered from `first_doc`, terms by their stored ids."""
        sizes = np.frombuffer(self.sizes, dtype=np.int32)
        lengths = np.array([document.length for document in self.documents], dtype=np.int64)
        docs = np.repeat(np.arange(first_doc, first_doc + len(sizes), dtype=np.int64), sizes)
        terms = term_ids[np.frombuffer(self.terms, dtype=np.int32)]
        order = np.argsort(docs * (1 << 31) + terms, kind="stable")
        frequencies = np.frombuffer(self.frequencies, dtype=np.int32).astype(np.int64)
        return Postings(docs, terms[order], frequencies[order], np.repeat(lengths, sizes))
