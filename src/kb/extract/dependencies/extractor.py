"""The dependencies extractor: one artifact per distribution, joining manifests, locks and imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kb.extract.api import FactOutput, FileView, ParseView, WorldView
from kb.extract.dependencies.facts import SOURCE, DependencyFacts, Imported
from kb.extract.dependencies.joining import Dependencies
from kb.extract.dependencies.locks import read_lock
from kb.extract.dependencies.manifests import (
    read_pipfile,
    read_pyproject,
    read_requirements,
    read_setup_cfg,
)
from kb.extract.dependencies.setup_py import is_setup, read_setup
from kb.extract.distributions import NAMESPACES
from kb.extract.stdlib import STDLIB
from kb.model.artifacts import ArtifactDraft

_READERS: dict[str, Callable[[ParseView], DependencyFacts]] = {
    "pyproject": read_pyproject,
    "pipfile": read_pipfile,
    "setup-cfg": read_setup_cfg,
    "requirements": read_requirements,
    "lockfile": read_lock,
}


class DependenciesExtractor:
    """What is declared, what is locked, what is imported, and where these differ."""

    id = SOURCE
    version = 2
    dialects = frozenset({"python", *_READERS})

    def facts(self, parse: ParseView) -> FactOutput | None:
        """Requirements of a manifest, or the top-level modules that a Python file imports.

        Keys: `declares` and `dist:<name>` of a manifest, `lock:<name>` of a lock file,
        `includes:<file name>` where another file is included, `imports:<top-level module>`.
        """
        if parse.dialect != "python":
            facts = _READERS[parse.dialect](parse)
            return FactOutput(facts, tuple(sorted(_keys(facts))))
        facts = read_setup(parse) if is_setup(parse) else DependencyFacts()
        imported = tuple(_imports(parse))
        if not imported and not facts.form:
            return None
        facts = DependencyFacts(
            facts.form, facts.project, facts.declared, facts.included, facts.unread, imported
        )
        return FactOutput(facts, tuple(sorted(_keys(facts))))

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """Distributions whose home the file is: the first that declares, else locks, else imports one."""
        facts = file.own(DependencyFacts)
        if facts is not None:
            yield from Dependencies(file, world, facts).drafts()


def _keys(facts: DependencyFacts) -> Iterator[str]:
    kind = "lock" if facts.form == "lock" else "dist"
    for entry in facts.declared:
        yield f"{kind}:{entry.distribution}"
    if facts.form and facts.form != "lock":
        yield "declares"
    if facts.project:
        yield f"project:{facts.project}"
    for included in facts.included:
        yield f"includes:{included.path.rpartition('/')[2]}"
    for imported in facts.imported:
        parts = imported.module.split(".")
        depth = 3 if parts[0] in NAMESPACES else 1
        for length in range(1, min(len(parts), depth) + 1):
            yield f"imports:{'.'.join(parts[:length])}"


def _imports(parse: ParseView) -> Iterator[Imported]:
    """The first import of each dotted module that is neither relative nor of the standard library."""
    seen: set[str] = set()
    for entry in parse.module.imports:
        top = entry.module.partition(".")[0]
        module = entry.module
        if top in NAMESPACES and entry.name not in (None, "*") and module.count(".") < 2:
            module = f"{module}.{entry.name}"  # `from google.cloud import storage` is google.cloud.storage
        distinct = module if top in NAMESPACES else top
        if entry.level or not top or top in STDLIB or distinct in seen:
            continue
        seen.add(distinct)
        yield Imported(module, parse.module_span(entry.span))
