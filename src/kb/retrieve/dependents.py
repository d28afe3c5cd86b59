"""The use case `dependents`: what imports a thing or refers to it, so far as the snapshot knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kb.model.served import AnsweredFrom, Unit
from kb.retrieve.budget import shorten_unit
from kb.retrieve.library import MOST_PLACES, Library, Opened
from kb.retrieve.pages import MOST_SHOWN, Paging, cursor_after, opened_page
from kb.retrieve.targets import find_target
from kb.store.serving import Edge

_OWN = frozenset({"member_of", "passage_of", "describes"})
"""Edges from the parts of a thing to itself: they say where it is, not who depends on it."""
_NOTE = "imports and references that kb resolved; calls are not among them yet"


class Dependent(BaseModel):
    """A unit that refers to the target, or to something inside it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    relation: Annotated[str, Field(description="How it refers: imports, extends, handled_by, relates_to...")]
    of: Annotated[str, Field(description="Logical key that it refers to: the target, or a part of it.")]
    unit: Unit


class DependentsAnswer(BaseModel):
    """Who depends on a target, in one snapshot."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answered_from: AnsweredFrom
    targets: Annotated[tuple[str, ...], Field(description="Logical keys that the target stands for.")]
    dependents: tuple[Dependent, ...]
    total: Annotated[int, Field(ge=0, description="Dependents on all pages together.")]
    omitted: Annotated[int, Field(ge=0, description="Dependents that follow after this page.")]
    next_cursor: Annotated[
        str | None, Field(description="Pass as `cursor`, with the same arguments, for the next page.")
    ] = None
    note: str


def dependents(
    library: Library, target: str, *, repo: str | None, sha: str | None, paging: Paging
) -> DependentsAnswer:
    """The units with an edge to the target or to what is defined inside it, by their own key.

    Raises:
        NotFoundError: nothing is called so; the nearest names are in the hint.
    """
    question = ("dependents", target)
    with opened_page(library, repo, sha, paging.cursor, *question) as (opened, start, digest):
        keys, edges = opened.kept(question, lambda: _edges(opened, target), lambda one: len(one[1]))
        return _page(opened, keys, edges, start, digest, paging)


def _edges(opened: Opened, target: str) -> tuple[tuple[str, ...], list[Edge]]:
    found = find_target(opened, target)
    named = opened.lists.keys_of(found.artifacts)
    direct = [named[pk][1] for pk in found.artifacts]
    if found.matched in ("line", "file", "span"):
        direct = [key for key in direct if key.startswith(("symbol:", "module:", "entity:"))]
    # A symbol, its entity and its module are one thing under several keys.
    twins = [f"{kind}:{key.partition(':')[2]}" for key in direct for kind in ("symbol", "entity", "module")
             if key.startswith(("symbol:", "entity:", "module:", "surface:", "package:"))]  # fmt: skip
    keys = list(dict.fromkeys([*direct, *twins]))
    inside = _parts(opened, found.artifacts, keys)
    own = set(found.artifacts)
    edges = [
        edge
        for edge in opened.lists.edges_to([*keys, *inside])
        if edge.relation not in _OWN and edge.artifact_pk not in own
    ]
    # Who imports `a.b` from `a` has an edge to both: the nearer one is enough.
    once: dict[tuple[int, str], Edge] = {}
    for edge in edges:
        kept = once.get((edge.artifact_pk, edge.relation))
        if kept is None or len(edge.target_key) > len(kept.target_key):
            once[edge.artifact_pk, edge.relation] = edge
    return tuple(direct), list(once.values())


def _parts(opened: Opened, artifacts: Sequence[int], keys: Sequence[str]) -> list[str]:
    """Keys of what is defined inside the modules and classes among the targets."""
    names = [key.partition(":")[2] + "." for key in keys if key.startswith(("symbol:", "module:"))]
    paths = {place.path for row in opened.stored.by_pk(list(artifacts)[:20]) for place in row.places}
    return sorted(
        {
            one.logical_key
            for path in sorted(paths)[:20]
            for one in opened.lists.in_file(path)
            if one.kind == "symbol" and one.logical_key.partition(":")[2].startswith(tuple(names))
        }
    ) if names else []  # fmt: skip


def _page(
    opened: Opened, keys: tuple[str, ...], edges: Sequence[Edge], start: int, digest: str, paging: Paging
) -> DependentsAnswer:
    source = opened.source()

    def load(numbers: Sequence[int]) -> list[Dependent]:
        rows = {row.artifact_pk: row for row in opened.stored.by_pk([edges[n].artifact_pk for n in numbers])}
        units = opened.made([rows[edges[n].artifact_pk] for n in numbers], most=MOST_PLACES)
        return [
            Dependent(relation=edges[n].relation, of=edges[n].target_key, unit=unit)
            for n, unit in zip(numbers, units, strict=True)
        ]

    def answer(items: Sequence[Dependent], after: int) -> DependentsAnswer:
        return DependentsAnswer(
            answered_from=source,
            targets=keys[:20],
            dependents=tuple(items),
            total=len(edges),
            omitted=len(edges) - after,
            next_cursor=cursor_after(opened, digest, after, len(edges)),
            note=_NOTE if edges else f"nothing there: no unit refers to it; known are {_NOTE}",
        )

    limit = min(paging.limit or MOST_SHOWN, MOST_SHOWN)
    return paging.budget.fit(range(len(edges)), start, limit, load, answer, _shorten)


def _shorten(item: Dependent, over: Callable[[Dependent], int]) -> Dependent | None:
    unit = shorten_unit(item.unit, lambda unit: over(item.model_copy(update={"unit": unit})))
    return None if unit is None else item.model_copy(update={"unit": unit})
