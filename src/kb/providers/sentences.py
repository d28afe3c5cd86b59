"""`sentence-transformers`: any model of that library, through torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kb.errors import NotFoundError, UsageError
from kb.providers.api import Vectors, unit
from kb.providers.prefixes import prefixes_for

_DEFAULT_MODEL = "all-MiniLM-L6-v2"


class SentenceTransformersProvider:
    """A model of sentence-transformers on whatever device torch chooses."""

    batch_size = 64

    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        self._prefixes = prefixes_for(name)
        self.model_id = f"sentence-transformers:{name}"
        self.dimensions = int(model.get_embedding_dimension())

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts; see `EmbeddingProvider`."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return self._encode([self._prefixes.document + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """The question with the model's prefix."""
        vector: Vectors = self._encode([self._prefixes.query + text])[0]
        return vector

    def _encode(self, texts: list[str]) -> Vectors:
        vectors = self._model.encode(
            texts, batch_size=self.batch_size, convert_to_numpy=True, show_progress_bar=False
        )
        return unit(np.asarray(vectors, dtype=np.float32))


def open_sentence_transformers(model: str | None) -> SentenceTransformersProvider:
    """The provider, its model loaded (and downloaded on first use).

    Raises:
        UsageError: the library is not installed, or cannot load the model.
        NotFoundError: there is no such folder.
    """
    name = model or _DEFAULT_MODEL
    folder = Path(name).expanduser()
    if folder.is_dir():
        name = folder.resolve().name  # vectors are keyed by the model, wherever it lies
    elif folder.is_absolute() or name.startswith("."):
        raise NotFoundError(f"there is no folder {name}", hint="name a folder that holds such a model")
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - imports torch
        from transformers.utils import logging  # noqa: PLC0415 - comes with it
    except ImportError as error:
        raise UsageError(
            f"the provider sentence-transformers needs {error.name}",
            hint="install the extra: pip install 'kb[embed]'; or use --provider static or onnx",
        ) from error
    logging.disable_progress_bar()  # kb has a progress of its own
    try:
        return SentenceTransformersProvider(
            SentenceTransformer(str(folder.resolve()) if folder.is_dir() else name), name
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"sentence-transformers cannot load {name}: {error}") from error
