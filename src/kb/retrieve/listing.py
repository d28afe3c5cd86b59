"""The use cases `list_contracts`, `list_entities`, `list_events`, `list_settings`: one kind of knowledge, filtered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb.retrieve.library import Library, Opened
from kb.retrieve.pages import Paging, UnitsAnswer, opened_page, units_page
from kb.store.serving import Listed

CONTRACTS = ("contract",)
ENTITIES = ("entity",)
EVENTS = ("event", "cache")
SETTINGS = ("setting", "command")


@dataclass(frozen=True)
class ListFilter:
    """Which units of the kinds are wanted; a filter that is None lets everything through."""

    kinds: tuple[str, ...]
    name: str | None = None
    """Part of the logical key, in any case."""
    folder: str | None = None
    """A file or folder that the unit stands in."""
    framework: str | None = None
    key_prefixes: tuple[str, ...] = ()
    """Beginnings of the logical key, one of which it must have."""
    methods: tuple[str, ...] = ()
    """HTTP methods, one of which a contract must have."""
    route: str | None = None
    """Beginning of a contract's path; where none begins so, part of it."""
    has_field: str | None = None
    """Name of a field that an entity has, its inherited ones included."""


def list_units(
    library: Library, wanted: ListFilter, *, repo: str | None, sha: str | None, paging: Paging
) -> UnitsAnswer:
    """The units that fit, by logical key. An empty list means that the snapshot has none of them."""
    question = (
        "list",
        wanted.kinds,
        wanted.name,
        wanted.folder,
        wanted.framework,
        wanted.key_prefixes,
        wanted.methods,
        wanted.route,
        wanted.has_field,
    )
    with opened_page(library, repo, sha, paging.cursor, *question) as (opened, start, digest):
        order = opened.kept(question, lambda: _fitting(opened, wanted))
        note = None if order else _none(opened, wanted)
        return units_page(opened, order, start, digest, paging, note=note)


def _fitting(opened: Opened, wanted: ListFilter) -> list[int]:
    listed: Sequence[Listed] = opened.kept(
        ("of_kinds", wanted.kinds), lambda: opened.lists.of_kinds(wanted.kinds)
    )
    fitting = [one for one in listed if _fits(one, wanted)]
    order = [one.artifact_pk for one in _on_route(fitting, wanted.route)]
    if wanted.folder is not None:
        inside = opened.lists.under(wanted.folder.removeprefix("./"), order)
        order = [pk for pk in order if pk in inside]
    return order


def _on_route(contracts: Sequence[Listed], route: str | None) -> Sequence[Listed]:
    """Those whose path begins with the route, else those that have it inside: a prefix is not known to all."""
    if not route:
        return contracts
    paths = [(one, one.logical_key.partition(" ")[2]) for one in contracts]
    begun = [one for one, path in paths if path.startswith(route)]
    return begun or [one for one, path in paths if route in path]


def _fits(one: Listed, wanted: ListFilter) -> bool:
    if wanted.methods and not one.logical_key.startswith(tuple(f"api:{name} " for name in wanted.methods)):
        return False
    if wanted.name is not None and wanted.name.lower() not in one.logical_key.lower():
        return False
    if wanted.key_prefixes and not one.logical_key.startswith(wanted.key_prefixes):
        return False
    if wanted.framework is not None and wanted.framework.lower() != one.framework:
        return False
    return wanted.has_field is None or wanted.has_field in one.fields


def _none(opened: Opened, wanted: ListFilter) -> str:
    whole: Sequence[Listed] = opened.kept(
        ("of_kinds", wanted.kinds), lambda: opened.lists.of_kinds(wanted.kinds)
    )
    kinds = " or ".join(wanted.kinds)
    if not whole:
        return f"nothing there: the snapshot has no unit of kind {kinds}"
    return f"nothing there: none of {len(whole)} units of kind {kinds} fits the filters"
