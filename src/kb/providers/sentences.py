"""`sentence-transformers`: any model of that library, through torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kb.errors import NotFoundError, UsageError
from kb.providers.api import Vectors, unit
from kb.providers.content import with_content
from kb.providers.prefixes import prefixes_for

_DEFAULT_MODEL = "all-MiniLM-L6-v2"
_READ = frozenset({".safetensors", ".bin", ".json", ".txt", ".model"})
_OTHERS = frozenset({"onnx", "openvino"})


class SentenceTransformersProvider:
    """A model of sentence-transformers on whatever device torch chooses."""

    batch_size = 64

    def __init__(self, model: Any, name: str, folder: Path | None = None) -> None:
        self._model = model
        self._prefixes = prefixes_for(name)
        known = name if folder is None else with_content(name, folder, _read_files(folder))
        self.model_id = f"sentence-transformers:{known}"
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


def _read_files(folder: Path) -> list[Path]:
    """The files that the vectors may depend on; not those of other runtimes, and no readme."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix in _READ
        and not any(part.startswith(".") or part in _OTHERS for part in path.relative_to(folder).parts)
    ]


def open_sentence_transformers(model: str | None) -> SentenceTransformersProvider:
    """The provider, its model loaded (and downloaded on first use).

    Raises:
        UsageError: the library is not installed, or cannot load the model.
        NotFoundError: there is no such folder.
    """
    name = model or _DEFAULT_MODEL
    folder = Path(name).expanduser()
    if folder.is_dir():
        name = folder.resolve().name  # vectors are keyed by the model's name and files, wherever it lies
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
        if folder.is_dir():
            folder = folder.resolve()
            return SentenceTransformersProvider(SentenceTransformer(str(folder)), name, folder)
        return SentenceTransformersProvider(SentenceTransformer(name), name)
    except (OSError, ValueError) as error:
        raise UsageError(f"sentence-transformers cannot load {name}: {error}") from error
