"""The tree of applications and routers: what a name stands for, and every way it is reached from an app.

A `Holder` is what routes are registered on: an application, a router, a blueprint, or a list of routes.
A `Mount` is one way from a root down to a holder. Both are found by inverse look-ups over the files
that include something, so that a changed prefix re-links the routes below it and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from kb.extract.contracts.facts import JOIN, RETURNED, URLCONF, Site, last_of
from kb.extract.contracts.place import EXACT, Found, Linker, Place, Text, scope_around, scopes_outward
from kb.extract.contracts.route import Root
from kb.extract.expressions import argument, dotted, last
from kb.structure.facts import Expr

APPLICATION, ROUTER, LIST, HANDED = "application", "router", "list", "handed"
URLPATTERNS = "urlpatterns"
_MOST_MOUNTS = 64
_DEEP = 12
_TESTISH = frozenset(
    "test tests testing docs docs_src example examples demo demos samples benchmarks".split()
)


class Kind(NamedTuple):
    """What a constructor makes."""

    framework: str
    role: str


@dataclass(frozen=True)
class Holder:
    """Something that routes are registered on; one per place that makes it."""

    path: str
    scope: str
    name: str
    framework: str
    role: str
    given: Mapping[str, tuple[Expr, Place]] = field(default_factory=dict, compare=False, hash=False)
    """What the function that makes it was called with, on one way down; it is the same holder without."""

    @property
    def place(self) -> Place:
        """Where the arguments of its constructor are read."""
        return Place(self.path, self.scope, self.given)


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


class Routers:
    """The tree as seen from one file's link."""

    def __init__(self, linker: Linker, frameworks: Mapping[str, Including]) -> None:
        self.linker = linker
        self.frameworks = frameworks
        self.kinds = {
            qualified: Kind(framework.name, role)
            for framework in frameworks.values()
            for qualified, role in framework.constructors.items()
        }
        self._names = frozenset(self.kinds)
        self._simple = {last(qualified): kind for qualified, kind in self.kinds.items()}
        self._holders: dict[tuple[str, str, str, str], Holder | None] = {}
        self._made: dict[tuple[str, int], Kind | None] = {}
        self._mounts: dict[Holder, tuple[Mount, ...]] = {}
        self._busy: set[Holder] = set()
        self._included: dict[str, list[tuple[Expr, Inclusion]]] = {}

    # -- holders

    def kind_of(self, path: str, site: Site) -> Kind | None:
        """What the site's call makes, None if it constructs nothing that holds routes."""
        key = (path, id(site))
        if key not in self._made:
            self._made[key] = self._kind(Place(path, site.scope), site.expr, 0)
        return self._made[key]

    def _kind(self, place: Place, call: Expr, depth: int) -> Kind | None:
        if not call.value or depth > _DEEP:
            return None
        found = self.linker.find(place, call.value)
        if found is None:
            return None
        base = self.linker.derives(found, self._names)
        if base is not None:
            return self.kinds[base]
        # Another distribution's router of a well-known name (`fastapi_utils.APIRouter`) is taken for one.
        simple = self._simple.get(last(found.qualified)) if not found.internal else None
        return simple if "." in found.qualified else None

    def makes(self, place: Place, expr: Expr) -> bool:
        """Whether the expression, or what a loop puts in its place, is a constructor's call."""
        expr, place = self.linker.bound(place, expr)
        return expr.kind == "call" and self._kind(place, expr, 0) is not None

    def site_of(self, holder: Holder) -> Site | None:
        """The call that makes the holder; None for a list and for what a function is handed."""
        facts = self.linker.facts(holder.path)
        if facts is None:
            return None
        for site in facts[0].sites:
            if site.target == holder.name and site.scope == holder.scope and self.kind_of(holder.path, site):
                return site
        return None

    def holder(self, place: Place, expr: Expr, depth: int = 0) -> Holder | None:
        """What an expression stands for, None where it is nothing that holds routes or cannot be told."""
        expr, place = self.linker.bound(place, expr)
        if depth > _DEEP:
            return None
        if expr.kind == "str":
            return self._url_module(expr.value)
        if expr.kind == "tuple" and expr.items:
            return self.holder(place, expr.items[0], depth + 1)
        if expr.kind == "name":
            key = (place.path, place.scope, expr.value, "name")
            if place.bindings or key not in self._holders:
                self._holders[key] = self._named(place, expr.value, depth)
            return self._holders[key]
        if expr.kind == "call":
            return self._called(place, expr, depth)
        if expr.kind == "attr" and expr.items[0].kind == "call":
            maker = self.linker.find(place, expr.items[0].value)
            return self._attribute(maker, expr.value) if maker is not None else None
        return None

    def _url_module(self, dotted_name: str) -> Holder | None:
        """The `urlpatterns` of a module named by a string."""
        path = self.linker.world.module(dotted_name) if dotted_name else None
        return None if path is None or path.endswith("/") else Holder(path, "", URLPATTERNS, "", LIST)

    def _named(self, place: Place, name: str, depth: int) -> Holder | None:
        own = self._in_file(place, name)
        if own is not None:
            return own
        local = self.linker.local(place, name)
        if local is not None and local[0].kind in ("list", "tuple"):
            return Holder(place.path, local[1].scope, name, "", LIST)
        handed = self._handed(place, name)
        if handed is not None:
            return handed
        found = self.linker.find(place, name)
        if found is not None and found.kind == "module":
            return Holder(found.path, "", URLPATTERNS, "", LIST)
        if found is not None and found.assignment is not None:
            return self._assigned(found, depth)
        head, _, attribute = name.rpartition(".")
        if attribute == "router" and head and found is None:
            owner = self.holder(place, Expr("name", head), depth + 1)
            if owner is not None:
                return owner  # the router inside an application
        if attribute == "urls" and head:
            router = self.holder(place, Expr("name", head), depth + 1)
            if router is not None and router.role == ROUTER:
                return router
        if found is None and head:
            value = self.linker.value(place, Expr("name", head))
            if value is not None and value[0].kind == "call":
                maker = self.linker.find(value[1], value[0].value)
                return self._attribute(maker, attribute) if maker is not None else None
        return None

    def _in_file(self, place: Place, name: str) -> Holder | None:
        """A holder that the file itself makes under this name, in the scope or one around it."""
        facts = self.linker.facts(place.path)
        if facts is None:
            return None
        scopes = list(scopes_outward(place.scope))
        through_self = name.startswith(("self.", "cls."))
        class_scope = scope_around(place.scope) if through_self else None
        best: tuple[int, Holder] | None = None
        for site in facts[0].sites:
            if site.target != name:
                continue
            if through_self and scope_around(site.scope) == class_scope:
                rank = 0
            elif site.scope in scopes:
                rank = scopes.index(site.scope)
            else:
                continue
            kind = self.kind_of(place.path, site)
            if kind is not None and (best is None or rank < best[0]):
                best = (rank, Holder(place.path, site.scope, name, kind.framework, kind.role))
        return best[1] if best is not None else None

    def _handed(self, place: Place, name: str) -> Holder | None:
        """A parameter of the function around: an application that its caller hands over."""
        if "." in name:
            return None
        for scope in scopes_outward(place.scope):
            around = self.linker.at(place.path, scope) if scope else None
            for param in (
                around.definition.params if around is not None and around.definition is not None else ()
            ):
                if param.name == name:
                    kind = self._annotated(place.at(scope_around(scope)), param.annotation)
                    return Holder(place.path, scope, name, kind.framework if kind else "", HANDED)
        return None

    def _annotated(self, place: Place, annotation: Expr | None) -> Kind | None:
        name = annotation.value if annotation is not None and annotation.kind in ("name", "str") else ""
        return self._kind(place, Expr("call", name, (Expr("name", name),)), 0) if name else None

    def _assigned(self, found: Found, depth: int) -> Holder | None:
        """The holder that a module- or class-level name is bound to."""
        name = last(found.symbol_path)
        place = found.place
        own = self._in_file(place, name)
        if own is not None and own.scope == place.scope:
            return own
        value = found.assignment.value if found.assignment is not None else None
        if value is None:
            return None
        if value.kind == "call":
            facts = self.linker.facts(found.path)
            for first, other in facts[0].aliases if facts is not None else ():
                chained = self._in_file(place, first) if other == name else None
                if chained is not None:
                    return chained
        if value.kind in ("name", "call", "attr"):
            return self.holder(place, value, depth + 1)
        if value.kind in ("list", "tuple", "binop", "other"):  # `other`: a list larger than facts keep
            return Holder(found.path, place.scope, name, "", LIST)
        return None

    def _called(self, place: Place, call: Expr, depth: int) -> Holder | None:
        """The holder, or the list of routes, that a factory function returns."""
        if not call.value:
            return None
        maker = self.linker.find(place, call.value)
        if maker is None or maker.kind not in ("function", "method"):
            return None
        facts = self.linker.facts(maker.path)
        if facts is None:
            return None
        made = [
            (site, kind)
            for site in facts[0].sites
            if site.scope == maker.symbol_path and site.target and (kind := self.kind_of(maker.path, site))
        ]
        if not made:
            lists = any(s.owner == RETURNED and s.scope == maker.symbol_path for s in facts[0].sites)
            return Holder(maker.path, maker.symbol_path, RETURNED, "", LIST) if lists else None
        applications = [entry for entry in made if entry[1].role == APPLICATION]
        site, kind = (applications or made)[0 if applications else -1]
        return Holder(maker.path, site.scope, site.target, kind.framework, kind.role)

    def _attribute(self, maker: Found, attribute: str) -> Holder | None:
        """`self.<attribute>` of an instance of a class, made in one of its methods or in its body."""
        if maker.kind != "class":
            return None
        facts = self.linker.facts(maker.path)
        for site in facts[0].sites if facts is not None else ():
            inside = scope_around(site.scope) == maker.symbol_path and site.target == f"self.{attribute}"
            if inside or (site.scope == maker.symbol_path and site.target == attribute):
                kind = self.kind_of(maker.path, site)
                if kind is not None:
                    return Holder(maker.path, site.scope, site.target, kind.framework, kind.role)
        return None

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
            holder = self._url_module(site.expr.value)
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
