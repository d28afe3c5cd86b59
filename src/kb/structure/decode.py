r"""From a blob's bytes to UTF-8 source that a parser may read, or the reason why not.

Offsets in the result are offsets in the blob, unless the blob declares another encoding (then they
are offsets in its UTF-8 form). Lines end at `\n`, `\r\n` or a lone `\r`, as Python reads them and as
`bytes.splitlines` splits them.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from kb.model.spans import BlobGap


class Limits(NamedTuple):
    """What a single blob may cost."""

    max_bytes: int = 2 * 1024 * 1024
    """Blobs above become a `too_large` gap: one 10 MB line took 13 s and 1.9 GB to parse."""
    max_nodes: int = 1_000_000
    """Trees of more syntax nodes become a `too_large` gap: each costs some 300 bytes while it is read."""
    max_depth: int = 1000
    """Syntax nested deeper becomes a `too_deep` gap."""


_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_LONE_CR = re.compile(rb"\r(?!\n)")
_NOT_FOR_SOURCE = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"})
"""Text codecs of Python that no source file is written in, and that are slow or warn."""


def decode(data: bytes, limits: Limits, *, python: bool) -> bytes | BlobGap:
    """The blob as UTF-8 without NUL and without lone carriage returns, or the gap that it is."""
    if len(data) > limits.max_bytes:
        return BlobGap("too_large", f"{len(data)} bytes, the limit is {limits.max_bytes}")
    if b"\0" in data:
        return BlobGap("nul_bytes", f"NUL byte at offset {data.index(0)}")
    codec = _declared_codec(data) if python else "utf-8"
    if codec is None:
        return BlobGap("unknown_encoding", "the declared encoding is not one that source is written in")
    if codec != "utf-8":
        recoded = _recode(data, codec)
        if recoded is None:
            return BlobGap("undecodable", f"not valid {codec}, as declared")
        data = recoded
        if b"\0" in data:
            return BlobGap("nul_bytes", f"NUL character after decoding as {codec}")
    elif not _is_utf8(data):
        return BlobGap("not_utf8", "not valid UTF-8, and no other encoding is declared")
    return _LONE_CR.sub(b"\n", data) if b"\r" in data else data


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _recode(data: bytes, codec: str) -> bytes | None:
    try:
        return data.decode(codec).encode("utf-8")
    except (UnicodeError, LookupError):  # LookupError: a codec between bytes, such as zlib
        return None


def _declared_codec(data: bytes) -> str | None:
    """Python's name for the encoding that PEP 263 finds; None for one that kb does not read."""
    for line in data.split(b"\n", 2)[:2]:
        found = _COOKIE.match(line)
        if found:
            return _codec(found[1].decode("ascii", "replace"))
        if not _BLANK.match(line.rstrip(b"\r").removeprefix(codecs.BOM_UTF8)):
            break
    return "utf-8"


def _codec(declared: str) -> str | None:
    try:
        info = codecs.lookup(declared)
    except LookupError:
        return None
    name = info.name.replace("-", "_")
    if name in {"utf_8", "utf_8_sig", "ascii"}:
        return "utf-8"  # ascii too: a UTF-8 file that says ascii is common, and both agree on the rest
    return None if name in _NOT_FOR_SOURCE else info.name
