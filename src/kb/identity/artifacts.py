"""Artifact identity: kind, logical key, groundings, extractor and body; refused without a span."""

from __future__ import annotations

from typing import Any

import msgspec

from kb.errors import GroundingError, IntegrityError
from kb.identity.encoding import digest_fields, encode_fields
from kb.model.artifacts import Artifact, ArtifactDraft

_encode_json = msgspec.json.Encoder(order="sorted").encode
"""Byte for byte `json.dumps` with sorted keys, no blanks and no ASCII escapes, at a tenth of its time."""


def canonical_json(value: Any) -> bytes:
    """The one UTF-8 JSON form of a JSON-able value: sorted keys, no blanks, no floats.

    Raises:
        IntegrityError: the value holds a float or something JSON cannot say.
    """
    _refuse_floats(value)
    try:
        return _encode_json(value)
    except (TypeError, ValueError) as error:
        raise IntegrityError(f"an artifact's body is not JSON: {error}") from error


_SPAN_ID = 32
_PLAIN = frozenset({str, int, bool, type(None)})


def _refuse_floats(value: Any) -> None:
    kind = type(value)
    if kind in _PLAIN:
        return
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise IntegrityError("an artifact's body has a key that is not text")
            if type(item) not in _PLAIN:
                _refuse_floats(item)
    elif kind is list or kind is tuple:
        for item in value:
            if type(item) not in _PLAIN:
                _refuse_floats(item)
    elif isinstance(value, float):
        raise IntegrityError("an artifact's body holds a float; write it as text")
    else:
        raise IntegrityError(f"an artifact's body holds a {kind.__name__}, which is not JSON")


def body_digest(draft: ArtifactDraft) -> bytes:
    """sha256 (32 bytes) of what the artifact says: title, body, text, confidence and links."""
    links = sorted(set(draft.links)) if len(draft.links) > 1 else draft.links
    return digest_fields(
        (
            draft.title.encode("utf-8"),
            canonical_json(draft.body if type(draft.body) is dict else dict(draft.body)),
            draft.text.encode("utf-8"),
            str(draft.confidence).encode("ascii"),
            encode_fields([part.encode("utf-8") for link in links for part in link]),
        )
    )


def seal_draft(
    draft: ArtifactDraft,
    extractor: str,
    extractor_version: int,
    *,
    prompt_version: str | None = None,
    model_id: str | None = None,
) -> Artifact:
    """The artifact of a draft: the only way to an artifact id.

    The id is sha256 over kind, logical key, the sorted unique (span id, role) pairs, extractor id and
    version, prompt version and model id where there are any, and the body digest.

    Raises:
        GroundingError: the draft stands on no span.
        IntegrityError: the body cannot be encoded.
    """
    pairs = sorted({(span, role) for _, span, _, role in draft.groundings})
    if not pairs:
        raise GroundingError(
            f"{draft.kind} {draft.logical_key!r} of extractor {extractor} stands on no span",
            logical_key=draft.logical_key,
            extractor=extractor,
        )
    if any(len(span) != _SPAN_ID for span, _ in pairs):
        raise GroundingError(f"{draft.logical_key!r} stands on something that is not a span id")
    digest = body_digest(draft)
    artifact_id = digest_fields(
        (
            draft.kind.encode("utf-8"),
            draft.logical_key.encode("utf-8"),
            encode_fields([part for span, role in pairs for part in (span, role.encode("utf-8"))]),
            extractor.encode("utf-8"),
            str(extractor_version).encode("ascii"),
            b"" if prompt_version is None else b"p" + prompt_version.encode("utf-8"),
            b"" if model_id is None else b"m" + model_id.encode("utf-8"),
            digest,
        )
    )
    method = "deterministic" if model_id is None else "llm_grounded"
    return Artifact(artifact_id, digest, extractor, extractor_version, draft, method)
