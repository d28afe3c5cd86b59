"""Where the strings of a TOML document stand: a small scanner, to be checked against `tomllib`.

`tomllib` gives values without places. The scanner gives places with values; a caller uses a place only
where both agree on the value (`lines_of`), and falls back to the whole table or file where they do not.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[^\s,\]}#]+(?: \d{2}:[^\s,\]}#]+)?")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}


DEEPEST = 64
"""Levels of values inside values, and parts of a key; real documents have a handful of either."""


class Place(NamedTuple):
    """A value's text (a string's value, anything else as written) and its lines, 1-based inclusive."""

    value: str
    start: int
    end: int
    is_string: bool


class TomlError(ValueError):
    """The scanner does not understand the document here."""


class TooDeepError(TomlError):
    """Values or keys are nested deeper than any real document; reading on costs the square of the depth."""


class TomlScanner:
    """Reads a document once; `places` has every leaf value by its path, `tables` every header's line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.places: dict[Path, Place] = {}
        self.tables: dict[Path, int] = {}
        self.too_deep = False
        """The document is deeper than `DEEPEST`: it is not for `tomllib` either, which recurses on it."""
        self._arrays: dict[Path, int] = {}
        self._depth = 0

    def scan(self) -> TomlScanner:
        """Itself, with every place found before the first thing that it does not understand."""
        table: Path = ()
        try:
            while self._skip(newlines=True):
                if self._peek() == "[":
                    table = self._header()
                else:
                    self._pair(table)
        except TooDeepError:
            self.too_deep = True
        except (ValueError, IndexError):
            return self
        return self

    def _peek(self, size: int = 1) -> str:
        return self.text[self.at : self.at + size]

    def _advance(self, size: int = 1) -> str:
        taken = self.text[self.at : self.at + size]
        self.line += taken.count("\n")
        self.at += size
        return taken

    def _skip(self, *, newlines: bool) -> bool:
        """Past blanks and comments; False at the end."""
        blanks = " \t\r\n" if newlines else " \t"
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in blanks:
                self._advance()
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def _expect(self, text: str) -> None:
        if self._peek(len(text)) != text:
            raise TomlError(text)
        self._advance(len(text))

    def _header(self) -> Path:
        line = self.line
        several = self._peek(2) == "[["
        self._expect("[[" if several else "[")
        path = self._resolve(self._key())
        self._expect("]]" if several else "]")
        if several:
            count = self._arrays.get(path, -1) + 1
            self._arrays[path] = count
            path = (*path, count)
        self.tables[path] = line
        return path

    def _resolve(self, keys: list[str]) -> Path:
        """A header's path, through the newest element of every array of tables on the way."""
        path: Path = ()
        for place, key in enumerate(keys):
            path = (*path, key)
            if path in self._arrays and place < len(keys) - 1:
                path = (*path, self._arrays[path])
        return path

    def _key(self) -> list[str]:
        parts = []
        while True:
            self._skip(newlines=False)
            if self._peek() in ('"', "'"):
                parts.append(self._string())
            else:
                match = _BARE.match(self.text, self.at)
                if match is None:
                    raise TomlError("key")
                parts.append(match.group())
                self._advance(len(match.group()))
            self._skip(newlines=False)
            if self._peek() != ".":
                return parts
            if len(parts) >= DEEPEST:
                raise TooDeepError("key")
            self._advance()

    def _pair(self, table: Path) -> None:
        path = (*table, *self._key())
        self._expect("=")
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip(newlines=False)
        char, start = self._peek(), self.line
        if char in ('"', "'"):
            value = self._string()
            self.places[path] = Place(value, start, self.line, is_string=True)
        elif char and char in "[{":
            self._advance()
            self._depth += 1
            if self._depth > DEEPEST:
                raise TooDeepError("value")
            (self._array if char == "[" else self._inline)(path)
            self._depth -= 1
        else:
            match = _PLAIN.match(self.text, self.at)
            if match is None:
                raise TomlError("value")
            self._advance(len(match.group()))
            self.places[path] = Place(match.group(), start, self.line, is_string=False)

    def _array(self, path: Path) -> None:
        count = 0
        while self._skip(newlines=True):
            if self._peek() == "]":
                self._advance()
                return
            self._value((*path, count))
            count += 1
            self._skip(newlines=True)
            if self._peek() == ",":
                self._advance()
        raise TomlError("]")

    def _inline(self, path: Path) -> None:
        while self._skip(newlines=True):
            if self._peek() == "}":
                self._advance()
                return
            self._pair(path)
            self._skip(newlines=True)
            if self._peek() == ",":
                self._advance()
        raise TomlError("}")

    def _string(self) -> str:
        quote = self._peek()
        long = self._peek(3) == quote * 3
        self._advance(3 if long else 1)
        if long and self._peek() == "\n":
            self._advance()
        elif long and self._peek(2) == "\r\n":
            self._advance(2)
        closing = quote * 3 if long else quote
        parts: list[str] = []
        while not self.text.startswith(closing, self.at):
            char = self._advance()
            if not char or (char == "\n" and not long):
                raise TomlError("string")
            parts.append(self._escape() if char == "\\" and quote == '"' else char)
        self._advance(len(closing))
        while long and self._peek() == quote:  # up to two quotes may stand before the closing three
            parts.append(self._advance())
        return "".join(parts).replace("\r\n", "\n")

    def _escape(self) -> str:
        char = self._advance()
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char and char in "uUx":
            size = {"x": 2, "u": 4, "U": 8}[char]
            return chr(int(self._advance(size), 16))
        if char and char in " \t\r\n":
            # A line that ends with a backslash: blanks up to the next text are left out.
            while self._peek() and self._peek() in " \t\r\n":
                self._advance()
            return ""
        raise TomlError("escape")
