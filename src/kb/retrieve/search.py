"""The use case `kb search`: ranked units of one snapshot, each with its provenance and its score's parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from kb.errors import NotFoundError, UsageError
from kb.lexicon import analyze_query, phrases
from kb.model.served import Unit
from kb.providers import EmbeddingProvider, open_provider
from kb.providers.api import EndpointError
from kb.providers.content import names_of
from kb.providers.tokens import token_counter
from kb.retrieve.paths import path_pattern
from kb.retrieve.search_engine import rank
from kb.retrieve.search_legs import Legs
from kb.retrieve.search_request import Hit, Ranking, SearchOptions
from kb.retrieve.select import Selected, select_snapshot
from kb.retrieve.units import UnitMaker
from kb.store import locks
from kb.store.catalog import SnapshotRow
from kb.store.database import Connection
from kb.store.parts import Parts
from kb.store.search import index, members, reading, vectors
from kb.store.search.reading import SearchView
from kb.store.search.vectors import ModelRow
from kb.store.units import SnapshotUnits


@dataclass(frozen=True, slots=True)
class EmbeddingChoice:
    """Which model to ask with. All None: the one that the snapshot was embedded with last."""

    provider: str | None = None
    model: str | None = None
    url: str | None = None
    """Of an OpenAI-compatible endpoint."""
    key: str | None = None


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class ScoreParts(_Record):
    """Where a score comes from (docs/search.md)."""

    lexical: float | None
    """BM25 with the snapshot's own statistics; None where the lexical leg was not asked."""
    dense: float | None
    """Cosine similarity; None without vectors."""
    lexical_scaled: float
    dense_scaled: float
    dense_share: float
    evidence: float
    prior: float
    coherence: float
    related: str | None = None
    terms: dict[str, float] = {}


class SearchHit(_Record):
    """A unit that was found."""

    rank: int
    score: float
    parts: ScoreParts
    unit: Unit


class SearchResult(_Record):
    """The answer to a search."""

    repository: str
    sha: str
    notices: tuple[str, ...]
    query: str
    mode: str
    model: str | None
    """The embedding model that was asked; None for a lexical search."""
    hits: tuple[SearchHit, ...]
    omitted: int = 0
    """Hits that did not fit the token budget."""
    matched: int = 0
    """Units that passed the filters, whatever their score."""
    coverage: float = 0.0
    """How much of the query the best hit covers, 0..1: low where the snapshot has no answer."""


def search(
    parts: Parts,
    query: str,
    options: SearchOptions,
    *,
    repo: str | None = None,
    sha: str | None = None,
    token_budget: int | None = None,
    source: bool = False,
    embedding: EmbeddingChoice | None = None,
) -> SearchResult:
    """The best units for a query in the snapshot that the selection rules choose.

    A snapshot that is sealed but not yet in the search index is put there first. Without vectors the
    search is lexical, and a notice says what to run.

    Raises:
        UsageError: an empty query; dense mode, or another model than the snapshot's, without vectors.
        NotFoundError: no such repository or snapshot.
        EndpointError: the model is behind an endpoint that does not answer; the hint says what needs none.
    """
    if not query.strip():
        raise UsageError("the query is empty", hint="ask with words or names: kb search 'order total'")
    with parts.database.reader() as connection:
        # One repeatable-read transaction from here on: a collector that runs meanwhile takes nothing away.
        selected, view = select_searchable(parts, connection, repo, sha)
        choice = embedding or EmbeddingChoice()
        with words_need_no_model():
            model, provider = choose_model(connection, selected.snapshot, options, choice)
            ranking = rank(Legs(connection, view, model, provider), query, options)
        stored = SnapshotUnits(connection, selected.snapshot.lineage_id, selected.snapshot.ordinal)
        rows = stored.by_pk([hit.document.artifact_pk for hit in ranking.hits])
        units, omitted = within_budget(UnitMaker(selected).units(rows, source=source), token_budget)
        notices = _notices(selected, ranking, options)
        notices += _why_nothing(connection, view, query, options, ranking)
    return SearchResult(
        repository=selected.row.name,
        sha=selected.snapshot.label,
        notices=tuple(notices),
        query=query,
        mode=ranking.mode,
        model=model.model_id if model is not None and ranking.mode != "lexical" else None,
        hits=tuple(
            SearchHit(rank=place, score=round(hit.score, 6), parts=_score_parts(hit), unit=unit)
            for place, (hit, unit) in enumerate(zip(ranking.hits[: len(units)], units, strict=True), 1)
        ),
        omitted=omitted,
        matched=ranking.matched,
        coverage=round(ranking.coverage, 4),
    )


def select_searchable(
    parts: Parts, connection: Connection, repo: str | None, sha: str | None
) -> tuple[Selected, SearchView]:
    """The chosen snapshot and its index, made now where it is sealed but not in the index yet.

    Both are read in one transaction, which stays open: a search in it reads that very state.

    Raises:
        NotFoundError: no such repository or snapshot, or the index was made past it.
        UsageError: as `select_snapshot`.
    """
    selected = select_snapshot(connection, repo, sha, Path.cwd(), parts.home)
    view = reading.open_view(connection, selected.snapshot.lineage_id, selected.snapshot.ordinal)
    if view is None:
        # What is made now can only be seen by a new transaction, and the choice has to hold in that one.
        connection.rollback()
        _make_view(parts, selected.snapshot)
        selected = select_snapshot(connection, repo, sha, Path.cwd(), parts.home)
        view = _opened_view(connection, selected.snapshot)
    return selected, view


def _make_view(parts: Parts, snapshot: SnapshotRow) -> None:
    """Puts what is sealed of the snapshot's lineage, but not yet in the search index, there."""
    with parts.database.writer() as writer:
        writer.autocommit = True
        with locks.writing(writer):  # no collector while documents refer to what it may erase
            index.catch_up(writer, snapshot.lineage_id)


def _opened_view(connection: Connection, snapshot: SnapshotRow) -> SearchView:
    view = reading.open_view(connection, snapshot.lineage_id, snapshot.ordinal)
    if view is None:
        raise NotFoundError(
            f"{snapshot.label[:12]} is not in the search index", hint="index it again: kb index --full"
        )
    return view


def choose_model(
    connection: Connection, snapshot: SnapshotRow, options: SearchOptions, choice: EmbeddingChoice
) -> tuple[ModelRow | None, EmbeddingProvider | None]:
    """The model to ask with and its opened provider; two Nones for a lexical search.

    Raises:
        UsageError: the wanted model is not the snapshot's, or dense mode has no vectors; says what to run.
    """
    if options.mode == "lexical":
        if options.diversity is not None:
            raise UsageError("diversity compares vectors", hint="leave out --mode lexical, or --diversity")
        return None, None
    known = vectors.snapshot_models(connection, snapshot.snapshot_id)
    at = snapshot.label.removeprefix("worktree:")[:12]
    if not known:
        named = choice.provider is not None or choice.model is not None
        if named or options.mode == "dense" or options.diversity is not None:
            raise UsageError(f"{at} is not embedded", hint=f"run: {_embed_command(at, choice)}")
        return None, None
    fitting = [row for row in known if choice.provider in (None, row.provider)]
    if choice.model is not None:
        by_name = [row for row in fitting if _is_named(row, choice.model)]
        fitting = by_name or (fitting if choice.provider is not None else [])
    if not fitting:
        raise _mismatch(at, known, choice)
    row = fitting[0]
    # A model that is called by its name is opened by what it was embedded with: its folder.
    wanted = choice.model if choice.model not in (None, *names_of(row.model_id)) else row.locator
    provider = open_provider(row.provider, wanted, url=choice.url, key=choice.key)
    matching = [one for one in fitting if one.model_id == provider.model_id]
    if not matching:
        raise _mismatch(at, known, EmbeddingChoice(row.provider, wanted), provider.model_id)
    if matching[0].dimensions != provider.dimensions:
        raise UsageError(
            f"{provider.model_id} gives {provider.dimensions} dimensions now, and {matching[0].dimensions} "
            f"when {at} was embedded",
            hint="name the model that it was embedded with (--model), or search with --mode lexical",
        )
    return matching[0], provider


@contextmanager
def words_need_no_model() -> Iterator[None]:
    """For a question on the command line: where the model's endpoint fails, its error says what works without."""
    try:
        yield
    except EndpointError as error:
        without = "without the model: --mode lexical"
        hint = f"{error.hint} Or {without}" if error.hint else f"ask {without}"
        raise type(error)(error.message, hint=hint, **error.data) from error


def _mismatch(
    at: str, known: list[ModelRow], choice: EmbeddingChoice, opened: str | None = None
) -> UsageError:
    """The error for a choice that the snapshot is not embedded with; `opened` is what the choice was found to be."""
    wanted = opened or " ".join(filter(None, (choice.provider, choice.model)))
    return UsageError(
        f"{at} is embedded with {', '.join(row.model_id for row in known)}, not with {wanted}",
        hint=f"run: {_embed_command(at, choice)}",
    )


def _embed_command(at: str, choice: EmbeddingChoice) -> str:
    """What to run so that the snapshot has the chosen model; a model's provider has to be named there."""
    provider = choice.provider or ("<its provider>" if choice.model else None)
    flags = f"--provider {provider} " if provider else ""
    flags += f"--model {choice.model} " if choice.model else ""
    return f"kb embed {flags}--sha {at}"


def _is_named(row: ModelRow, model: str) -> bool:
    """Whether somebody who says `model` means this one: its name, its folder, or what it was opened by."""
    folder = Path(model).expanduser()
    names = {model, folder.resolve().name} if folder.is_dir() else {model}
    return not names.isdisjoint(names_of(row.model_id)) or row.locator == model


def _notices(selected: Selected, ranking: Ranking, options: SearchOptions) -> list[str]:
    notices = [selected.notice] if selected.notice else []
    if options.mode == "hybrid" and ranking.mode == "lexical":
        at = selected.snapshot.label.removeprefix("worktree:")[:12]
        notices.append(f"lexical only: {at} is not embedded; run: kb embed --sha {at}")
    if ranking.unknown_terms:
        notices.append(f"no text here has: {', '.join(ranking.unknown_terms[:10])}")
    return notices


def _why_nothing(
    connection: Connection, view: SearchView, query: str, options: SearchOptions, ranking: Ranking
) -> list[str]:
    """What a person may have meant otherwise: filters that nothing passes, and a query without words."""
    why = filters_note(connection, view, options)
    if ranking.mode != "dense" and not analyze_query(query).terms and not (phrases(query) and ranking.hits):
        why.append("no word to search for: signs and function words (the, of, is...) are not indexed")
    return why


def filters_note(connection: Connection, view: SearchView, options: SearchOptions) -> list[str]:
    """What to say of kinds that no unit is of, and of a path that none stands at."""
    why = []
    missing = [kind for kind in dict.fromkeys(options.kinds) if not _holds(connection, view, kind)]
    if missing:
        held = [kind for kind in view.kinds if _holds(connection, view, kind)]
        why.append(f"no unit is of kind {', '.join(missing)}; kinds here: {', '.join(held)}")
    if options.path is not None:
        pattern = path_pattern(options.path)
        if not members.count(reading.of_paths(connection, view, pattern)):
            why.append(f"no unit stands in files at {options.path}")
    return why


def _holds(connection: Connection, view: SearchView, kind: str) -> bool:
    return members.count(reading.of_kinds(connection, view, (kind,))) > 0


def within_budget(units: Sequence[Unit], token_budget: int | None) -> tuple[Sequence[Unit], int]:
    """The first units whose titles and texts fit the budget, at least one; and how many were left out.

    Tokens are counted as the MCP server counts them (docs/mcp.md).
    """
    if token_budget is None:
        return units, 0
    counter = token_counter()
    spent = 0
    for number, unit in enumerate(units):
        spent += counter.count(f"{unit.title}\n{unit.text}")
        if number and spent > token_budget:
            return units[:number], len(units) - number
    return units, 0


def _score_parts(hit: Hit) -> ScoreParts:
    parts = hit.parts
    return ScoreParts(
        lexical=_rounded(parts.lexical),
        dense=_rounded(parts.dense),
        lexical_scaled=round(parts.lexical_scaled, 4),
        dense_scaled=round(parts.dense_scaled, 4),
        dense_share=parts.dense_share,
        evidence=round(parts.evidence, 4),
        prior=parts.prior,
        coherence=round(parts.coherence, 4),
        related=parts.related,
        terms={term: round(value, 4) for term, value in parts.terms.items()},
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
