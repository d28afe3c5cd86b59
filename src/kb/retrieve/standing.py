"""Whether a file belongs to what a repository offers, or to its tests or its examples, by its path alone."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

StandsIn = Literal["tests", "examples"]

TESTS = re.compile(
    r"(^|/)(tests?|testing|__tests__)(/|$)|(^|/)(test_[^/]*|[^/]*_test|conftest)\.\w+$", re.IGNORECASE
)
EXAMPLES = re.compile(
    r"(^|/)(examples?|samples?|demos?|docs_src|benchmarks?|asv_bench|vendor(ed)?|_vendor)(/|$)", re.IGNORECASE
)


def stands_in(paths: Collection[str]) -> StandsIn | None:
    """Where all of the files belong aside of what the repository offers; None where one of them does not."""
    if not paths or not all(TESTS.search(path) or EXAMPLES.search(path) for path in paths):
        return None
    return "tests" if any(TESTS.search(path) for path in paths) else "examples"
