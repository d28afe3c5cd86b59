"""Splits a word into the words it is made of: `getUserById`, `get_user_by_id`, `HTTPServer2`."""

from __future__ import annotations

import re

_ASCII_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def split_word(word: str) -> list[str]:
    r"""The parts of one `\w+` word in order, as written; empty for underscores alone.

    An acronym ends where the next capitalised part begins (`HTTPServer` is HTTP, Server), digits
    stand alone, and letters of any script follow the case rules of their own script.
    """
    parts: list[str] = []
    for piece in word.split("_"):
        if not piece:
            continue
        if piece.isascii():
            parts.extend(_ASCII_PARTS.findall(piece))
        else:
            parts.extend(_split_by_case(piece))
    return parts


def _split_by_case(piece: str) -> list[str]:
    """As the ASCII pattern does, for letters of every script: cut where the class of letter changes."""
    starts = [0]
    for at in range(1, len(piece)):
        before, here = piece[at - 1], piece[at]
        after = piece[at + 1] if at + 1 < len(piece) else ""
        word_begins = here.isupper() and (before.islower() or (before.isupper() and after.islower()))
        if word_begins or before.isdigit() != here.isdigit():
            starts.append(at)
    return [piece[start:end] for start, end in zip(starts, [*starts[1:], len(piece)], strict=True)]
