"""The two legs of a search over one snapshot, each exact where that is cheap, and the filters on both."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np

from kb.errors import UsageError
from kb.lexicon import analyze_query, phrases, query_words, spellings, terms_of_word, words_of
from kb.providers import EmbeddingProvider
from kb.retrieve.paths import path_pattern
from kb.store.database import Connection
from kb.store.search import lexical, members, reading, vectors
from kb.store.search.lexical import LexicalQuery
from kb.store.search.members import Bits
from kb.store.search.reading import SearchView
from kb.store.search.steering import steered
from kb.store.search.vectors import ModelRow, Vectors

Scores = list[tuple[int, float]]

EXACT_UP_TO = 100_000
"""Documents of a snapshot up to which every posting of the query is read."""
BUDGET = 100_000
"""Postings that are read beyond that, the ones with the greatest possible contribution first: at 1,000,000
documents nDCG@10 against reading all was .9985."""
SELECTIVE = 0.03
"""Share of the documents below which a filtered search reads exactly those that pass."""
FEW = 2_000
"""So few documents are always read exactly."""
"""What makes a path a pattern."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The documents that may be found."""

    bits: Bits
    count: int
    narrow: bool
    """So few that reading them one by one is the cheapest and misses nothing."""
    name: Hashable = None
    """What the documents' texts are remembered by; None where they are not."""

    def holds(self, doc: int) -> bool:
        """Whether the document may be found."""
        return bool(self.bits[doc >> 3] >> (doc & 7) & 1)

    def numbers(self) -> list[int]:
        """The documents, rising."""
        numbers: list[int] = members.numbers(self.bits).tolist()
        return numbers


@dataclass(slots=True)
class Question:
    """A query made ready for a snapshot."""

    text: str
    lexical: LexicalQuery
    ceiling: float
    """What the BM25 of a text with every word comes near to: a word counts once, however many spellings it has here."""
    phrases: list[str]
    vector: Vectors | None


class Legs:
    """Both legs over one snapshot. `model` and `provider` are None where it is not embedded."""

    def __init__(
        self,
        connection: Connection,
        view: SearchView,
        model: ModelRow | None = None,
        provider: EmbeddingProvider | None = None,
    ) -> None:
        self._connection = connection
        self.view = view
        self.model = model
        self._provider = provider
        large = view.present >= vectors.INDEX_FROM
        self._indexed = large and model is not None and _has_index(connection, view, model)

    def steered(self) -> AbstractContextManager[None]:
        """For the statements of one search: planned as they should be, all of one state of the database."""
        return steered(self._connection)

    def ask(self, text: str, *, dense: bool) -> Question:
        """The query's terms, phrases and vector.

        Raises:
            UsageError: it is no text (bytes that are no UTF-8, half of a surrogate pair).
        """
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError("the query is no text: it is not UTF-8") from None
        query, ceiling = self._terms(text)
        vector = self._provider.embed_query(text) if dense and self._provider is not None else None
        return Question(text, query, ceiling, phrases(text), vector)

    def _terms(self, text: str) -> tuple[LexicalQuery, float]:
        """The query's terms, and those that its words have where they are written in another way; the words that
        are in no text, as written; and what the BM25 of a text with every word comes near to."""
        asked_words = query_words(text)
        words = {word: spellings(word) for word in asked_words}
        asked = analyze_query(text).terms
        for forms in words.values():
            for form in forms:
                asked.setdefault(form, 1)
        query = lexical.prepare(self._connection, self.view, asked)
        unknown = {*query.unknown}
        once = {term.term: term.weight / asked[term.term] for term in query.terms}
        query = replace(
            query, unknown=tuple(word for word, forms in words.items() if forms and unknown.issuperset(forms))
        )
        return query, sum(_most(word, words[word], once) for word in asked_words)

    def filter(self, kinds: Sequence[str], path: str | None, quoted: Sequence[str]) -> Filter:
        """The snapshot's documents of these kinds, under this path, with these phrases."""
        bits = self.view.members
        if kinds:
            bits = reading.of_kinds(self._connection, self.view, kinds)
        if path is not None:
            bits = bits & reading.of_paths(self._connection, self.view, path_pattern(path))
        for phrase in quoted:
            bits = bits & self._with_phrase(phrase, bits)
        count = self.view.present if bits is self.view.members else members.count(bits)
        narrow = count < max(FEW, SELECTIVE * self.view.present)
        name = None if quoted else (tuple(sorted(kinds)), path)
        return Filter(bits, count, narrow and count < self.view.present, name)

    def _with_phrase(self, phrase: str, bits: Bits) -> Bits:
        """Documents that hold the words of a phrase one after the other, whatever stands between them."""
        numbers = self._with_its_rarest_word(phrase)
        if numbers is None:
            numbers = members.numbers(bits)
        words = _folded(phrase)
        found = [
            doc
            for doc, text in reading.texts(self._connection, self.view, numbers.tolist())
            if words in _folded(text)
        ]
        return members.from_numbers(np.array(found, dtype=np.int64), len(bits))

    def _with_its_rarest_word(self, phrase: str) -> reading.Numbers | None:
        """The documents that may hold a phrase: those with its rarest word, however that is written there. None
        for every one, where the phrase is nothing but function words, which are not indexed."""
        words = [forms for word in words_of(phrase) if (forms := spellings(word))]
        known = lexical.prepare(self._connection, self.view, {form: 1 for forms in words for form in forms})
        terms = {term.term: term for term in known.terms}
        if not words:
            return None
        rarest = min(
            ([terms[form] for form in forms if form in terms] for forms in words),
            key=lambda held: sum(term.documents for term in held),
        )
        found = [reading.with_term(self._connection, self.view, term.term_id) for term in rarest]
        return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))

    def lexical(self, question: Question, allowed: Filter, limit: int) -> tuple[Scores, bool]:
        """The best documents by BM25, and whether that is exact. Those that hold a phrase of function words
        alone have no score, and are the answer all the same."""
        if question.phrases and not question.lexical.terms and question.vector is None:
            return [(doc, 0.0) for doc in allowed.numbers()[:limit]], allowed.count <= limit
        if allowed.count <= FEW < self.view.present:
            numbers = allowed.numbers()
            return lexical.score(self._connection, self.view, question.lexical, numbers, limit), True
        exact = allowed.narrow or self.view.present <= EXACT_UP_TO
        budget = 1 << 40 if exact else _budget(allowed.count / max(self.view.present, 1))
        found = lexical.search(
            self._connection,
            self.view,
            question.lexical,
            members=allowed.bits,
            limit=limit,
            budget=budget,
        )
        return found, exact or question.lexical.postings <= budget

    def dense(self, question: Question, allowed: Filter, limit: int) -> Scores:
        """The nearest documents by cosine; exact where the filter is narrow or the snapshot small."""
        if question.vector is None or self.model is None:
            return []
        if not allowed.narrow and self._indexed:
            found = vectors.nearest(
                self._connection, self.view, self.model, question.vector, members=allowed.bits, limit=limit
            )
            if len(found) >= min(limit, allowed.count):
                return found
            # The graph did not lead to enough documents that pass the filter: look at every one of them.
        return self.dense_exact(question.vector, allowed, limit)

    def dense_exact(self, vector: Vectors, allowed: Filter, limit: int) -> Scores:
        """The nearest documents by cosine, found by looking at every one that may be found."""
        if self.model is None:
            return []
        texts, docs = self._texts(allowed)
        near = vectors.nearest_texts(
            self._connection, self.model, vector, texts=np.unique(texts), limit=limit
        )
        scores = []
        for text, similarity in near:
            first, last = np.searchsorted(texts, [text, text + 1])
            scores += [(doc, similarity) for doc in docs[first:last].tolist()]
        return sorted(scores, key=lambda score: (-score[1], score[0]))[:limit]

    def _texts(self, allowed: Filter) -> tuple[reading.Numbers, reading.Numbers]:
        def read() -> tuple[reading.Numbers, reading.Numbers]:
            return reading.text_numbers(self._connection, self.view, members.numbers(allowed.bits))

        return read() if allowed.name is None else self.view.kept(("texts", allowed.name), read)

    def lexical_of(self, question: Question, docs: Sequence[int]) -> Scores:
        """BM25 of the named documents."""
        return lexical.score(self._connection, self.view, question.lexical, docs)

    def dense_of(self, question: Question, docs: Sequence[int]) -> Scores:
        """Cosine of the named documents."""
        if question.vector is None or self.model is None:
            return []
        return vectors.similarities(self._connection, self.view, self.model, question.vector, docs=docs)

    def vectors_of(self, docs: Sequence[int]) -> dict[int, Vectors]:
        """Vectors of the named documents; empty where the snapshot is not embedded."""
        if self.model is None:
            return {}
        return vectors.of_documents(self._connection, self.view, self.model, docs)

    def documents(self, docs: Sequence[int]) -> list[reading.Document]:
        """The named documents, in order."""
        return reading.documents(self._connection, self.view, docs)

    def neighbours(self, docs: Sequence[int]) -> list[tuple[int, int, str]]:
        """Documents one edge away: (from, to, relation)."""
        return reading.neighbours(self._connection, self.view, docs)

    def contributions(self, question: Question, docs: Sequence[int]) -> dict[int, dict[str, float]]:
        """What each term gave to each document's BM25."""
        return lexical.contributions(self._connection, self.view, question.lexical, docs)


def _most(word: str, forms: Sequence[str], weights: Mapping[str, float]) -> float:
    """What a text can get for one word of a query: for its parts, and for one spelling of the whole, the rarest."""
    parts = sum(weights.get(term, 0.0) for term in terms_of_word(word) if term not in forms)
    return parts + max((weights.get(form, 0.0) for form in forms), default=0.0)


def _has_index(connection: Connection, view: SearchView, model: ModelRow) -> bool:
    """Whether the model's vectors have an index; that is asked until they have one."""
    key = ("indexed", model.model_pk)
    return view.has_kept(key) or (vectors.has_index(connection, model) and view.kept(key, lambda: True))


def _budget(share: float) -> int:
    """A filter that keeps little needs more postings for as many that pass it; at most four times."""
    return int(BUDGET * min(4.0, 1 / max(share, 0.25)))


def _folded(text: str) -> str:
    return f" {' '.join(words_of(text)).lower()} "
