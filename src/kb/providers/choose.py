"""From the name of a provider to the adapter."""

from __future__ import annotations

from functools import lru_cache

from kb.errors import UsageError
from kb.providers.api import EmbeddingProvider

PROVIDERS = ("static", "onnx", "sentence-transformers", "openai")


@lru_cache(maxsize=4)
def open_provider(
    name: str, model: str | None = None, *, url: str | None = None, key: str | None = None
) -> EmbeddingProvider:
    """The adapter, its model loaded once in a process. `url` and `key` are for `openai` only.

    Raises:
        UsageError: no such provider or model, or its library is not installed.
        NotFoundError: the model's folder holds none.
    """
    # Imported here: each adapter stands on a library that only its users have.
    match name:
        case "static":
            from kb.providers.static import open_static  # noqa: PLC0415

            return open_static(model)
        case "onnx":
            from kb.providers.onnx import open_onnx  # noqa: PLC0415

            return open_onnx(model)
        case "sentence-transformers":
            from kb.providers.sentences import open_sentence_transformers  # noqa: PLC0415

            return open_sentence_transformers(model)
        case "openai":
            from kb.providers.openai import open_openai  # noqa: PLC0415

            return open_openai(model, url, key)
    raise UsageError(f"there is no embedding provider {name!r}", hint=f"there are: {', '.join(PROVIDERS)}")
