"""What routes are registered on: the application, router, blueprint or list that an expression stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kb.extract.contracts.facts import RETURNED, Site
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import Found, Place, scope_around, scopes_outward
from kb.extract.expressions import last
from kb.structure.facts import Expr

APPLICATION, ROUTER, LIST, HANDED = "application", "router", "list", "handed"
URLPATTERNS = "urlpatterns"
_DEEP = 12


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


class Holders:
    """What names and calls stand for, as seen from one file's link.

    Args:
        linker: the look-ups of the file's link.
        constructors: by framework, the full dotted names of its constructors with what they make.
    """

    def __init__(self, linker: Linker, constructors: Mapping[str, Mapping[str, str]]) -> None:
        self.linker = linker
        self.kinds = {
            qualified: Kind(framework, role)
            for framework, made in constructors.items()
            for qualified, role in made.items()
        }
        self._names = frozenset(self.kinds)
        self._simple = {last(qualified): kind for qualified, kind in self.kinds.items()}
        self._holders: dict[tuple[str, str, str, str], Holder | None] = {}
        self._made: dict[tuple[str, int], Kind | None] = {}

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
            return self.url_module(expr.value)
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

    def url_module(self, dotted_name: str) -> Holder | None:
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
