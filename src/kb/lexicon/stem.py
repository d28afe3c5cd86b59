"""English stemming that leaves the words of other languages alone."""

from __future__ import annotations

import snowballstemmer

_stemmer = snowballstemmer.stemmer("english")

_FINAL_LETTERS = frozenset("cdegilmnrsty")
"""Snowball's English rules all start from one of these last letters; any other word is its own stem."""

_SHORTEST = 4
"""Words of three letters stay as they are: `was`, `bus`, `ids` gain nothing and lose their meaning."""


def english_stem(word: str) -> str:
    """The Snowball stem of a lower-case ASCII word; every other word comes back unchanged.

    Words with letters beyond ASCII (Russian, German umlauts...) and words with digits are not English
    words: an English rule would cut a foreign ending.
    """
    if len(word) < _SHORTEST or word[-1] not in _FINAL_LETTERS or not word.isascii() or not word.isalpha():
        return word
    return str(_stemmer.stemWord(word))
