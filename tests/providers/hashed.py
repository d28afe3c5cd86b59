"""An embedding adapter for tests: words hashed into 64 dimensions. It keeps the adapters' contract."""

import hashlib

import numpy as np

from kb.providers.api import unit


class HashedWords:
    model_id = "hashed:words"
    dimensions = 64
    batch_size = 100

    def __init__(self):
        self.embedded = []

    def embed_documents(self, texts):
        self.embedded.extend(texts)
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, hashlib.sha256(word.encode()).digest()[0] % self.dimensions] += 1
        return unit(vectors)

    def embed_query(self, text):
        return self.embed_documents([text])[0]
