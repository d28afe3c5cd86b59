"""Span identity: what a span is, never where it stands."""

from __future__ import annotations

from kb.identity.encoding import digest_fields

NORMALIZATION_VERSION = 1
"""Bumped by hand when the normalisation of any language changes what a fingerprint covers."""


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
