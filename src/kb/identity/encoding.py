"""An unambiguous encoding of fields for hashing: no two lists of fields encode alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def encode_fields(fields: Iterable[bytes]) -> bytes:
    """Each field as its length (8 bytes, big-endian) followed by its bytes."""
    return b"".join([len(field).to_bytes(8, "big") + field for field in fields])


def digest_fields(fields: Iterable[bytes]) -> bytes:
    """sha256 (32 bytes) of `encode_fields`."""
    return hashlib.sha256(encode_fields(fields)).digest()
