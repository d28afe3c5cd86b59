"""How much the dense leg counts: a property of the embedding model and of the kind of source.

The values were chosen on one half of the queries of each public set and checked on the other half
(docs/search.md has the table; `evals/bench/search_quality.py` measures them). A model that is not listed gets its provider's value.
"""

from __future__ import annotations

from typing import Literal

Source = Literal["code", "document", "chat"]
SOURCES: tuple[Source, ...] = ("code", "document", "chat")

_MODELS: dict[str, dict[Source, float]] = {
    "static:wordllama-l2-supercat-256": {"document": 0.15, "chat": 0.15, "code": 0.2},
    "minilm": {"document": 0.5, "chat": 0.3, "code": 0.3},
}
_PROVIDERS: dict[str, dict[Source, float]] = {
    "static": _MODELS["static:wordllama-l2-supercat-256"],
    "onnx": _MODELS["minilm"],
    "sentence-transformers": _MODELS["minilm"],
    "openai": {"document": 0.6, "chat": 0.4, "code": 0.4},
}
_PROSE_SUFFIXES = (".md", ".markdown", ".rst", ".txt", ".adoc")


def dense_share(model_id: str, source: Source) -> float:
    """Weight of the dense leg for a model on a kind of source, 0..1."""
    for name, shares in _MODELS.items():
        if name in model_id.lower():
            return shares[source]
    provider = model_id.partition(":")[0]
    return _PROVIDERS.get(provider, _PROVIDERS["onnx"])[source]


def source_of(path: str) -> Source:
    """The kind of source that a file is, by its name."""
    return "document" if path.lower().endswith(_PROSE_SUFFIXES) else "code"
