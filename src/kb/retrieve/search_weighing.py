"""Weighs the candidates of a search: the legs' scores, and what names, places and the rest of a file add."""

from __future__ import annotations

from collections.abc import Mapping

from kb.retrieve.search_evidence import Mentions, coherence
from kb.retrieve.search_fusion import convex, min_max, reciprocal_rank
from kb.retrieve.search_priors import PathPriors
from kb.retrieve.search_request import Parts
from kb.store.search.reading import Document


class Weighed:
    """The candidates of one query with their scores, each part by document number: hundreds of candidates are
    weighed for the ten that are shown, and only of those the parts are put together.

    Args:
        documents: the candidates.
        lexical: BM25, of those that have one.
        dense: cosine, of those that have one.
        shares: how much the dense leg counts for each, 0..1.
    """

    def __init__(
        self,
        documents: Mapping[int, Document],
        lexical: Mapping[int, float],
        dense: Mapping[int, float],
        shares: Mapping[int, float],
    ) -> None:
        self._documents = documents
        self._lexical, self._dense, self._shares = lexical, dense, shares
        self._lexical_scaled = min_max(lexical, floor=0.0)
        self._dense_scaled = min_max(dense)
        self._evidence: dict[int, float] = {}
        self._priors: dict[int, float] = {}
        self._coherence: dict[int, float] = {}
        self.scores: dict[int, float] = {}

    def weigh(self, text: str, path: str | None, *, by_rank: bool) -> None:
        """Sets the scores of all candidates.

        Args:
            text: the query.
            path: the path it is limited to.
            by_rank: bring the legs together by their ranks (RRF), and not by their scores.
        """
        if by_rank:  # scaled as the legs are: what names and places add is meant for scores up to 1
            legs = min_max(reciprocal_rank(self._lexical, self._dense))
        else:
            legs = convex(self._lexical_scaled, self._dense_scaled, self._shares)
        mentions, priors = Mentions(text), PathPriors(text, path)
        documents = self._documents
        self._evidence = {doc: mentions.evidence(document) for doc, document in documents.items()}
        self._priors = {doc: priors.of(document.path) for doc, document in documents.items()}
        alone = {doc: (legs[doc] + self._evidence[doc]) * self._priors[doc] for doc in documents}
        self._coherence = coherence(documents, alone)
        self.scores = {doc: score + self._coherence[doc] for doc, score in alone.items()}

    def parts(self, doc: int, related: str | None, terms: Mapping[str, float] | None) -> Parts:
        """The parts of one document's score.

        Args:
            doc: the document; one that was not weighed has no parts but these two.
            related: how it is related to a hit by which it was found.
            terms: what each term gave to it.
        """
        return Parts(
            lexical=self._lexical.get(doc),
            dense=self._dense.get(doc),
            lexical_scaled=self._lexical_scaled.get(doc, 0.0),
            dense_scaled=self._dense_scaled.get(doc, 0.0),
            dense_share=self._shares.get(doc, 0.0),
            evidence=self._evidence.get(doc, 0.0),
            prior=self._priors.get(doc, 1.0),
            coherence=self._coherence.get(doc, 0.0),
            related=related,
            terms=dict(terms or {}),
        )
