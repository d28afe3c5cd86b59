"""What the place of a file says about an answer, before its words are read."""

from __future__ import annotations

import re

_TESTS = re.compile(
    r"(^|/)(tests?|testing|__tests__)(/|$)|(^|/)(test_[^/]*|[^/]*_test|conftest)\.\w+$", re.IGNORECASE
)
_EXAMPLES = re.compile(
    r"(^|/)(examples?|samples?|demos?|docs_src|benchmarks?|asv_bench|vendor(ed)?|_vendor)(/|$)", re.IGNORECASE
)
_ABOUT_TESTS = re.compile(r"\b(tests?|testing|tested|fixtures?|mock\w*|conftest)\b", re.IGNORECASE)
_ABOUT_EXAMPLES = re.compile(r"\b(examples?|samples?|demos?|tutorials?|benchmarks?)\b", re.IGNORECASE)

TESTS = 0.5
EXAMPLES = 0.5


def path_prior(path: str, query: str, path_filter: str | None) -> float:
    """1, or less for a test or an example where the question is not about those.

    A path filter that names tests or examples asks for them.
    """
    asked = f"{path_filter or ''}/"
    prior = 1.0
    if _TESTS.search(path) and not (_ABOUT_TESTS.search(query) or _TESTS.search(asked)):
        prior *= TESTS
    if _EXAMPLES.search(path) and not (_ABOUT_EXAMPLES.search(query) or _EXAMPLES.search(asked)):
        prior *= EXAMPLES
    return prior
