"""An unambiguous encoding of fields for hashing: no two lists of fields encode alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

_LENGTHS = tuple(length.to_bytes(8, "big") for length in range(1024))
"""Lengths of short fields, ready-made: identity is computed for every span and artifact."""


def encode_fields(fields: Iterable[bytes]) -> bytes:
    """Each field as its length (8 bytes, big-endian) followed by its bytes."""
    return b"".join(
        [
            (_LENGTHS[length] if (length := len(field)) < 1024 else length.to_bytes(8, "big")) + field
            for field in fields
        ]
    )


def digest_fields(fields: Iterable[bytes]) -> bytes:
    """sha256 (32 bytes) of `encode_fields`."""
    return hashlib.sha256(encode_fields(fields)).digest()
