"""What the place of a file says about an answer, before its words are read.

A question about a repository is about its code, unless it says otherwise: tests, examples, prose,
translations of it and histories of changes repeat the code's words without being the answer.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import and_
from typing import NamedTuple

from kb.retrieve.search_calibration import source_of
from kb.retrieve.standing import EXAMPLES, TESTS

REPEATING = 0.5
"""For each way in which a file repeats what stands elsewhere."""


class _Kind(NamedTuple):
    """Files that repeat, and how a question, or the path it is limited to, asks for them."""

    paths: re.Pattern[str]
    asked: re.Pattern[str]


_KINDS = (
    _Kind(
        TESTS,
        re.compile(r"\b(tests?|testing|tested|fixtures?|mock\w*|conftest)\b", re.IGNORECASE),
    ),
    _Kind(
        EXAMPLES,
        re.compile(r"\b(examples?|samples?|demos?|tutorials?|benchmarks?)\b", re.IGNORECASE),
    ),
    _Kind(
        re.compile(
            r"(^|/)(change_?logs?|changes|history|news|release[-_]?notes|releases|whatsnew|whats[-_]new)"
            r"((/[^/]*)*\.(md|markdown|rst|txt|adoc))?$",
            re.IGNORECASE,
        ),
        re.compile(
            r"\b(change ?logs?|changed|histor\w+|release\w*|versions?|since|deprecat\w+|new in|upgrad\w+"
            r"|migrat\w+)\b",
            re.IGNORECASE,
        ),
    ),
)
_ABOUT_PROSE = re.compile(
    r"\b(docs?|document\w*|guides?|tutorials?|readme|contributing|change ?logs?|release notes"
    r"|why|decisions?|decided|rationale|reasons?|policy|policies|convention\w*|install\w*|licen[cs]e\w*)\b",
    re.IGNORECASE,
)
# Folders of translations: ISO 639-1 but for English, with a region or a script or without.
_TRANSLATED = re.compile(
    r"(^|/)(docs?|i18n|l10n|locales?|translations?)/(source/)?"
    r"(?!en\b)(a[rz]|b[egns]|c[as]|d[ae]|e[lostu]|f[air]|h[eiuy]|hr|i[dst]|ja|k[akmno]|l[tv]|m[klnrsy]"
    r"|n[elo]|p[alt]|r[ou]|s[ikqrvw]|t[aehr]|u[krz]|vi|zh)([-_]\w+)?/"
)


class PathPriors:
    """The priors of paths for one question.

    Args:
        query: the question.
        path_filter: the path it is limited to; one that names tests, examples... asks for them.
    """

    def __init__(self, query: str, path_filter: str | None) -> None:
        asked = f"{path_filter or ''}/"
        # The subject of a long text (an issue, a commit's message); what follows mentions everything.
        query = query.strip().partition("\n")[0]
        repeating = [not (kind.asked.search(query) or kind.paths.search(asked)) for kind in _KINDS]
        code = not (_ABOUT_PROSE.search(query) or source_of(path_filter or "") == "document")
        translated = query.isascii() and not _TRANSLATED.search(asked)
        self._counted = (*repeating, code, translated)
        """Which of the ways to repeat count for this question, as `_ways` has them."""

    def of(self, path: str) -> float:
        """1, or less for a file of a kind that the question does not ask for."""
        return float(REPEATING ** sum(map(and_, self._counted, _ways(path))))


@lru_cache(maxsize=1 << 16)
def _ways(path: str) -> tuple[bool, ...]:
    """In which ways a file repeats what stands elsewhere: those of `_KINDS`, as prose, as a translation."""
    kinds = [kind.paths.search(path) is not None for kind in _KINDS]
    return (*kinds, source_of(path) == "document", _TRANSLATED.search(path) is not None)
