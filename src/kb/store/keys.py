"""Keys of look-ups and facts in the length that the database takes."""

from __future__ import annotations

import hashlib

_MOST = 1000
"""Bytes; the database's CHECK is a little above."""


def stored_key(key: str) -> str:
    """The key, or for a long one its beginning and its digest: two keys never become one."""
    data = key.encode("utf-8")
    if len(data) <= _MOST:
        return key
    digest = hashlib.sha256(data).hexdigest()
    return data[: _MOST - len(digest)].decode("utf-8", "ignore") + digest
