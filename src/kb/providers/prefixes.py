"""What model families want in front of questions and of documents, from their model cards."""

from __future__ import annotations

from typing import NamedTuple


class Prefixes(NamedTuple):
    """Empty for the models that treat questions and documents alike."""

    query: str = ""
    document: str = ""


_SENTENCE = "Represent this sentence for searching relevant passages: "
_FAMILIES: tuple[tuple[str, Prefixes], ...] = (
    ("multilingual-e5", Prefixes("query: ", "passage: ")),
    ("e5-", Prefixes("query: ", "passage: ")),
    ("bge-m3", Prefixes()),
    ("bge-", Prefixes(_SENTENCE)),
    ("mxbai-embed", Prefixes(_SENTENCE)),
    ("snowflake-arctic-embed2", Prefixes("query: ")),
    ("arctic-embed-m-v2", Prefixes("query: ")),
    ("arctic-embed-l-v2", Prefixes("query: ")),
    ("arctic-embed", Prefixes(_SENTENCE)),
    ("nomic-embed", Prefixes("search_query: ", "search_document: ")),
    ("embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (
        "qwen3-embedding",
        Prefixes("Instruct: Given a search query, retrieve relevant passages that answer the query\nQuery:"),
    ),
)


def prefixes_for(model: str) -> Prefixes:
    """The prefixes of the first family whose name the model's name holds; none where none is known."""
    name = model.lower().replace("_", "-")
    return next((prefixes for family, prefixes in _FAMILIES if family in name), Prefixes())
