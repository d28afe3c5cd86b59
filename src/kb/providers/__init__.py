"""Adapters that turn texts into vectors, behind one protocol; each library is imported when it is used."""

from kb.providers.api import EmbeddingProvider, Vectors
from kb.providers.choose import PROVIDERS, open_provider

__all__ = ["PROVIDERS", "EmbeddingProvider", "Vectors", "open_provider"]
