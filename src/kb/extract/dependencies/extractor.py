"""The dependencies extractor: one artifact per distribution, joining manifests, locks and imports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from kb.extract import calls
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
from kb.extract.distributions import NAMESPACES, is_stub
from kb.extract.expressions import dotted
from kb.extract.stdlib import STDLIB
from kb.model.artifacts import ArtifactDraft
from kb.structure.facts import Expr, SpanRef

_LISTS = frozenset({"INSTALLED_APPS", "MIDDLEWARE", "MIDDLEWARE_CLASSES", "AUTHENTICATION_BACKENDS"})
_ADDING = frozenset({b"append", b"insert", b"extend"})
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")

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
    version = 6
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
        if facts.form == "setup-py":  # what runs it is there by itself, unless the project says otherwise
            imported = tuple(entry for entry in imported if entry.module.partition(".")[0] != "setuptools")
        imported += tuple(_named(parse, {entry.module.partition(".")[0] for entry in imported}))
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
    for entry in facts.declared:
        yield f"{'lock' if facts.form == 'lock' or entry.pinned else 'dist'}:{entry.distribution}"
        parts = entry.distribution.split("-")
        if facts.form != "lock" and not entry.pinned and not is_stub(entry.distribution):
            yield from (f"part:{part}" for part in parts if len(parts) > 1)
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
            module = ".".join(parts[:length])
            yield f"imports:{module}"
            if module != module.lower():  # a distribution's name says nothing of capitals
                yield f"imports:{module.lower()}"


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


def _named(parse: ParseView, seen: set[str]) -> Iterator[Imported]:
    """Modules that settings name in texts: applications, middleware, backends by their dotted path."""
    for text, span, apps in _settings_texts(parse):
        top = text.partition(".")[0]
        dots = text.count(".")
        if (dots > 1 or apps) and _DOTTED.fullmatch(text) and top not in seen and top not in STDLIB:
            seen.add(top)
            yield Imported(text, span, named=True)


def _settings_texts(parse: ParseView) -> Iterator[tuple[str, SpanRef, bool]]:
    """Texts in what constants of the module are assigned or are added to, and whether they list modules."""
    for entry in parse.module.assignments:
        name = entry.name or (dotted(entry.target) if entry.target is not None else "")
        if not entry.scope and name.isupper() and entry.value is not None:
            span = parse.module_span(entry.span)
            yield from (
                (text, span, name in _LISTS or name.endswith("_APPS")) for text in _texts(entry.value)
            )
    for node in calls.named(parse, _ADDING):
        call = parse.expr(node)
        owner = call.value.rpartition(".")[0]
        if owner in _LISTS or owner.endswith("_APPS"):
            span = parse.cite(node)
            yield from ((text, span, True) for item in call.items[1:] for text in _texts(item))


def _texts(expr: Expr | None) -> Iterator[str]:
    if expr is not None and expr.kind == "str":
        yield expr.value
    for item in expr.items if expr is not None else ():
        yield from _texts(item)
