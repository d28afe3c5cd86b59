r"""The values of literals, so that two spellings of one value are equal.

Strings are evaluated here, not with `ast` or `unicodedata`, so that a value is the same bytes on every
Python: UTF-8, lone surrogates as their three bytes, and `\N{...}` kept by name between two 0xFF bytes.
Numbers keep their text, spelled as black and ruff format spell it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_SIMPLE = {
    b"\n": b"",
    b"\\": b"\\",
    b"'": b"'",
    b'"': b'"',
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}
_NAME_MARK = b"\xff"
_HIGHEST = 0x10FFFF
_ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|N\{([^}]*)\}|([\s\S]))|(\{\{|\}\})"
)
_BYTES_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|([\s\S]))")
_SPELLED = re.compile(rb"[^'\"]*(?:'''|\"\"\"|'|\")")
_FLOAT = re.compile(rb"([0-9_]*)\.([0-9_]*)")


_QUOTES = frozenset(b"'\"")


class Spelling(NamedTuple):
    """How a string literal is written."""

    raw: bool
    is_bytes: bool
    formatted: bool
    template: bool
    begin: int
    """Bytes of prefix and opening quotes."""
    quotes: int


_UNSPELLED = Spelling(raw=False, is_bytes=False, formatted=False, template=False, begin=0, quotes=0)
"""Python 2's backquotes, which the grammar takes for a string."""


def spelling(text: bytes) -> Spelling:
    """Prefix and quotes of a string literal's text."""
    found = _SPELLED.match(text)
    return _UNSPELLED if found is None else _spelling_of(found[0])


@lru_cache(maxsize=256)
def _spelling_of(opening: bytes) -> Spelling:
    prefix = opening.rstrip(b"'\"")
    marks = prefix.lower()
    return Spelling(
        raw=b"r" in marks,
        is_bytes=b"b" in marks,
        formatted=b"f" in marks,
        template=b"t" in marks,
        begin=len(opening),
        quotes=len(opening) - len(prefix),
    )


def simple_value(text: bytes) -> bytes | None:
    """The value of a literal without prefix, escapes and carriage returns; None for any other."""
    quote = text[0] if text else 0
    if quote not in _QUOTES or b"\\" in text or b"\r" in text:
        return None
    return text[3:-3] if len(text) > 2 and text[1] == quote else text[1:-1]


def string_value(text: bytes) -> tuple[bytes, bool]:
    """The value of a plain literal's text (no interpolations), and whether it is a bytes literal."""
    simple = simple_value(text)
    if simple is not None:
        return simple, False
    how = spelling(text)
    content = text[how.begin : len(text) - how.quotes]
    return content_value(content, how), how.is_bytes


def content_value(content: bytes, how: Spelling) -> bytes:
    """The value of text between a literal's quotes; `{{` and `}}` are one brace in a formatted one."""
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    braces = how.formatted or how.template
    if how.raw:
        return content.replace(b"{{", b"{").replace(b"}}", b"}") if braces else content
    if b"\\" not in content:
        return content.replace(b"{{", b"{").replace(b"}}", b"}") if braces else content
    if how.is_bytes:
        return _BYTES_ESCAPE.sub(_byte_of, content)
    if braces:
        return _ESCAPE.sub(lambda found: found[7][:1] if found[7] else _text_of(found), content)
    return _ESCAPE.sub(lambda found: found[7] or _text_of(found), content)


def _text_of(found: re.Match[bytes]) -> bytes:
    octal, two, four, eight, name, other, _ = found.groups()
    if octal is not None:
        return _character(int(octal, 8))
    digits = two or four or eight
    if digits is not None:
        code = int(digits, 16)
        return _character(code) if code <= _HIGHEST else found[0]
    if name is not None:
        return _NAME_MARK + name.upper() + _NAME_MARK
    return _SIMPLE.get(other, found[0])


def _byte_of(found: re.Match[bytes]) -> bytes:
    octal, two, other = found.groups()
    if octal is not None:
        return bytes((int(octal, 8) & 0xFF,))
    if two is not None:
        return bytes((int(two, 16),))
    return _SIMPLE.get(other, found[0])


def _character(code: int) -> bytes:
    return chr(code).encode("utf-8", "surrogatepass")


def number_spelling(text: bytes) -> bytes:
    """The text of a number as black and ruff format spell it (`0xFF`, `1.0e5`, `0.5`, `1j`)."""
    text = text.lower()
    if text[:2] in (b"0x", b"0o", b"0b"):
        return text
    suffix = b""
    if text.endswith((b"j", b"l")):
        text, suffix = text[:-1], text[-1:]
    mantissa, exponent_mark, exponent = text.partition(b"e")
    found = _FLOAT.fullmatch(mantissa)
    if found:
        mantissa = (found[1] or b"0") + b"." + (found[2] or b"0")
    return mantissa + exponent_mark + exponent.removeprefix(b"+") + suffix


def as_text(value: bytes) -> str:
    """A string's value as text that holds no NUL and no lone surrogate: those are shown as escapes."""
    if value.isascii():
        text = value.decode("ascii")
        return text.replace("\0", "\\x00") if "\0" in text else text
    parts = value.split(_NAME_MARK)
    for at in range(1, len(parts), 2):
        parts[at] = b"\\N{" + parts[at] + b"}"
    text = b"".join(parts).decode("utf-8", "surrogatepass").replace("\0", "\\x00")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
