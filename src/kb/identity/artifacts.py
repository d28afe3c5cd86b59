"""Artifact identity: kind, logical key, groundings, extractor and body; refused without a span."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from struct import Struct
from typing import Any

import msgspec

from kb.errors import GroundingError, IntegrityError
from kb.identity.encoding import encode_fields
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
_length = Struct(">Q").pack
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
    return _body_digest(draft, _body_json(draft))


def _body_json(draft: ArtifactDraft) -> bytes:
    return canonical_json(draft.body if type(draft.body) is dict else dict(draft.body))


def _body_digest(draft: ArtifactDraft, body: bytes) -> bytes:
    title, text = draft.title.encode("utf-8"), draft.text.encode("utf-8")
    confidence = str(draft.confidence).encode("ascii")
    once = sorted(set(draft.links)) if len(draft.links) > 1 else draft.links
    links = b"".join(
        [
            _FIELDS[relation] + _length(len(key)) + key
            for relation, target in once
            for key in (target.encode("utf-8"),)
        ]
    )
    # `digest_fields` written out: every artifact of a repository passes here.
    return hashlib.sha256(
        b"".join(
            (
                _length(len(title)), title, _length(len(body)), body, _length(len(text)), text,
                _length(len(confidence)), confidence, _length(len(links)), links,
            )
        )
    ).digest()  # fmt: skip


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
    if not draft.groundings:
        raise GroundingError(
            f"{draft.kind} {draft.logical_key!r} of extractor {extractor} stands on no span",
            logical_key=draft.logical_key,
            extractor=extractor,
        )
    stands_on = _stands_on(draft)
    body = _body_json(draft)
    digest = _body_digest(draft, body)
    key = draft.logical_key.encode("utf-8")
    artifact_id = hashlib.sha256(
        b"".join(
            (
                _FIELDS[draft.kind], _length(len(key)), key, _length(len(stands_on)), stands_on,
                _made_by(extractor, extractor_version, prompt_version, model_id), _DIGEST, digest,
            )
        )
    ).digest()  # fmt: skip
    method = "deterministic" if model_id is None else "llm_grounded"
    return Artifact(artifact_id, digest, extractor, extractor_version, draft, body, method)


def _stands_on(draft: ArtifactDraft) -> bytes:
    """The sorted unique (span id, role) pairs as fields."""
    grounds = draft.groundings
    parts: list[bytes] = []
    for span, role in (
        sorted({(one.span_id, one.role) for one in grounds})
        if len(grounds) > 1
        else ((grounds[0].span_id, grounds[0].role),)
    ):
        if len(span) != _SPAN_ID:
            raise GroundingError(f"{draft.logical_key!r} stands on something that is not a span id")
        parts += (_DIGEST, span, _FIELDS[role])
    return b"".join(parts)


@lru_cache(maxsize=1024)
def _made_by(extractor: str, version: int, prompt_version: str | None, model_id: str | None) -> bytes:
    """The fields that all drafts of one extractor share."""
    return encode_fields(
        (
            extractor.encode("utf-8"),
            str(version).encode("ascii"),
            b"" if prompt_version is None else b"p" + prompt_version.encode("utf-8"),
            b"" if model_id is None else b"m" + model_id.encode("utf-8"),
        )
    )


class _Fields(dict[str, bytes]):
    """Text -> the encoded field of it, for words that come again: kinds, roles, relations."""

    def __missing__(self, text: str) -> bytes:
        if len(self) >= _MOST_WORDS:
            self.clear()
        field = self[text] = encode_fields((text.encode("utf-8"),))
        return field


_MOST_WORDS = 1000
_FIELDS = _Fields()
_DIGEST = _length(_SPAN_ID)
"""The length in front of a digest."""
