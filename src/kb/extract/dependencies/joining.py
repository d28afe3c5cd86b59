"""Joins declarations, locks and imports of one distribution, and says where they differ."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

from kb.extract.api import FileView, WorldView
from kb.extract.dependencies.facts import SOURCE, Declared, DependencyFacts, Imported
from kb.extract.distributions import candidates, import_names, is_known, is_seldom_imported, is_stub
from kb.model.artifacts import ArtifactDraft, Grounding, Link

_SHOWN_IMPORTS = 5
"""Import statements that an artifact stands on: enough to look at, few enough to stay the same."""
_FILE_GROUPS = frozenset(
    """
    dev develop development local test tests testing doc docs lint typing build ci tools bench prod production
    """.split()
)
_TOOL_GROUPS = ("dev", "test", "local", "lint", "doc", "build", "type", "ci", "tool", "bench")


class Dependencies:
    """The distributions that one file is home to."""

    def __init__(self, file: FileView, world: WorldView, facts: DependencyFacts) -> None:
        self.file = file
        self.world = world
        self.facts = facts

    def drafts(self) -> Iterator[ArtifactDraft]:
        """Declared or locked distributions, undeclared ones that are imported, what could not be read."""
        for name in dict.fromkeys(entry.distribution for entry in self.facts.declared):
            if name != self.facts.project and self._home(name) == self.file.path:
                yield self._dependency(name)
        undeclared: dict[str, list[Imported]] = {}
        for imported in self.facts.imported:
            name = "" if imported.named else self._undeclared(imported.module)
            undeclared.setdefault(name, []).append(imported)
        for name, entries in undeclared.items():
            if name:
                yield from self._used(name, entries)
        yield from self._unread()

    def _row(self, path: str) -> tuple[DependencyFacts, FileView] | None:
        if path == self.file.path:
            return self.facts, self.file
        return self.world.facts(path, SOURCE, DependencyFacts)

    def _home(self, name: str) -> str:
        """The first manifest that declares a distribution, else that constrains it, else that locks it."""
        holders = self.world.who_has(SOURCE, f"dist:{name}")
        declaring = [path for path in holders if not self._is_constraints(path)]
        return next(iter((*declaring, *holders, *self.world.who_has(SOURCE, f"lock:{name}"))), "")

    def _is_constraints(self, path: str) -> bool:
        """Whether a requirements file only constrains: by its name, or because another takes it with `-c`."""
        base = path.rpartition("/")[2]
        if base.startswith("constraint"):
            return True
        for holder in self.world.who_has(SOURCE, f"includes:{base}"):
            row = self._row(holder)
            for entry in row[0].included if row is not None else ():
                if entry.kind == "constraints" and _beside(holder, entry.path) == path:
                    return True
        return False

    def _dependency(self, name: str) -> ArtifactDraft:
        groundings: list[Grounding] = []
        declared: list[dict[str, Any]] = []
        constrained: list[dict[str, Any]] = []
        locked: list[str] = []
        for path in self.world.who_has(SOURCE, f"dist:{name}"):
            row = self._row(path)
            for entry in row[0].declared if row is not None else ():
                if row is None or entry.distribution != name or entry.pinned:
                    continue
                constraint = self._is_constraints(path)
                groundings.append(row[1].ground(entry.span, "constraint" if constraint else "declaration"))
                (constrained if constraint else declared).append(_entry(entry, row[0].form, path))
        for path in self.world.who_has(SOURCE, f"lock:{name}"):
            row = self._row(path)
            for entry in row[0].declared if row is not None else ():
                pinned = row is not None and (row[0].form == "lock" or entry.pinned)
                if row is not None and pinned and entry.distribution == name:
                    groundings.append(row[1].ground(entry.span, "lock"))
                    locked.append(entry.specifier.removeprefix("=="))
        imports, statements = self._imports(name)
        groundings += statements
        builds = bool(declared) and all(entry["group"] == "build" for entry in declared)
        if declared:
            status = "declared" if imports or builds else "declared_unused"
        else:
            status = "used_undeclared" if imports else ("locked" if locked else "constrained")
        if not imports and self.world.who_has(SOURCE, f"project:{name}"):
            status = "own"  # a package beside this one, or the project itself where a lock file lists it
        body: dict[str, Any] = {"distribution": name, "status": status}
        for key, value in (("declared", declared), ("constraints", constrained), ("imported_as", imports)):
            if value:
                body[key] = _unique(value)
        if locked:
            body["locked"] = sorted(set(locked))
        known = bool(imports) or any(is_known(module) for module in import_names(name))
        sure = 100 if status in ("declared", "locked", "constrained", "own") else (90 if known else 70)
        if builds and status == "declared" and not imports:
            body["note"] = "builds the project: nothing has to import it"
        elif status == "declared_unused" and is_seldom_imported(name):
            body["note"] = "a tool, server, driver or plug-in of this kind works without being imported"
            sure = 50
        elif status == "declared_unused" and all(_is_tool(entry["group"]) for entry in declared):
            body["note"] = "declared for development only: tools and plugins are often not imported"
            sure = min(sure, 60)
        elif status == "declared_unused" and not known and (perhaps := self._perhaps_imported(name)):
            body["note"] = (
                f"may be what is imported as {', '.join(perhaps)}: the name of one is part of the other's"
            )
            sure = 50
        return _draft(name, body, groundings, sure, imports)

    def _perhaps_imported(self, name: str) -> list[str]:
        """Modules that nothing else is known to provide, and whose name is a part of the distribution's."""
        found: list[str] = []
        for part in name.split("-"):
            paths = self.world.who_has(SOURCE, f"imports:{part}") if not is_known(part) else ()
            if not paths or self.world.who_has(SOURCE, f"dist:{part}"):
                continue
            spelled = [_spelling(part, entry) for entry, _ in self._users(part, paths)]
            found += [module for module in spelled if not is_known(module) and not self._is_own(module)]
        return _unique(found)

    def _imports(self, name: str) -> tuple[list[str], list[Grounding]]:
        """Names that the repository imports the distribution by, and the first statements that do."""
        names: list[str] = []
        statements: list[Grounding] = []
        for module in import_names(name):
            paths = self.world.who_has(SOURCE, f"imports:{module}")
            if not paths or self._is_own(module):
                continue
            for entry, view in self._users(module, paths):
                spelled = _spelling(module, entry)
                if not self._is_own(spelled):
                    names.append(spelled)
                    statements.append(view.ground(entry.span, _role(entry)))
        return _unique(names), _unique(statements)[:_SHOWN_IMPORTS]

    def _is_own(self, module: str) -> bool:
        """Whether the repository itself holds what the first part of a module's name means."""
        return self.world.module(module.partition(".")[0]) is not None

    def _users(self, module: str, paths: Sequence[str]) -> Iterator[tuple[Imported, FileView]]:
        """The first statement (or text of settings) of each file that uses a module, for as many as are shown."""
        for path in paths[:_SHOWN_IMPORTS]:
            row = self._row(path)
            for entry in row[0].imported if row is not None else ():
                if row is not None and _is_prefix(module, entry.module):
                    yield entry, row[1]
                    break

    def _undeclared(self, module: str) -> str:
        """The distribution that a module is taken to be of, if no manifest declares and no lock file pins it."""
        world = self.world
        if not world.who_has(SOURCE, "declares") or self._is_own(module):
            return ""
        possible = candidates(module)
        if world.distribution(module) is not None or any(
            world.who_has(SOURCE, f"{kind}:{c}") for c in possible for kind in ("lock", "project")
        ):
            return ""
        return possible[0] if is_known(module) else possible[-1]

    def _used(self, name: str, entries: list[Imported]) -> Iterator[ArtifactDraft]:
        """A distribution that is imported and not declared, where this file is the first that imports it."""
        modules = [module for module in import_names(name) if self._undeclared(module) == name]
        modules = modules or [entry.module.partition(".")[0] for entry in entries]
        paths = {module: tuple(self.world.who_has(SOURCE, f"imports:{module}")) for module in modules}
        homes = (path for found in paths.values() for path in found if self._imports_undeclared(path, name))
        if min(homes, default="") != self.file.path:
            return
        own = [(m, entry, self.file) for m in modules for entry in entries if _is_prefix(m, entry.module)]
        users = [
            (module, entry, view)
            for module, found in paths.items()
            for entry, view in self._users(module, found)
            if self._undeclared(entry.module) == name  # `zope.interface` may be declared, `zope.event` not
        ]
        imports = _unique([_spelling(module, entry) for module, entry, _ in (*users, *own)])
        groundings = _unique([view.ground(entry.span, _role(entry)) for _, entry, view in users])
        groundings = groundings[:_SHOWN_IMPORTS]
        groundings += [self.file.ground(entry.span, "import") for entry in entries]
        body: dict[str, Any] = {"distribution": name, "status": "used_undeclared", "imported_as": imports}
        known = any(is_known(module) for module in imports)
        tops = [] if known else _unique([module.partition(".")[0] for module in imports])
        perhaps = _unique([other for top in tops for other in self._perhaps_declared(top)])
        if perhaps:
            body["note"] = (
                f"may be what {', '.join(perhaps)} provides: the name of one is part of the other's"
            )
        elif not known:
            body["note"] = "the distribution's name is taken to be the module's"
        yield _draft(name, body, groundings, 90 if known else (50 if perhaps else 70), imports)

    def _imports_undeclared(self, path: str, name: str) -> bool:
        row = self._row(path)
        entries = row[0].imported if row is not None else ()
        return any(not entry.named and self._undeclared(entry.module) == name for entry in entries)

    def _perhaps_declared(self, module: str) -> list[str]:
        """Declared distributions that have the module's name as a part of their own."""
        found: list[str] = []
        part = module.lower()
        for path in self.world.who_has(SOURCE, f"part:{part}"):
            row = self._row(path)
            names = [entry.distribution for entry in row[0].declared] if row is not None else []
            found += [name for name in names if part in name.split("-") and not is_stub(name)]
        return _unique(found)

    def _unread(self) -> Iterator[ArtifactDraft]:
        """What the manifest holds that cannot be told statically, and files that it names in vain."""
        reasons = [entry.reason for entry in self.facts.unread]
        groundings = [self.file.ground(entry.span, "declaration") for entry in self.facts.unread]
        for entry in self.facts.included:
            target = _beside(self.file.path, entry.path)
            if not self.world.exists(target):
                reasons.append(f"names {entry.path}, which is not in the repository")
                groundings.append(self.file.ground(entry.span, "include"))
            elif self._row(target) is None:
                reasons.append(f"names {entry.path}, which is not read as a requirements file")
                groundings.append(self.file.ground(entry.span, "include"))
        if reasons:
            body = {"form": self.facts.form, "status": "unread", "reasons": reasons}
            title = f"dependencies that cannot be read from a {self.facts.form} file"
            yield ArtifactDraft(
                kind="dependency",
                logical_key=f"dependency:unread:{self.file.path}",
                title=title,
                body=body,
                text="\n".join([title, *(f"- {reason}" for reason in reasons)]),
                groundings=tuple(dict.fromkeys(groundings)),
                confidence=60,
            )


def _beside(path: str, written: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), written))


def _is_prefix(module: str, dotted: str) -> bool:
    return (dotted + ".").startswith(module + ".") or (dotted.lower() + ".").startswith(module + ".")


def _spelling(module: str, entry: Imported) -> str:
    """The name that a statement really has for a module that is looked for without regard to capitals."""
    return ".".join(entry.module.split(".")[: module.count(".") + 1])


def _is_tool(group: str) -> bool:
    return any(word in group.lower() for word in _TOOL_GROUPS)


def _role(entry: Imported) -> str:
    return "named" if entry.named else "import"


def _group_of(path: str) -> str:
    """What a requirements file's name says that it is for: `requirements/test.txt`, `dev-requirements.txt`."""
    words = re.split(r"[^a-z]+", path.rpartition("/")[2].lower().partition(".")[0])
    return next((word for word in words if word in _FILE_GROUPS), "")


def _entry(declared: Declared, form: str, path: str) -> dict[str, Any]:
    group = declared.group or (_group_of(path) if form == "requirements" else "")
    entry: dict[str, Any] = {"in": form, "group": group, "specifier": declared.specifier}
    if declared.extras:
        entry["extras"] = list(declared.extras)
    if declared.marker:
        entry["marker"] = declared.marker
    if declared.source:
        entry["source"] = _without_credentials(declared.source)
    return entry


def _without_credentials(source: str) -> str:
    """A URL without `user:password@`: secrets in a manifest are not repeated."""
    scheme, separator, rest = source.partition("://")
    host, slash, path = rest.partition("/")
    return source if "@" not in host else scheme + separator + host.rpartition("@")[2] + slash + path


def _unique(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


_STATUS = {
    "declared": "declared and imported",
    "declared_unused": "declared, but nothing in the repository imports it",
    "used_undeclared": "imported, but no manifest declares it",
    "own": "made by a project of this repository",
    "locked": "locked, since another distribution needs it",
    "constrained": "constrained only",
}


def _draft(
    name: str, body: dict[str, Any], groundings: list[Grounding], sure: int, imports: list[str]
) -> ArtifactDraft:
    # A lock file has hundreds: search for `dependency` is for what the repository itself depends on.
    title = name if body["status"] == "locked" else f"dependency {name}"
    lines = [f"{title}: {_STATUS[body['status']]}"]
    for entry in body.get("declared", ()):
        group = f" ({entry['group']})" if entry["group"] else ""
        extras = f"[{','.join(entry['extras'])}]" if entry.get("extras") else ""
        rest = " ".join(filter(None, (entry["specifier"], entry.get("marker"), entry.get("source"))))
        lines.append(f"- {entry['in']}{group}: {name}{extras} {rest}".rstrip())
    if body.get("locked"):
        lines.append(f"locked at {', '.join(body['locked'])}")
    if imports:
        lines.append(f"imported as {', '.join(imports)}")
    if body.get("note"):
        lines.append(body["note"])
    return ArtifactDraft(
        kind="dependency",
        logical_key=f"dependency:{name}",
        title=title,
        body=body,
        text="\n".join(lines),
        groundings=tuple(dict.fromkeys(groundings)),
        links=tuple(Link("provides", f"module:{module}") for module in imports),
        confidence=sure,
    )
