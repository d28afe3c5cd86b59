"""Runs the public text sets through kb's own search: each text one artifact, each query ranked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evals.retrieval.corpus import Corpus, Doc
from evals.retrieval.datasets import TextSet
from kb.providers import EmbeddingProvider
from kb.retrieve.metrics import ndcg
from kb.retrieve.search_calibration import dense_share
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import SearchOptions
from kb.store.database import Connection
from kb.store.search import index, reading, vectors


def indexed(connection: Connection, texts: TextSet) -> Corpus:
    """The set as a sealed, indexed snapshot; a document's place in the set is its key."""
    corpus = Corpus(connection, texts.name)
    documents = enumerate(texts.documents.values())
    corpus.commit(Doc(f"passage:{at}", text, title, path=f"{at}.md") for at, (title, text) in documents)
    index.catch_up(connection, corpus.lineage_id)
    return corpus


def embed(connection: Connection, corpus: Corpus, provider: EmbeddingProvider) -> Legs:
    """Legs over the corpus with the provider's vectors, which are made where they are missing."""
    view = reading.open_view(connection, corpus.lineage_id, corpus.ordinal)
    model = vectors.put_model(connection, provider.model_id, provider.dimensions, None)
    for batch in vectors.missing_texts(connection, corpus.lineage_id, corpus.ordinal, model, 256):
        made = provider.embed_documents([text for _, text in batch])
        vectors.put_vectors(connection, model, [pk for pk, _ in batch], made)
    return Legs(connection, view, model, provider)


def embedded_legs(connection: Connection, texts: TextSet, provider: EmbeddingProvider) -> Legs:
    return embed(connection, indexed(connection, texts), provider)


def ndcgs(
    legs: Legs, texts: TextSet, queries: Sequence[str], mode: str, fusion: str = "convex"
) -> list[float]:
    """nDCG@10 of each query, with the share that is calibrated for the set's kind of source."""
    share = dense_share(legs.model.model_id, texts.source)
    options = SearchOptions(mode=mode, fusion=fusion, dense_share=share)
    names = list(texts.documents)
    found = []
    for query in queries:
        hits = rank(legs, texts.queries[query], options).hits
        ranking = [names[int(hit.document.logical_key.partition(":")[2])] for hit in hits]
        found.append(ndcg(ranking, texts.relevant[query], 10))
    return found


def mean_ndcg(legs: Legs, texts: TextSet, queries: Sequence[str], mode: str, fusion: str = "convex") -> float:
    return float(np.mean(ndcgs(legs, texts, queries, mode, fusion)))
