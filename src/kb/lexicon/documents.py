"""Which words of an artifact it is found by."""

from __future__ import annotations

from kb.lexicon.analysis import Analysis, analyze


def document_terms(logical_key: str, title: str, text: str) -> Analysis:
    """Terms of the text, of the title, and of the logical key without its kind.

    Title and key hold the names that people and programs know the thing by, so these words count once
    more than the text alone would count them.
    """
    _, _, name = logical_key.partition(":")
    return analyze((text, title, name or logical_key))
