"""The use case `kb eval retrieval`: measures a suite of judged queries against a snapshot.

A suite is JSONL, one query a line: `{"id": "...", "query": "...", "relevant": {"<target>": grade}}`.
`relevant` may also be a list (grade 1 each). A target is a file's path or a logical key; a list of
targets may mix both. A file ranks where its first unit does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from kb.errors import NotFoundError, UsageError
from kb.retrieve.metrics import bootstrap_interval, measure, paired_interval
from kb.retrieve.reach import reach_lines, reach_of
from kb.retrieve.search import (
    EmbeddingChoice,
    choose_model,
    filters_note,
    select_searchable,
    words_need_no_model,
)
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import Hit, SearchOptions
from kb.store.parts import Parts
from kb.store.units import SnapshotUnits

CUTOFFS = (1, 5, 10)
_DEPTH = 100
"""Units that are ranked, so that ten files can be told apart among them."""


class JudgedQuery(NamedTuple):
    """One line of a suite."""

    id: str
    query: str
    relevant: dict[str, int]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class QueryOutcome(_Record):
    """What one query came to."""

    id: str
    query: str
    ranking: tuple[str, ...]
    """The first ten targets."""
    relevant: dict[str, int]
    measures: dict[str, float]


class EvaluationReport(_Record):
    """A suite's measures: means over its queries, 95 % bootstrap intervals, and every query."""

    suite: str
    repository: str
    sha: str
    mode: str
    model: str | None
    queries: int
    unjudged: int
    """Queries without a relevant target; they are not measured."""
    targets: int = 0
    """Relevant targets of the measured queries, each once."""
    matched: int = 0
    """Units that pass the filters."""
    absent: tuple[str, ...] = ()
    """Targets that are not in the snapshot: they count as not found."""
    without_units: tuple[str, ...] = ()
    """Targets that are files of the snapshot from which no unit was made."""
    filtered_out: tuple[str, ...] = ()
    """Targets no unit of which passes the filters."""
    notices: tuple[str, ...] = ()
    """What of this a reader should know before the measures."""
    measures: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    outcomes: tuple[QueryOutcome, ...]


class Comparison(_Record):
    """This run less another one, over the queries that both have: (difference, low, high) by measure."""

    queries: int
    differences: dict[str, tuple[float, float, float]]


def evaluate(
    parts: Parts,
    suite: Path,
    options: SearchOptions,
    *,
    repo: str | None = None,
    sha: str | None = None,
    embedding: EmbeddingChoice | None = None,
) -> EvaluationReport:
    """Runs every judged query of the suite and measures the rankings.

    Raises:
        UsageError: the suite is not in the form above, or judges no query.
        NotFoundError: no such file or snapshot; nothing passes the filters; or no target can be found.
    """
    judged, unjudged = read_suite(suite)
    wide = SearchOptions(
        k=_DEPTH,
        kinds=options.kinds,
        path=options.path,
        mode=options.mode,
        fusion=options.fusion,
        dense_share=options.dense_share,
        twins=True,  # a suite may judge either form
        expand=options.expand,
    )
    with parts.database.reader() as connection:
        selected, view = select_searchable(parts, connection, repo, sha)
        with words_need_no_model():
            choice = embedding or EmbeddingChoice()
            model, provider = choose_model(connection, selected.snapshot, wide, choice)
            legs = Legs(connection, view, model, provider)
            stored = SnapshotUnits(connection, selected.snapshot.lineage_id, selected.snapshot.ordinal)
            reach = reach_of(legs, connection, stored, _targets(judged), wide)
            filters = filters_note(connection, view, wide)
            outcomes = [_outcome(one, rank(legs, one.query, wide).hits) for one in judged]
    names = list(outcomes[0].measures)
    values = {name: [one.measures[name] for one in outcomes] for name in names}
    return EvaluationReport(
        suite=suite.name,
        repository=selected.row.name,
        sha=selected.snapshot.label,
        mode=options.mode if model is not None else "lexical",
        model=None if model is None else model.model_id,
        queries=len(outcomes),
        unjudged=unjudged,
        **reach._asdict(),
        notices=(*filters, *reach_lines(reach)),
        measures={name: round(sum(column) / len(column), 4) for name, column in values.items()},
        intervals={name: _rounded(bootstrap_interval(column)) for name, column in values.items()},
        outcomes=tuple(outcomes),
    )


def _targets(judged: Sequence[JudgedQuery]) -> set[str]:
    return {target for one in judged for target, grade in one.relevant.items() if grade > 0}


def _outcome(judged: JudgedQuery, hits: Sequence[Hit]) -> QueryOutcome:
    ranking = targets(hits, judged.relevant)
    return QueryOutcome(
        id=judged.id,
        query=judged.query,
        ranking=tuple(ranking[:10]),
        relevant=judged.relevant,
        measures={
            name: round(value, 6) for name, value in measure(ranking, judged.relevant, CUTOFFS).items()
        },
    )


def targets(hits: Sequence[Hit], relevant: dict[str, int]) -> list[str]:
    """What the hits stand for in the terms of the judgements: logical keys where a query is judged by
    keys, else files; each once, where it comes first."""
    by_key = any(":" in target for target in relevant)
    names = (
        hit.document.logical_key if by_key and not _is_file(hit, relevant) else hit.document.path
        for hit in hits
    )
    return list(dict.fromkeys(names))


def _is_file(hit: Hit, relevant: dict[str, int]) -> bool:
    return hit.document.path in relevant and hit.document.logical_key not in relevant


def compare(report: EvaluationReport, other: EvaluationReport) -> Comparison:
    """This run less the other one, query by query.

    Raises:
        UsageError: the runs have no query in common.
    """
    before = {one.id: one.measures for one in other.outcomes}
    pairs = [(before[one.id], one.measures) for one in report.outcomes if one.id in before]
    if not pairs:
        raise UsageError("the two runs have no query in common")
    differences = {}
    for name in pairs[0][1]:
        if name in pairs[0][0]:
            old, new = [one[name] for one, _ in pairs], [one[name] for _, one in pairs]
            low, high = _rounded(paired_interval(old, new))
            differences[name] = (round((sum(new) - sum(old)) / len(pairs), 4), low, high)
    return Comparison(queries=len(pairs), differences=differences)


def read_report(path: Path) -> EvaluationReport:
    """A report that was saved with `--json`.

    Raises:
        NotFoundError: no such file.
        UsageError: it is no such report.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return EvaluationReport.model_validate({k: v for k, v in document.items() if k != "schema"})
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, AttributeError):
        raise UsageError(
            f"{path} is no report", hint="save one: kb eval retrieval --json > run.json"
        ) from None


def read_suite(path: Path) -> tuple[list[JudgedQuery], int]:
    """The judged queries of a suite, and how many others it has.

    Raises:
        NotFoundError: no such file.
        UsageError: a line is not in the form, an id comes twice, or nothing is judged.
    """
    try:
        # By line feeds only: what else ends a line for Python may stand inside a string of JSON.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no suite: it is not UTF-8") from None
    queries = [_query(line, f"{path.name}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if len({one.id for one in queries}) != len(queries):
        raise UsageError(f"{path.name} has two queries with one id")
    judged = [one for one in queries if any(grade > 0 for grade in one.relevant.values())]
    if not judged:
        raise UsageError(f"{path.name} judges no query")
    return judged, len(queries) - len(judged)


def _query(line: str, where: str) -> JudgedQuery:
    try:
        row: Any = json.loads(line)
        query, relevant = row["query"], row["relevant"]
        return JudgedQuery(str(row["id"]), _text(query), _grades(relevant))
    except (ValueError, TypeError, KeyError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            f"{where} is no judged query: {problem}",
            hint='a line is {"id": "...", "query": "...", "relevant": {"path or key": 1}}',
        ) from None


def _text(query: Any) -> str:
    if not isinstance(query, str) or not query.strip():
        raise ValueError("its query is no text")
    query.encode()  # half of a surrogate pair cannot be asked
    return query


def _grades(relevant: Any) -> dict[str, int]:
    grades = dict.fromkeys(relevant, 1) if isinstance(relevant, list) else relevant
    if not isinstance(grades, dict):
        raise TypeError("`relevant` is neither targets with grades nor a list of targets")
    if not all(type(grade) in (int, float) and grade % 1 == 0 for grade in grades.values()):
        raise ValueError("a grade is no whole number")
    for target in grades:
        str(target).encode()  # half of a surrogate pair names nothing, and neither does what has a NUL
        if "\0" in str(target):
            raise ValueError("a target is no text")
    return {str(target): int(grade) for target, grade in grades.items()}


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], 4), round(interval[1], 4)
