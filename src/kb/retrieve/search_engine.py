"""Ranks a snapshot's documents for a query: legs, fusion, priors, diversity, expansion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kb.retrieve.search_calibration import SOURCES, dense_share, source_of
from kb.retrieve.search_fusion import capped, diversified, ranked
from kb.retrieve.search_legs import Filter, Legs, Question
from kb.retrieve.search_request import Hit, Ranking, SearchOptions
from kb.retrieve.search_weighing import Weighed
from kb.store.search.reading import Document

DEPTH = 200
"""Candidates of each leg. What other units of a file say is only heard of those that are among them."""
LESSER_DEPTH = 100
"""So many are enough where units of other files come first: more of them find no more files (docs/search.md). And
where there are many units, more take longer than they are worth."""
MANY = 100_000
"""Units from which on there are many."""
_DEPTH_FOR_FILES = 50
"""Candidates for each hit where files are asked for, one hit of each."""
_RELATED = 0.5
"""What a neighbour inherits of the score of the hit it was found by."""
_SEEDS = 10


def rank(legs: Legs, text: str, options: SearchOptions) -> Ranking:
    """The best documents of the snapshot for `text`.

    Where the snapshot is not embedded the ranking is lexical, and says so by its mode.
    """
    embedded = legs.model is not None
    mode = options.mode if embedded else "lexical"
    question = legs.ask(text, dense=mode != "lexical")
    allowed = legs.filter(options.kinds, options.path, question.phrases)
    depth = _depth(legs.view.present, options)
    with legs.steered():
        lexical, dense, exact = _both(legs, question, allowed, mode, depth)
        documents = {one.doc: one for one in legs.documents(sorted({*lexical, *dense}))}
    weighed = Weighed(documents, lexical, dense, _shares(legs, documents, mode, options))
    weighed.weigh(text, options.path, by_rank=mode == "hybrid" and options.fusion == "rrf")
    order = ranked(weighed.scores)
    related: dict[int, str] = {}
    if options.expand:
        order, related = _expanded(legs, order, allowed, documents)
    order, further = _chosen(legs, order, documents, options)
    terms: Mapping[int, dict[str, float]] = {}
    if options.explain and mode != "dense":
        terms = legs.contributions(question, [doc for doc, _ in order])
    return Ranking(
        hits=[
            Hit(documents[doc], score, weighed.parts(doc, related.get(doc), terms.get(doc)))
            for doc, score in order
        ],
        mode=mode,
        matched=allowed.count,
        exact=exact,
        unknown_terms=question.lexical.unknown,
        coverage=_coverage(question, lexical),
        further=further,
    )


def _depth(present: int, options: SearchOptions) -> int:
    least = DEPTH if present <= MANY and options.spread is None else LESSER_DEPTH
    files = min(_DEPTH_FOR_FILES * options.k, 500) if options.per_file == 1 else 0
    return max(least, 5 * options.k, files)


def _both(
    legs: Legs, question: Question, allowed: Filter, mode: str, depth: int
) -> tuple[dict[int, float], dict[int, float], bool]:
    """The candidates' scores by leg. In hybrid mode each candidate has both: what one leg found the
    other one scores too, so that a document is never judged by half."""
    lexical: dict[int, float] = {}
    dense: dict[int, float] = {}
    exact = True
    if mode != "dense":
        found, exact = legs.lexical(question, allowed, depth)
        lexical = dict(found)
    if mode != "lexical":
        dense = dict(legs.dense(question, allowed, depth))
    if mode == "hybrid":
        lexical.update(legs.lexical_of(question, [doc for doc in dense if doc not in lexical]))
        dense.update(legs.dense_of(question, [doc for doc in lexical if doc not in dense]))
    return lexical, dense, exact


def _shares(
    legs: Legs, documents: Mapping[int, Document], mode: str, options: SearchOptions
) -> dict[int, float]:
    """How much the dense leg counts for each document."""
    fixed = {"lexical": 0.0, "dense": 1.0}.get(mode, options.dense_share)
    if fixed is not None or legs.model is None:
        return dict.fromkeys(documents, fixed or 0.0)
    by_source = {source: dense_share(legs.model.model_id, source) for source in SOURCES}
    return {doc: by_source[source_of(document.path)] for doc, document in documents.items()}


def _expanded(
    legs: Legs, order: Sequence[tuple[int, float]], allowed: Filter, documents: dict[int, Document]
) -> tuple[list[tuple[int, float]], dict[int, str]]:
    """The order with neighbours of the best hits, which inherit half of the score they were found by; and how
    each of those is related."""
    seeds = dict(order[:_SEEDS])
    scores = dict(order)
    found: dict[int, tuple[float, int, str]] = {}
    for source, target, relation in legs.neighbours(list(seeds)):
        inherited = seeds[source] * _RELATED
        if allowed.holds(target) and inherited > scores.get(target, 0.0):
            found[target] = max(found.get(target, (0.0, 0, "")), (inherited, source, relation))
    documents.update({one.doc: one for one in legs.documents([doc for doc in found if doc not in documents])})
    scores.update({target: inherited for target, (inherited, _, _) in found.items()})
    related = {
        target: f"{relation} of {documents[source].logical_key}"
        for target, (_, source, relation) in found.items()
    }
    return ranked(scores), related


def _chosen(
    legs: Legs,
    order: list[tuple[int, float]],
    documents: Mapping[int, Document],
    options: SearchOptions,
) -> tuple[list[tuple[int, float]], dict[str, int]]:
    """The first k, without twins, after the cap of each file and after diversity; and how many units of a file
    come later, as good as they are, because others of it came first."""
    if not options.twins:
        order = capped(order, {doc: _definition(documents[doc]) for doc, _ in order}, 1)
    paths = {doc: documents[doc].path for doc, _ in order}
    if options.per_file is not None:
        order = capped(order, paths, options.per_file)
    if options.diversity is not None:
        near = order[: max(5 * options.k, 50)]
        vectors = legs.vectors_of([doc for doc, _ in near])
        return diversified(near, vectors, options.diversity, options.k), {}
    if options.spread is None:
        return order[: options.k], {}
    first = capped(order, paths, options.spread)
    ahead = {doc for doc, _ in first}
    later = [(doc, score) for doc, score in order if doc not in ahead]
    chosen = [*first, *later][: options.k]
    shown, least = {doc for doc, _ in chosen}, min((score for _, score in chosen), default=0.0)
    held_back = Counter(paths[doc] for doc, score in later if score >= least and doc not in shown)
    return chosen, dict(held_back.most_common())


_FORMS = frozenset({"symbol", "module", "passage"})
"""Kinds in which one definition is found: by its signature and docstring, and by its source."""


def _definition(document: Document) -> tuple[str, str]:
    """The same for the forms of one definition, and for nothing else."""
    form, _, name = document.logical_key.partition(":")
    return document.path, name if form in _FORMS else document.logical_key


def _coverage(question: Question, lexical: Mapping[int, float]) -> float:
    """How much of the query the best text covers, 0..1; one that has a word in two spellings covers it once."""
    best = max(lexical.values(), default=0.0)
    return min(1.0, best / question.ceiling) if question.ceiling else 0.0
