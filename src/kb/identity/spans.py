"""Span identity: what a span is, never where it stands."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from kb.identity.encoding import digest_fields, encode_fields

NORMALIZATION_VERSION = 1
"""Bumped by hand when the normalisation of any language changes what a fingerprint covers."""


def span_ids(language: str) -> Callable[[str, str, bytes], bytes]:
    """`span_id` for the many spans of one language: called with kind, symbol path and fingerprint."""
    prefixes: dict[str, bytes] = {}

    def identify(span_kind: str, symbol_path: str, structural_fingerprint: bytes) -> bytes:
        prefix = prefixes.get(span_kind)
        if prefix is None:
            fields = (str(NORMALIZATION_VERSION), language, span_kind)
            prefix = prefixes[span_kind] = encode_fields(field.encode("utf-8") for field in fields)
        rest = encode_fields((symbol_path.encode("utf-8"), structural_fingerprint))
        return hashlib.sha256(prefix + rest).digest()

    return identify


def span_id(language: str, span_kind: str, symbol_path: str, structural_fingerprint: bytes) -> bytes:
    """sha256 (32 bytes) over normalisation version, language, kind, symbol path and fingerprint."""
    return digest_fields(
        (
            str(NORMALIZATION_VERSION).encode("ascii"),
            language.encode("utf-8"),
            span_kind.encode("utf-8"),
            symbol_path.encode("utf-8"),
            structural_fingerprint,
        )
    )
