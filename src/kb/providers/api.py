"""What an embedding adapter promises; tests/providers holds each of them to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kb.errors import KbError

Vectors = npt.NDArray[np.float32]


class EndpointError(KbError):
    """The embeddings endpoint cannot be reached, refused the request, or answered nonsense."""


class EmbeddingProvider(Protocol):
    """Turns texts into unit vectors; a text's vector is its own, up to rounding, whatever it is batched with."""

    @property
    def model_id(self) -> str:
        """`<provider>:<model>`: what stored vectors are named by. Vectors of two ids never mix."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    @property
    def batch_size(self) -> int:
        """How many texts at once suit it."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, in order: float32, (texts, dimensions).

        A text without content (no token that the model knows) gives the zero vector.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a question, float32, (dimensions,), with the model's prefix for questions."""
        ...


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length one; zero rows, and rows that are not finite, become zero."""
    finite = np.where(np.isfinite(vectors), vectors, 0.0)
    lengths = np.linalg.norm(finite, axis=-1, keepdims=True)
    scaled: Vectors = np.divide(finite, lengths, out=np.zeros_like(finite), where=lengths > 0).astype(
        np.float32
    )
    return scaled
