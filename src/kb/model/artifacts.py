"""Artifacts as an extractor drafts them and as the store keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

JsonObject = Mapping[str, Any]
"""JSON-able: str keys; str, int, bool, None, list and object values. No floats: they do not round-trip."""


SHARED = "~~"
"""In a logical key that several files claim, before the path of the file that means its own; in no other."""


class Grounding(NamedTuple):
    """Where an artifact stands: the n-th occurrence of a span in the file at `path`, in a role."""

    path: str
    span_id: bytes
    n: int
    role: str
    """What the span is to the artifact: `definition`, `handler`, `response_model`..."""


class Link(NamedTuple):
    """An edge to another artifact, named by its logical key; it may not exist in the snapshot."""

    relation: str
    target_key: str


@dataclass(frozen=True, slots=True)
class ArtifactDraft:
    """A unit of knowledge as `link` yields it. Holds no path, line, offset or layout in `body`."""

    kind: str
    logical_key: str
    title: str
    body: JsonObject
    text: str
    """What a person would want to read; a function of kind, logical key and body."""
    groundings: tuple[Grounding, ...]
    links: tuple[Link, ...] = ()
    confidence: int = 100
    """Per cent."""


class Artifact(NamedTuple):
    """A draft with its identity, made only by `kb.identity.artifacts.seal_draft`."""

    artifact_id: bytes
    body_digest: bytes
    extractor: str
    extractor_version: int
    draft: ArtifactDraft
    body_json: bytes
    """The draft's body in its canonical form, as it was digested and as it is stored."""
    method: str = "deterministic"


class LookupRow(NamedTuple):
    """A question that linking one file asked about the rest of the snapshot, with its answer's digest."""

    path: str
    extractor: str
    kind: str
    """`definition`, `exists` or `inverse`."""
    key: str
    answer: bytes
    """16 bytes; sixteen zero bytes when the answer was "absent"."""


@dataclass(slots=True)
class LinkedFile:
    """What linking one file with one extractor yielded."""

    path: str
    extractor: str
    artifacts: list[Artifact] = field(default_factory=list)
    lookups: list[LookupRow] = field(default_factory=list)
