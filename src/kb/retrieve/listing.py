"""The use cases `list_contracts`, `list_entities`, `list_events`, `list_settings`: one kind of knowledge, filtered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kb.extract.contracts import registry as contracts
from kb.extract.entities import registry as entities
from kb.retrieve.library import Library, Opened
from kb.retrieve.near import has_path, unknown_folder, unknown_name
from kb.retrieve.pages import Paging, UnitsAnswer, opened_page, units_page
from kb.retrieve.paths import plain_path
from kb.store.serving import Listed

CONTRACTS = ("contract",)
ENTITIES = ("entity",)
EVENTS = ("event", "cache")
SETTINGS = ("setting", "command")
_FRAMEWORKS = {
    "contract": tuple(one.name for one in contracts.FRAMEWORKS),
    "entity": tuple(one.id for one in entities.FRAMEWORKS),
}
"""What the extractors read: a name among these is none that is misspelled, though nothing here is of it."""
_SHORT = {"drf": "django-rest-framework", "dataclasses": "dataclass"}
_FAMILIES = {
    "event": ("signal", "task", "topic", "hook", "validator", "lifespan", "on_event", "dynamic"),
    "cache": ("cache",),
    "setting": ("env", "django", "flask", "field", "dynamic"),
    "command": ("command",),
}
_MOST_NAMED = 10


@dataclass(frozen=True)
class ListFilter:
    """Which units of the kinds are wanted; a filter that is None lets everything through."""

    kinds: tuple[str, ...]
    name: str | None = None
    """Part of the logical key, in any case."""
    folder: str | None = None
    """A file or folder that the unit stands in."""
    framework: str | None = None
    family: str | None = None
    """Of an event or a setting, as its key has it; of the others the kind in the key (`cache`, `command`)."""
    methods: tuple[str, ...] = ()
    """HTTP methods, one of which a contract must have."""
    route: str | None = None
    """Beginning of a contract's path; where none begins so, part of it."""
    has_field: str | None = None
    """Name of a field that an entity has, its inherited ones included."""


def list_units(
    library: Library, wanted: ListFilter, *, repo: str | None, sha: str | None, paging: Paging
) -> UnitsAnswer:
    """The units that fit, by logical key. An empty list means that the snapshot has none of them; a note says why.

    Raises:
        NotFoundError: no such file or folder, framework or family; the hint has the nearest ones.
    """
    wanted = replace(
        wanted,
        folder=plain_path(wanted.folder),
        framework=wanted.framework and _SHORT.get(wanted.framework.lower(), wanted.framework.lower()),
        family=wanted.family and wanted.family.lower(),
    )
    question = (
        "list",
        wanted.kinds,
        wanted.name,
        wanted.folder,
        wanted.framework,
        wanted.family,
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
        inside = opened.lists.under(wanted.folder, order)
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
    if wanted.family is not None and wanted.family != _family(one.logical_key):
        return False
    if wanted.framework is not None and wanted.framework != one.framework:
        return False
    return wanted.has_field is None or wanted.has_field in one.fields


def _family(key: str) -> str:
    head, _, rest = key.partition(":")
    return rest.partition(":")[0] if head in ("event", "setting") else head


def _none(opened: Opened, wanted: ListFilter) -> str:
    """Why nothing fits: there is nothing of the kinds, nothing passes one filter, or no unit passes them all.

    Raises:
        NotFoundError: a filter names what there is not at all.
    """
    whole: Sequence[Listed] = opened.kept(
        ("of_kinds", wanted.kinds), lambda: opened.lists.of_kinds(wanted.kinds)
    )
    frameworks = Counter(one.framework for one in whole if one.framework)
    families = Counter(_family(one.logical_key) for one in whole)
    _require_known(opened, wanted, frameworks, families)
    kinds = " or ".join(wanted.kinds)
    if not whole:
        return f"nothing there: the snapshot has no unit of kind {kinds}"
    alone = [
        said
        for said, one in _each(wanted, frameworks, families)
        if not _fitting(opened, replace(one, kinds=wanted.kinds))
    ]
    why = "; ".join(alone) or "each of them passes some, and none passes all"
    return f"nothing there: none of {len(whole)} units of kind {kinds} fits the filters: {why}"


def _require_known(
    opened: Opened, wanted: ListFilter, frameworks: Counter[str], families: Counter[str]
) -> None:
    if wanted.folder is not None and not has_path(opened, wanted.folder):
        raise unknown_folder(opened, wanted.folder)
    if wanted.framework is not None:
        known = {*frameworks, *(name for kind in wanted.kinds for name in _FRAMEWORKS.get(kind, ()))}
        if wanted.framework not in known:
            raise unknown_name(opened, "framework", wanted.framework, known)
    if wanted.family is not None:
        known = {*families, *(name for kind in wanted.kinds for name in _FAMILIES.get(kind, ()))}
        if wanted.family not in known:
            raise unknown_name(opened, "family", wanted.family, known)


def _each(
    wanted: ListFilter, frameworks: Counter[str], families: Counter[str]
) -> Iterator[tuple[str, ListFilter]]:
    """Each filter alone, with what is to be said where nothing passes it."""
    if wanted.folder is not None:
        yield f"none stands in {wanted.folder[:200]}", ListFilter((), folder=wanted.folder)
    if wanted.framework is not None:
        said = f"none is of framework {wanted.framework}{_here(frameworks)}"
        yield said, ListFilter((), framework=wanted.framework)
    if wanted.family is not None:
        yield f"none is of family {wanted.family}{_here(families)}", ListFilter((), family=wanted.family)
    if wanted.methods:
        yield f"none has the method {', '.join(wanted.methods)}", ListFilter((), methods=wanted.methods)
    if wanted.route:
        yield f"no path has {wanted.route[:200]!r} in it", ListFilter((), route=wanted.route)
    if wanted.has_field is not None:
        yield f"none has a field {wanted.has_field[:200]!r}", ListFilter((), has_field=wanted.has_field)
    if wanted.name is not None:
        yield f"no key has {wanted.name[:200]!r} in it", ListFilter((), name=wanted.name)


def _here(counts: Counter[str]) -> str:
    named = ", ".join(f"{name[:50]} ({count})" for name, count in counts.most_common(_MOST_NAMED))
    return f" (here: {named})" if named else ""
