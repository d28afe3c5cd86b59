"""Files and folders as a question names them: plain, or as a glob."""

from __future__ import annotations

import re

GLOB = re.compile(r"[*?\[]")


def plain_path(path: str | None) -> str | None:
    """A file or folder as the snapshot has it, without `./` and a slash at its end; None for all of it."""
    plain = (path or "").strip().removeprefix("./").rstrip("/")
    return None if plain in ("", ".") else plain


def path_pattern(path: str) -> str:
    """A folder, a file or a glob (`*` inside a name, `**` across folders) as a regular expression."""
    plain = plain_path(path)
    if plain is None:
        return "^"
    if not GLOB.search(plain):
        return f"^{_literal(plain)}(/|$)"
    pieces = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", plain)
    body = "".join(pieces.get(part, _literal(part)) for part in parts)
    anchored = body if "/" in plain else f"(.*/)?{body}"
    return f"^{anchored}(/|$)"


def _literal(text: str) -> str:
    """Text as PostgreSQL's regular expressions read it literally."""
    return re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", text)
