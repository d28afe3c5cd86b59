"""The tree of applications and routers: every way in which each of them is reached from an application.

A `Holder` is what routes are registered on: an application, a router, a blueprint, or a list of routes.
A `Mount` is one way from a root down to a holder. Both are found by inverse look-ups over the files
that include something, so that a changed prefix re-links the routes below it and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from kb.extract.contracts.facts import JOIN, RETURNED, URLCONF, Site, last_of
from kb.extract.contracts.holders import APPLICATION, HANDED, LIST, URLPATTERNS, Holder, Holders
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import EXACT, Place, Text
from kb.extract.contracts.route import Root
from kb.extract.expressions import argument, dotted, last
from kb.structure.facts import Expr

_MOST_MOUNTS = 64
_TESTISH = frozenset(
    "test tests testing docs docs_src example examples demo demos samples benchmarks".split()
)


@dataclass(frozen=True)
class Inclusion:
    """One call that puts `target` below `parent`."""

    path: str
    site: Site
    kind: str
    """`include`, `mount` or `list` (a constructor's list of routes, which adds nothing)."""
    prefix: Text
    place: Place
    """Where its arguments are read, loop variables included."""
    parent: Holder | None = None
    element: bool = False
    """It stands in a list or another call: what is above it is found by where it stands."""
    replaces: bool = False
    """Its prefix takes the place of the target's own one."""


@dataclass(frozen=True)
class Mount:
    """One way from a root to a holder."""

    root: Root
    prefix: Text
    inclusions: tuple[Inclusion, ...]
    """Outermost first."""
    holders: tuple[Holder, ...]
    """Outermost first, the holder itself last; one more than inclusions."""

    @property
    def conditional(self) -> bool:
        """Whether some inclusion stands in a branch."""
        return any(step.site.branch for step in self.inclusions)

    def read_in(self, place: Place) -> Place:
        """The place with the arguments of the call that made the holder, where it stands in that function."""
        holder = self.holders[-1] if self.holders else None
        if holder is None or not holder.given or (holder.path, holder.scope) != (place.path, place.scope):
            return place
        return replace(place, bindings={**holder.given, **place.bindings})


class Including(Protocol):
    """What the tree needs of a framework module."""

    name: str
    constructors: Mapping[str, str]
    """Full dotted name of a constructor -> role."""

    def includes(self, routers: Routers, path: str, site: Site) -> Iterator[tuple[Expr, Inclusion]]:
        """What the site includes (target as written, read in `Inclusion.place`); nothing if it is no include."""
        ...

    def own_prefix(self, routers: Routers, holder: Holder) -> Text:
        """The prefix that the holder's constructor gives."""
        ...

    def element_prefix(self, routers: Routers, place: Place, site: Site) -> Text | None:
        """What the site puts before the elements inside it; None where it is no such call."""
        ...


class Routers(Holders):
    """The tree as seen from one file's link."""

    def __init__(self, linker: Linker, frameworks: Mapping[str, Including]) -> None:
        super().__init__(
            linker, {framework.name: framework.constructors for framework in frameworks.values()}
        )
        self.frameworks = frameworks
        self._mounts: dict[Holder, tuple[Mount, ...]] = {}
        self._busy: set[Holder] = set()
        self._included: dict[str, list[tuple[Expr, Inclusion]]] = {}

    # -- the way down

    def mounts(self, holder: Holder) -> tuple[Mount, ...]:
        """Every way from a root to the holder; one that says "not mounted" where there is none."""
        if holder in self._mounts:
            return self._mounts[holder]
        if holder in self._busy:
            return ()
        self._busy.add(holder)
        found: list[Mount] = []
        for target, inclusion in self.inclusions(holder):
            made = replace(holder, given=self._given(holder, inclusion.place, target))
            own = Text("") if inclusion.replaces else self.prefix_of(made)
            found.extend(
                Mount(
                    way.root,
                    way.prefix + inclusion.prefix + own,
                    (*way.inclusions, inclusion),
                    (*way.holders, made),
                )
                for way in self.ways_above(inclusion)
            )
        self._busy.discard(holder)
        if not found:
            found.append(Mount(self._root(holder), self.prefix_of(holder), (), (holder,)))
        self._mounts[holder] = tuple(found[:_MOST_MOUNTS])
        return self._mounts[holder]

    def element_mounts(self, path: str, site: Site) -> tuple[Mount, ...]:
        """Every way down to an element of a list of routes, by where the element stands."""
        facts = self.linker.facts(path)
        if site.container >= 0 and facts is not None:
            outer = facts[0].sites[site.container]
            kind = self.kind_of(path, outer)
            if kind is not None and outer.target:
                return self.mounts(Holder(path, outer.scope, outer.target, kind.framework, kind.role))
            place = Place(path, outer.scope)
            prefix = next(
                (
                    said
                    for f in self.frameworks.values()
                    if (said := f.element_prefix(self, place, outer)) is not None
                ),
                Text(""),
            )
            inclusion = Inclusion(path, outer, "include", prefix, place, element=True)
            above = self._above(path, outer)
            nobody = Holder(path, outer.scope, "", kind.framework if kind is not None else "", LIST)
            return tuple(
                Mount(way.root, way.prefix + prefix, (*way.inclusions, inclusion), (*way.holders, nobody))
                for way in above
            )
        if site.owner:
            made = self._owning(Place(path, site.scope), site.owner)
            return self.mounts(made or Holder(path, site.scope, site.owner, "", LIST))
        return (
            Mount(Root(self.label(Holder(path, site.scope, "", "", LIST)), False, path), Text(""), (), ()),
        )

    def _owning(self, place: Place, owner: str) -> Holder | None:
        """The application whose own list an element is added to (`app.router.routes.append(...)`)."""
        name = owner.removesuffix(".routes").removesuffix(".router")
        return self.holder(place, Expr("name", name)) if name != owner else None

    def _above(self, path: str, site: Site) -> tuple[Mount, ...]:
        """Ways to what a call that holds elements hangs on: a method's receiver, or where it stands."""
        if last_of(site.expr) == "mount" and site.expr.value:
            parent = self.holder(Place(path, site.scope), Expr("name", site.expr.value.rpartition(".")[0]))
            return self.mounts(parent) if parent is not None else ()
        return self.element_mounts(path, site)

    def prefix_of(self, holder: Holder) -> Text:
        """The prefix that the holder itself carries."""
        framework = self.frameworks.get(holder.framework)
        return framework.own_prefix(self, holder) if framework is not None else Text("")

    def _root(self, holder: Holder) -> Root:
        if holder.role == HANDED:
            # A test's fixture is an application of its own; what a package hands around is its one application.
            return Root(self.label(holder) if _testish(holder.path) else "", True, holder.path)
        if holder.role == LIST and holder.name == URLPATTERNS:
            view = self.linker.view(holder.path)
            module = view.module_name if view is not None else ""
            label = f"{view.key_prefix}{module}" if view is not None else holder.path
            return Root(label, bool(module and self.linker.who_has(f"urlconf:{module}")), holder.path)
        return Root(self.label(holder), holder.role == APPLICATION, holder.path)

    def label(self, holder: Holder) -> str:
        """Dotted name of a holder: its module, the function that makes it, its name."""
        view = self.linker.view(holder.path)
        module = (
            f"{view.key_prefix}{view.module_name}" if view is not None and view.module_name else holder.path
        )
        parts = [
            module,
            holder.scope.replace(".<locals>", ""),
            last(holder.name) if holder.name != RETURNED else "",
        ]
        return ".".join(part for part in parts if part)

    def _given(self, holder: Holder, place: Place, target: Expr) -> dict[str, tuple[Expr, Place]]:
        """Arguments by parameter where what is included is a call of the function that makes the holder."""
        said = self.linker.value(place, target) if holder.scope else None
        if said is None:
            return {}
        call, where = said
        if call.kind == "attr" and call.items:  # `Crud("/items").router`
            call = call.items[0]
        maker = self.linker.find(where, call.value) if call.kind == "call" else None
        makes = (
            self.linker.member(maker, "__init__") if maker is not None and maker.kind == "class" else maker
        )
        if makes is None or (makes.path, makes.symbol_path) != (holder.path, holder.scope):
            return {}
        params = makes.definition.params if makes.definition is not None else ()
        params = params[1:] if makes is not maker else params
        bound = [(param.name, argument(call, param.name, at)) for at, param in enumerate(params)]
        return {name: (value, where) for name, value in bound if value is not None}

    def inclusions(self, holder: Holder) -> list[tuple[Expr, Inclusion]]:
        """Every call of the snapshot that puts the holder below another, each once, in path order."""
        names = self._names_of(holder)
        files: dict[str, None] = {}
        for name in sorted(names):
            files.update(dict.fromkeys(self.linker.who_has(f"include:{name}")))
        files.update(dict.fromkeys(self.linker.who_has("include:*")))
        found = []
        for path in sorted(files):
            local = names | self._aliases_in(path, names)
            for target, inclusion in self.inclusions_in(path):
                if (
                    self._may_mean(target, inclusion, local)
                    and self.holder(inclusion.place, target) == holder
                ):
                    found.append((target, inclusion))
        return found

    def _names_of(self, holder: Holder) -> frozenset[str]:
        """The holder's simple name, the factory's that makes it, and what importing files call them."""
        names = {last(holder.name)}
        if holder.scope:
            names.add(last(holder.scope))
        if holder.name == URLPATTERNS:
            view = self.linker.view(holder.path)
            if view is not None:
                names |= {last(view.module_name), f"={view.module_name}"}
        for name in sorted(names):
            for path in self.linker.who_has(f"alias:{name}"):
                names |= self._aliases_in(path, frozenset({name}))
        return frozenset(names)

    def _aliases_in(self, path: str, names: frozenset[str]) -> frozenset[str]:
        facts = self.linker.facts(path)
        aliases = facts[0].aliases if facts is not None else ()
        return frozenset(alias for original, alias in aliases if original in names)

    @staticmethod
    def _may_mean(target: Expr, inclusion: Inclusion, names: frozenset[str]) -> bool:
        """A cheap look at the name before it is resolved."""
        if inclusion.place.bindings:
            return True
        written = dotted(target) if target.kind != "attr" else target.value
        return not written or last(written) in names or last(written.removesuffix(".urls")) in names

    def ways_above(self, inclusion: Inclusion) -> tuple[Mount, ...]:
        """Every way down to what an inclusion adds its target to."""
        if inclusion.element:
            return self.element_mounts(inclusion.path, inclusion.site)
        return self.mounts(inclusion.parent) if inclusion.parent else (_unknown(inclusion),)

    def inclusions_in(self, path: str) -> list[tuple[Expr, Inclusion]]:
        """What the calls and joins of a file include, as written."""
        if path not in self._included:
            facts = self.linker.facts(path)
            sites = facts[0].sites if facts is not None else ()
            self._included[path] = [
                entry for site in sites if not site.handler for entry in self._included_by(path, site)
            ]
        return self._included[path]

    def _included_by(self, path: str, site: Site) -> Iterator[tuple[Expr, Inclusion]]:
        if site.expr.kind == JOIN:
            place = Place(path, site.scope)
            owner = Holder(path, site.scope, site.owner, "", LIST)
            yield site.expr.items[0], Inclusion(path, site, "list", Text(""), place, owner)
            return
        for framework in self.frameworks.values():
            yield from framework.includes(self, path, site)

    # -- several applications

    def primary(self) -> Root:
        """The root whose routes have unqualified keys: the first one by (no test, depth, path)."""
        files = {*self.linker.who_has("app"), *self.linker.who_has("urlconf")}
        for path in sorted(files, key=_prominence):
            facts = self.linker.facts(path)
            for site in facts[0].sites if facts is not None else ():
                root = self._application(path, site)
                if root is not None and root.label:
                    return root
        return Root("", False)

    def _application(self, path: str, site: Site) -> Root | None:
        """The root above the application that the site makes or names, None where it does neither."""
        if site.expr.kind == URLCONF:
            holder = self.url_module(site.expr.value)
            return self._root(holder) if holder is not None else None
        kind = self.kind_of(path, site) if site.target else None
        if kind is None or kind.role != APPLICATION:
            return None
        ways = self.mounts(Holder(path, site.scope, site.target, kind.framework, kind.role))
        return ways[0].root if ways else None


def _testish(path: str) -> bool:
    return any(
        part in _TESTISH or part.startswith("test_") or part == "conftest.py" for part in path.split("/")
    )


def _prominence(path: str) -> tuple[bool, int, str]:
    return _testish(path), path.count("/"), path


def _unknown(inclusion: Inclusion) -> Mount:
    """The way from an application that cannot be told: what is included is taken to be reachable."""
    nobody = Holder(inclusion.path, inclusion.site.scope, "", "", HANDED)
    return Mount(Root("", True, ""), Text("", EXACT), (), (nobody,))
