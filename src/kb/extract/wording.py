"""The words of Python source that a formatter cannot change: no comments, no punctuation, no layout."""

from __future__ import annotations

import re

_BODIES = (
    r"'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''",
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""',
    r"'[^'\\\n]*(?:\\.[^'\\\n]*)*'",
    r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"',
)
"""A string from its first quote to its last."""
_PREFIX = "rRbBuUfFtT"
_STRING = rf"[{_PREFIX}]{{0,2}}(?:{'|'.join(_BODIES)})"
_BETWEEN = r"(?:\s|\\\n|#[^\n]*\n)*"
# Strings that stand side by side are one string: formatters join and split them. Every alternative begins
# with a character of its own, which lets the search skip what begins none; the first string's prefix
# stands before the match.
_FROM_QUOTE = re.compile(
    "|".join([*(rf"{body}(?:{_BETWEEN}{_STRING})*" for body in _BODIES), r"#[^\n]*"]), re.DOTALL
)
_ONE = re.compile(_STRING, re.DOTALL)
_ESCAPE = re.compile(r"\\(?:\n|.)", re.DOTALL)
_WORD = re.compile(r"\w+")
_APART = "".join(chr(code) if chr(code).isalnum() or code == ord("_") else " " for code in range(128))
"""For `str.translate`: whatever is no part of a word of ASCII, as a blank."""
_CAPITAL_IN_NUMBER = re.compile(r"\b[0-9]\w*[A-Z]")


def words_of(source: str, most: int) -> str:
    """The first `most` words of the source in order, single blanks between them.

    Strings give the words of their values, without prefix and escapes; numbers are in lower case.
    """
    text = _without_syntax(source)
    # Nearly all source is ASCII, where blanks can be put between the words at a fifth of the search's price.
    words = (text.translate(_APART).split() if text.isascii() else _WORD.findall(text))[:most]
    joined = " ".join(words)
    if text.isascii() and _CAPITAL_IN_NUMBER.search(joined) is None:
        return joined
    return " ".join([word.lower() if word[0].isdigit() else word for word in words])


def _without_syntax(source: str) -> str:
    """The source with the values of its strings and without its comments."""
    parts = []
    at = 0
    for found in _FROM_QUOTE.finditer(source):
        start = begin = found.start()
        if source[start] == "#":
            parts.append(source[at:start])
        else:
            while begin > at and start - begin < 2 and source[begin - 1] in _PREFIX:
                begin -= 1
            parts.append(source[at:begin])
            strings, quote = source[begin : found.end()], source[start]
            if strings[-1] == quote and strings.count(quote) == 2:
                parts.append(_content(strings))  # one string in plain quotes
            else:
                parts.append("".join([_content(one) for one in _ONE.findall(strings)]))
        at = found.end()
    parts.append(source[at:])
    return " ".join(parts)


def _content(literal: str) -> str:
    """What stands between the quotes, escapes as blanks."""
    quote = literal[-1]
    prefix, _, rest = literal.partition(quote)
    text = rest[2:-3] if rest.startswith(quote * 2) and len(rest) >= 5 else rest[:-1]
    return text if "\\" not in text or "r" in prefix.lower() else _ESCAPE.sub(" ", text)
