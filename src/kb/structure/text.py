"""Whole lines as spans: identity by text with whitespace folded, for files without a grammar."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import defaultdict
from typing import NamedTuple


class TextPlace(NamedTuple):
    """Lines without the blank ones at their ends, and which of the file's equal texts they are."""

    fingerprint: bytes
    n: int
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int


class TextLines:
    """The lines of one file, indexed so that equal texts are counted without reading it again."""

    def __init__(self, source: bytes) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._words: list[bytes] = []
        self._word_at: list[int] = []
        """Index of a line's first word; one more entry than there are lines."""
        at = 0
        for line in source.splitlines(keepends=True):
            self._word_at.append(len(self._words))
            self._words.extend(line.split())
            self._starts.append(at)
            self._ends.append(at + len(line.rstrip(b"\r\n")))
            at += len(line)
        self._word_at.append(len(self._words))
        self._by_first_word: dict[bytes, list[int]] = defaultdict(list)
        for line_number, first in enumerate(self._word_at[:-1]):
            if first != self._word_at[line_number + 1]:
                self._by_first_word[self._words[first]].append(line_number)

    def place(self, start_line: int, end_line: int) -> TextPlace:
        """The place of lines `start_line` to `end_line` (1-based, inclusive).

        Raises:
            ValueError: no such lines, or nothing but blanks in them.
        """
        first, last = start_line - 1, end_line - 1
        if not 0 <= first <= last < len(self._starts):
            raise ValueError(f"the file has no lines {start_line}-{end_line}")
        while first <= last and self._is_blank(first):
            first += 1
        while last >= first and self._is_blank(last):
            last -= 1
        if first > last:
            raise ValueError(f"lines {start_line}-{end_line} are blank")
        words = self._words[self._word_at[first] : self._word_at[last + 1]]
        equal_before = sum(self._begins_equal(line, words) for line in self._earlier(words[0], first))
        return TextPlace(
            hashlib.sha256(b" ".join(words)).digest(),
            equal_before,
            self._starts[first],
            self._ends[last],
            first + 1,
            last + 1,
        )

    def _is_blank(self, line: int) -> bool:
        return self._word_at[line] == self._word_at[line + 1]

    def _earlier(self, word: bytes, line: int) -> list[int]:
        candidates = self._by_first_word[word]
        return candidates[: bisect_left(candidates, line)]

    def _begins_equal(self, line: int, words: list[bytes]) -> bool:
        """Whether whole lines from `line` on hold exactly `words`."""
        begin = self._word_at[line]
        end = begin + len(words)
        if self._words[begin:end] != words:
            return False
        at = bisect_left(self._word_at, end)
        return at < len(self._word_at) and self._word_at[at] == end
