"""Which extractors there are: kb's own, and those that installed distributions offer.

A third party adds one through the entry-point group `kb.extractors`; the entry point names an extractor
(an object with `id`, `version`, `dialects`, `facts` and `link`) or a class without arguments that makes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from kb.errors import UsageError
from kb.extract.api import Extractor

GROUP = "kb.extractors"

BUILTIN = (
    "kb.extract.symbols:SymbolsExtractor",
    "kb.extract.imports:ImportsExtractor",
    "kb.extract.surface:SurfaceExtractor",
    "kb.extract.architecture.extractor:ArchitectureExtractor",
    "kb.extract.passages:PassagesExtractor",
    "kb.extract.contracts.extractor:ContractsExtractor",
    "kb.extract.entities.extractor:EntitiesExtractor",
    "kb.extract.events.extractor:EventsExtractor",
    "kb.extract.configuration.extractor:ConfigurationExtractor",
    "kb.extract.dependencies.extractor:DependenciesExtractor",
)
"""Those that come with kb, in the order in which they link. A new one is one module and one line here."""

_PARTS = ("id", "version", "dialects", "facts", "link")


def builtin_extractors() -> list[Extractor]:
    """The extractors that come with kb."""
    found = []
    for reference in BUILTIN:
        module, _, name = reference.partition(":")
        found.append(_made(getattr(import_module(module), name), reference))
    return found


def installed_extractors() -> list[Extractor]:
    """Extractors of other distributions, by entry-point name.

    Raises:
        UsageError: an entry point cannot be loaded, or is no extractor.
    """
    return [_made(_loaded(point), f"{point.name} = {point.value}") for point in _points()]


@cache
def _points() -> list[EntryPoint]:
    """Looked for once in a process: it means reading the metadata of every installed distribution."""
    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def _loaded(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"extractor {point.name} ({point.value}) cannot be loaded: {error}",
            hint="uninstall or repair the distribution that offers it",
        ) from error


def _made(candidate: object, reference: str) -> Extractor:
    made = candidate() if isinstance(candidate, type) else candidate
    missing = [part for part in _PARTS if not hasattr(made, part)]
    if missing:
        raise UsageError(f"{reference} is no extractor: it has no {', '.join(missing)}")
    return cast("Extractor", made)


def load_extractors(enabled: Collection[str] | None = None) -> tuple[Extractor, ...]:
    """The extractors to index with, kb's own first.

    Args:
        enabled: ids to keep; all of them where it is None.

    Raises:
        UsageError: two extractors have one id, or an enabled one does not exist.
    """
    return select_extractors([*builtin_extractors(), *installed_extractors()], enabled)


def select_extractors(
    extractors: Iterable[Extractor], enabled: Collection[str] | None = None
) -> tuple[Extractor, ...]:
    """Those of `extractors` that are enabled, in order; duplicates and unknown ids are refused."""
    by_id: dict[str, Extractor] = {}
    for extractor in extractors:
        if extractor.id in by_id:
            raise UsageError(
                f"two extractors have the id {extractor.id!r}",
                hint="an installed extractor needs an id of its own",
                extractor=extractor.id,
            )
        by_id[extractor.id] = extractor
    if enabled is None:
        return tuple(by_id.values())
    unknown = sorted(set(enabled) - set(by_id))
    if unknown:
        raise UsageError(
            f"no extractor is called {', '.join(unknown)}", hint=f"there are {', '.join(sorted(by_id))}"
        )
    return tuple(extractor for name, extractor in by_id.items() if name in enabled)
