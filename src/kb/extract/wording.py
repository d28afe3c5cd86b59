"""The words of Python source that a formatter cannot change: no comments, no punctuation, no layout."""

from __future__ import annotations

import re

_STRING = (
    r"[rRbBuUfFtT]{0,2}"
    r"(?:'{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'{3}"
    r'|"{3}[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"{3}'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")'
)
_BETWEEN = r"(?:\s|\\\n|#[^\n]*\n)*"
# Strings that stand side by side are one string: formatters join and split them.
_STRINGS_OR_COMMENT = re.compile(rf"{_STRING}(?:{_BETWEEN}{_STRING})*|#[^\n]*", re.DOTALL)
_ONE = re.compile(_STRING, re.DOTALL)
_ESCAPE = re.compile(r"\\(?:\n|.)", re.DOTALL)
_WORD = re.compile(r"\w+")


def words_of(source: str, most: int) -> str:
    """The first `most` words of the source in order, single blanks between them.

    Strings give the words of their values, without prefix and escapes; numbers are in lower case.
    """
    plain = _STRINGS_OR_COMMENT.sub(_value, source)
    words = _WORD.findall(plain)[:most]
    return " ".join(word.lower() if word[0].isdigit() else word for word in words)


def _value(found: re.Match[str]) -> str:
    strings = found[0]
    if strings[0] == "#":
        return " "
    values = [_content(one) for one in _ONE.findall(strings)]
    return f" {''.join(values)} "


def _content(literal: str) -> str:
    """What stands between the quotes, escapes as blanks."""
    quote = literal[-1]
    prefix, _, rest = literal.partition(quote)
    text = rest[2:-3] if rest.startswith(quote * 2) and len(rest) >= 5 else rest[:-1]
    return text if "\\" not in text or "r" in prefix.lower() else _ESCAPE.sub(" ", text)
