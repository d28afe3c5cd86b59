"""Where a list goes on: an opaque text that names the snapshot, the question and the place in the list."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import NamedTuple

from kb.errors import UsageError

_HINT = "pass next_cursor as it came, with the same arguments; or ask without a cursor"


class Cursor(NamedTuple):
    """A place in the list that answers one question about one snapshot."""

    snapshot_id: int
    question: str
    offset: int
    order: str = ""
    """What the list was put in order with, where that can be one thing or another."""

    def encoded(self) -> str:
        """As it is sent; of the same length for every offset below a million."""
        packed = f"{self.snapshot_id}.{self.offset:06d}.{self.question}.{self.order}"
        return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")


def question_digest(*parts: object) -> str:
    """What must be equal for a cursor to go on with a question: 12 hex digits."""
    packed = json.dumps(parts, default=list, ensure_ascii=True)
    return hashlib.sha256(packed.encode()).hexdigest()[:12]


def decode_cursor(text: str, question: str) -> Cursor:
    """The cursor in a text.

    Raises:
        UsageError: it is none, or goes on with another question.
    """
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode(
            "ascii"
        )
        snapshot_id, offset, digest, order = packed.split(".")
        cursor = Cursor(int(snapshot_id), digest, int(offset), order)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise UsageError("this is no cursor", hint=_HINT) from None
    if cursor.offset < 0 or not 0 <= cursor.snapshot_id < 1 << 62:
        raise UsageError("this is no cursor", hint=_HINT)
    if cursor.question != question:
        raise UsageError("the cursor belongs to another question", hint=_HINT)
    return cursor
