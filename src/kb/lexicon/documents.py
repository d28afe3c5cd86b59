"""Which words an artifact is found by."""

from __future__ import annotations

from kb.lexicon.analysis import words_of


def document_words(logical_key: str, title: str, text: str) -> list[str]:
    """Words of the text, of the title, and of the logical key without its kind, as written.

    Title and key hold the names that people and programs know the thing by, so these words count once
    more than the text alone would count them.
    """
    _, _, name = logical_key.partition(":")
    return words_of(f"{text}\n{title}\n{name or logical_key}")
