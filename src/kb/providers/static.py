"""`static`: wordllama's token vectors, averaged. No network, no torch: the default that always works."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from kb.errors import UsageError
from kb.providers.api import Vectors, unit

_MODEL = "wordllama-l2-supercat-256"
_MOST_CHARACTERS = 20_000
"""A text's beginning speaks for it: an average over more tokens hardly moves."""


class StaticProvider:
    """Averages of static token vectors, 256 dimensions, thousands of texts a second on one core."""

    model_id = f"static:{_MODEL}"
    dimensions = 256
    batch_size = 1024

    def __init__(self) -> None:
        from wordllama import WordLlama  # noqa: PLC0415 - loads 16 MB of weights; only where it is used

        # The wheel keeps its tokenizer in `tokenizers/`, where it is only looked for below a cache folder.
        package = Path(next(iter(_package_folders())))
        loaded = WordLlama.load(dim=self.dimensions, cache_dir=package, disable_download=True)
        self._table: Vectors = loaded.embedding
        self._tokenizer: Any = loaded.tokenizer
        self._tokenizer.no_padding()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts; see `EmbeddingProvider`."""
        encoded = self._tokenizer.encode_batch_fast(
            [text[:_MOST_CHARACTERS] for text in texts], add_special_tokens=False
        )
        sums = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        last = len(self._table) - 1
        for row, one in enumerate(encoded):
            ids = one.ids
            if ids:
                # The length falls out with the norm, so the sum is as good as the average.
                np.minimum(ids, last, out=(known := np.empty(len(ids), dtype=np.int64)))
                self._table[known].sum(axis=0, out=sums[row])
        return unit(sums)

    def embed_query(self, text: str) -> Vectors:
        """As a document: static vectors know no prefixes."""
        vector: Vectors = self.embed_documents([text])[0]
        return vector


def _package_folders() -> list[str]:
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(
            "the package wordllama is not installed", hint="reinstall kb: it is one of its needs"
        )
    return list(spec.submodule_search_locations)


def open_static(model: str | None) -> StaticProvider:
    """The provider; it has one model.

    Raises:
        UsageError: another model was asked for.
    """
    if model not in (None, _MODEL):
        raise UsageError(f"the provider static has no model {model!r}", hint=f"its only one is {_MODEL}")
    return StaticProvider()
