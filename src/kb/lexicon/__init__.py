"""The words that texts are searched by, the same for what is indexed and for what is asked."""

from kb.lexicon.analysis import (
    LEXICON_VERSION,
    Analysis,
    analyze,
    analyze_query,
    phrases,
    query_words,
    spellings,
    terms_of_word,
    words_of,
)
from kb.lexicon.documents import document_words

__all__ = [
    "LEXICON_VERSION",
    "Analysis",
    "analyze",
    "analyze_query",
    "document_words",
    "phrases",
    "query_words",
    "spellings",
    "terms_of_word",
    "words_of",
]
