"""Joins declarations, locks and imports of one distribution, and says where they differ."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from kb.extract.api import FileView, WorldView
from kb.extract.dependencies.facts import SOURCE, Declared, DependencyFacts, Imported
from kb.extract.distributions import candidates, import_names, is_known
from kb.model.artifacts import ArtifactDraft, Grounding, Link

_SHOWN_IMPORTS = 5
"""Import statements that an artifact stands on: enough to look at, few enough to stay the same."""
_TOOL_GROUPS = ("dev", "test", "lint", "doc", "build", "type", "ci", "tool", "bench")


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
        for imported in self.facts.imported:
            yield from self._undeclared(imported)
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
                if row is None or entry.distribution != name:
                    continue
                constraint = self._is_constraints(path)
                groundings.append(row[1].ground(entry.span, "constraint" if constraint else "declaration"))
                (constrained if constraint else declared).append(_entry(entry, row[0].form))
        for path in self.world.who_has(SOURCE, f"lock:{name}"):
            row = self._row(path)
            for entry in row[0].declared if row is not None else ():
                if row is not None and entry.distribution == name:
                    groundings.append(row[1].ground(entry.span, "lock"))
                    locked.append(entry.specifier)
        imports, statements = self._imports(name)
        groundings += statements
        if declared:
            status = "declared" if imports else "declared_unused"
        else:
            status = "used_undeclared" if imports else ("locked" if locked else "constrained")
        body: dict[str, Any] = {"distribution": name, "status": status}
        for key, value in (("declared", declared), ("constraints", constrained), ("imported_as", imports)):
            if value:
                body[key] = _unique(value)
        if locked:
            body["locked"] = sorted(set(locked))
        if status == "declared_unused" and all(_is_tool(entry["group"]) for entry in declared):
            body["note"] = "declared for development only: tools and plugins are often not imported"
        known = bool(imports) or any(is_known(module) for module in import_names(name))
        sure = 100 if status in ("declared", "locked", "constrained") else (90 if known else 70)
        return _draft(name, body, groundings, sure, imports)

    def _imports(self, name: str) -> tuple[list[str], list[Grounding]]:
        """Names that the repository imports the distribution by, and the first statements that do."""
        names: list[str] = []
        statements: list[Grounding] = []
        for module in import_names(name):
            paths = self.world.who_has(SOURCE, f"imports:{module}")
            if not paths or self.world.module(module.partition(".")[0]) is not None:
                continue
            names.append(module)
            for path in paths[:_SHOWN_IMPORTS]:
                row = self._row(path)
                for entry in row[0].imported if row is not None else ():
                    if row is not None and (entry.module + ".").startswith(module + "."):
                        statements.append(row[1].ground(entry.span, "import"))
                        break
        return names, statements[:_SHOWN_IMPORTS]

    def _undeclared(self, imported: Imported) -> Iterator[ArtifactDraft]:
        """A distribution that is imported, and that no manifest declares and no lock file pins."""
        top = imported.module.partition(".")[0]
        world = self.world
        if world.module(top) is not None or world.distribution(imported.module) is not None:
            return
        possible = candidates(imported.module)
        if not world.who_has(SOURCE, "declares"):
            return
        if any(world.who_has(SOURCE, f"{kind}:{c}") for c in possible for kind in ("lock", "project")):
            return
        name = possible[0] if is_known(imported.module) else possible[-1]
        key = next((module for module in import_names(name) if _is_prefix(module, imported.module)), top)
        paths = world.who_has(SOURCE, f"imports:{key}")
        if not paths or paths[0] != self.file.path:
            return
        groundings: list[Grounding] = []
        for path in paths[:_SHOWN_IMPORTS]:
            row = self._row(path)
            for entry in row[0].imported if row is not None else ():
                if row is not None and _is_prefix(key, entry.module):
                    groundings.append(row[1].ground(entry.span, "import"))
                    break
        body: dict[str, Any] = {"distribution": name, "status": "used_undeclared", "imported_as": [key]}
        known = is_known(imported.module)
        if not known:
            body["note"] = "the distribution's name is taken to be the module's"
        yield _draft(name, body, groundings, 90 if known else 70, [key])

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
    return (dotted + ".").startswith(module + ".")


def _is_tool(group: str) -> bool:
    return any(word in group.lower() for word in _TOOL_GROUPS)


def _entry(declared: Declared, form: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"in": form, "group": declared.group, "specifier": declared.specifier}
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
