"""From a text to the terms it is indexed and asked by. A change here needs a new LEXICON_VERSION."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from kb.lexicon.stem import english_stem
from kb.lexicon.words import split_word

LEXICON_VERSION = 1
"""Part of what a search index was built with; another version means building it anew."""

_WORD = re.compile(r"\w+")
_PHRASE = re.compile(r'"([^"]+)"|\u201c([^\u201d]+)\u201d')

_LONGEST_TERM = 128
"""Characters. Longer words are data (keys, digests, minified code) and are found by their beginning."""

# fmt: off
_STOP = frozenset([
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this",
    "to", "was", "will", "with",
])
"""Function words that carry nothing on their own; not indexed. A part of an identifier is no such word."""

_ASKING = frozenset([
    "did", "do", "does", "had", "has", "have", "how", "what", "when", "where", "which", "who", "whom",
    "whose", "why",
])
# fmt: on
"""Words that only make a sentence a question. Indexed, and left out of what is asked when anything else is."""

_cache: dict[str, tuple[str, ...]] = {}
_CACHE_LIMIT = 400_000


class Analysis(NamedTuple):
    """A text as a bag of terms."""

    terms: dict[str, int]
    """Term to how often it occurs, in order of first occurrence."""
    length: int
    """Sum of the counts: the document's length in BM25."""


def analyze(texts: Iterable[str]) -> Analysis:
    """The terms of a document's texts taken together.

    A plain word gives its stem. A compound identifier gives its parts' stems and itself, written
    together in lower case, so that `getUserById`, `get_user_by_id` and `getuserbyid` find each other.
    """
    counts: dict[str, int] = {}
    for text in texts:
        for word in words_of(text):
            for term in terms_of_word(word):
                counts[term] = counts.get(term, 0) + 1
    return Analysis(counts, sum(counts.values()))


def words_of(text: str) -> list[str]:
    """The words of a text as written, in order."""
    return _WORD.findall(text if text.isascii() else unicodedata.normalize("NFC", text))


def analyze_query(text: str) -> Analysis:
    """The terms that a query asks for: as `analyze`, without the words that only make it a question."""
    return analyze([" ".join(query_words(text))])


def spellings(word: str) -> tuple[str, ...]:
    """The terms that a word written together may be indexed by, in whatever case and with whatever underscores.

    Case tells parts from each other, so `IndexState` is indexed as `indexstate`, and `indexstate` by its
    stem. Empty where it may not be indexed at all: a function word.
    """
    together = word.replace("_", "").lower()
    if not together or together in _STOP:
        return ()
    return tuple(dict.fromkeys(form[:_LONGEST_TERM] for form in (english_stem(together), together)))


def query_words(text: str) -> list[str]:
    """The words that a query is asked by, as written: all but those that only make it a question."""
    words = words_of(text)
    return [word for word in words if word.lower() not in _ASKING] or words


def phrases(text: str) -> list[str]:
    """The quoted parts of a query that is nothing else, to be found exactly; those without a word are none.

    Quotes inside a sentence are part of how people write: there the words count, as everywhere.
    """
    if re.search(r"\w", _PHRASE.sub(" ", text)):
        return []
    found = (first or second for first, second in _PHRASE.findall(text))
    return [" ".join(phrase.split()) for phrase in found if _WORD.search(phrase)]


def terms_of_word(word: str) -> tuple[str, ...]:
    """The terms of one word, remembered: a corpus has far fewer words than occurrences."""
    known = _cache.get(word)
    if known is not None:
        return known
    parts = split_word(word)
    if len(parts) == 1:
        lower = parts[0].lower()
        terms: tuple[str, ...] = () if lower in _STOP else (english_stem(lower)[:_LONGEST_TERM],)
    else:
        lowered = [part.lower() for part in parts]
        whole = "".join(lowered)[:_LONGEST_TERM]
        terms = tuple(english_stem(part)[:_LONGEST_TERM] for part in lowered)
        terms += (whole,) if whole else ()
    if len(_cache) >= _CACHE_LIMIT:
        _cache.clear()
    _cache[word] = terms
    return terms
