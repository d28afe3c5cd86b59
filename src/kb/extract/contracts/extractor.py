"""The contracts extractor: the vocabulary of all frameworks in, one artifact per operation out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kb.extract.api import FactOutput, FileView, ParseView, WorldView
from kb.extract.contracts import facts, sites
from kb.extract.contracts.facts import URLCONF, ContractFacts, Vocabulary
from kb.extract.contracts.framework import Framework
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.registry import FRAMEWORKS
from kb.extract.contracts.route import Route, draft, key_of
from kb.extract.contracts.routers import Routers
from kb.model.artifacts import ArtifactDraft
from kb.structure.facts import ModuleFacts

# What may make an application: a subclass of a framework's own is known only once it is resolved.
_APPLICATION = re.compile(r"app|fastapi|flask|quart|starlette|server", re.IGNORECASE)


class ContractsExtractor:
    """Routes of the frameworks in `registry.FRAMEWORKS`."""

    id = facts.SOURCE
    version = 8
    dialects = frozenset({"python"})

    def __init__(self, frameworks: tuple[Framework, ...] = FRAMEWORKS) -> None:
        self._frameworks = {framework.name: framework for framework in frameworks}
        self._vocabulary = Vocabulary(
            (name for framework in frameworks for name in framework.callees),
            (name for framework in frameworks for name in framework.decorators),
        )

    def facts(self, parse: ParseView) -> FactOutput | None:
        """The file's sites, with the keys by which the links of other files find them."""
        found = sites.read(parse, self._vocabulary)
        if found is None:
            return None
        return facts.output(found, self._keys(found, parse.module))

    def _keys(self, found: ContractFacts, module: ModuleFacts) -> Iterator[str]:
        for site in found.sites:
            if site.expr.kind == URLCONF:
                yield "urlconf"
                yield f"urlconf:{site.expr.value}"
            elif site.expr.kind == facts.JOIN:
                yield from facts.target_keys(site, site.expr.items[0], module)
            elif not site.decorates:
                if _APPLICATION.search(f"{site.target} {site.expr.value}") and site.target:
                    yield "app"
                for framework in self._frameworks.values():
                    yield from framework.keys(site, module)

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """The operations whose decorator, registration or url entry stands in the file."""
        own = file.own(ContractFacts)
        if own is None or not own.sites:
            return
        linker = Linker(file, world)
        routers = Routers(linker, self._frameworks)
        routes = [route for framework in self._frameworks.values() for route in framework.routes(routers)]
        if not routes:
            return
        yield from _drafts(routes, routers.primary().label, file)


def _drafts(routes: list[Route], primary: str, file: FileView) -> Iterator[ArtifactDraft]:
    """Drafts with keys that are unique in the file: a method and path that comes again gets `~2`, `~3`..."""
    seen: dict[str, int] = {}
    for route in routes:
        key = key_of(route, primary, file)
        seen[key] = seen.get(key, 0) + 1
        yield draft(route, key if seen[key] == 1 else f"{key}~{seen[key]}")
