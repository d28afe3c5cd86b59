"""The recipe: everything beside the commit that decides what its snapshot holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kb.extract.api import Extractor
from kb.identity.artifacts import canonical_json
from kb.identity.spans import NORMALIZATION_VERSION
from kb.snapshot.scope import Scope
from kb.structure.dialects import PARSER_VERSION
from kb.structure.facts import MODULE_SOURCE, MODULE_VERSION


@dataclass(frozen=True)
class Recipe:
    """Parser, normalisation and extractor versions, enabled extractors, scope, roots and limits."""

    extractors: Sequence[Extractor]
    scope: Scope
    roots: tuple[str, ...]
    max_blob_bytes: int
    settings: Mapping[str, Any] = field(init=False)
    digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        settings = {
            "parser": PARSER_VERSION,
            "normalization": NORMALIZATION_VERSION,
            "module_facts": MODULE_VERSION,
            "extractors": {extractor.id: extractor.version for extractor in self.extractors},
            "scope": self.scope.settings(),
            "roots": list(self.roots),
            "max_blob_bytes": self.max_blob_bytes,
        }
        object.__setattr__(self, "settings", settings)
        object.__setattr__(self, "digest", hashlib.sha256(canonical_json(settings)).digest())

    @property
    def fact_versions(self) -> dict[str, int]:
        """Fact source -> version."""
        return {
            MODULE_SOURCE: MODULE_VERSION,
            **{extractor.id: extractor.version for extractor in self.extractors},
        }

    def sources_for(self, dialect: str) -> list[str]:
        """The `source@version` words that are run on a blob of a dialect."""
        words = [f"{MODULE_SOURCE}@{MODULE_VERSION}"]
        words += [f"{e.id}@{e.version}" for e in self.extractors if dialect in e.dialects]
        return sorted(words)
