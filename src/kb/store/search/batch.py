"""Collects the words of documents until there are enough to count and write them at once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kb.lexicon import terms_of_word
from kb.store.search.postings import Postings

MOST_TERMS = 16_000
"""Different terms of one document: pgvector's limit for a sparse vector. The rarest ones are left out."""

_FULL = 2_000_000

Integers = npt.NDArray[np.int64]


class NewDocument(NamedTuple):
    """What a document's row needs beside its terms."""

    artifact_pk: int
    text_digest: bytes
    kind: str


class _Numbers(dict[str, int]):
    """Numbers words from 0 on as they are first asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


@dataclass(frozen=True, slots=True)
class Counted:
    """The terms of a batch's documents, grouped by document."""

    vocabulary: list[str]
    terms: Integers
    """Positions in the vocabulary, one for each pair of document and term."""
    frequencies: Integers
    sizes: Integers
    """Different terms of each document."""
    lengths: Integers
    """Occurrences of terms in each document: its length in BM25."""

    def postings(self, first_doc: int, term_ids: Integers) -> Postings:
        """The batch as postings: documents numbered from `first_doc`, terms by their stored ids."""
        docs = np.repeat(np.arange(first_doc, first_doc + len(self.sizes), dtype=np.int64), self.sizes)
        terms = term_ids[self.terms]
        order = np.argsort((docs << 31) + terms, kind="stable")
        return Postings(docs, terms[order], self.frequencies[order], np.repeat(self.lengths, self.sizes))


@dataclass(slots=True)
class Batch:
    """Documents and their words under numbers of the batch's own."""

    documents: list[NewDocument] = field(default_factory=list)
    numbers: _Numbers = field(default_factory=_Numbers)
    words: array[int] = field(default_factory=lambda: array("i"))
    sizes: array[int] = field(default_factory=lambda: array("i"))

    def add(self, document: NewDocument, words: Sequence[str]) -> None:
        """Takes in one document."""
        self.words.extend(map(self.numbers.__getitem__, words))
        self.sizes.append(len(words))
        self.documents.append(document)

    @property
    def full(self) -> bool:
        """Whether it is time to write: memory is bounded by this, not by the repository."""
        return len(self.words) >= _FULL

    def counted(self) -> Counted:
        """How often each document has each term. A word is analysed once, however often it occurs."""
        vocabulary = _Numbers()
        analysed = [[vocabulary[term] for term in terms_of_word(word)] for word in self.numbers]
        widths = np.array([len(terms) for terms in analysed], dtype=np.int64)
        flat = np.fromiter(chain.from_iterable(analysed), dtype=np.int64, count=int(widths.sum()))
        words = np.frombuffer(self.words, dtype=np.int32)
        docs = np.repeat(np.arange(len(self.documents), dtype=np.int64), np.frombuffer(self.sizes, np.int32))
        repeats = widths[words]
        docs = np.repeat(docs, repeats)
        lengths = np.bincount(docs, minlength=len(self.documents))
        # The terms of the word at each place: its first one's place in `flat`, and those that follow.
        firsts = np.repeat((np.cumsum(widths) - widths)[words], repeats)
        within = np.arange(len(docs)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        pairs, frequencies = np.unique((docs << 31) + flat[firsts + within], return_counts=True)
        pairs, frequencies = _most_frequent(pairs, frequencies, len(self.documents))
        sizes = np.bincount(pairs >> 31, minlength=len(self.documents))
        return Counted(list(vocabulary), pairs & ((1 << 31) - 1), frequencies, sizes, lengths)


def _most_frequent(pairs: Integers, frequencies: Integers, documents: int) -> tuple[Integers, Integers]:
    """The pairs without the rarest terms of documents that have more than can be stored."""
    sizes = np.bincount(pairs >> 31, minlength=documents)
    dropped: list[Integers] = []
    starts = np.cumsum(sizes) - sizes
    for doc in np.flatnonzero(sizes > MOST_TERMS):
        inside = np.arange(starts[doc], starts[doc] + sizes[doc])
        dropped.append(inside[np.argsort(-frequencies[inside], kind="stable")[MOST_TERMS:]])
    if not dropped:
        return pairs, frequencies
    gone = np.concatenate(dropped)
    return np.delete(pairs, gone), np.delete(frequencies, gone)
