"""What answers a route: the definition behind a decorator or a name, with grounding and links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kb.extract.contracts.facts import Site, decorator_name
from kb.extract.contracts.holders import Holder
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import Found, Place, scope_around
from kb.extract.contracts.route import Route
from kb.extract.contracts.routers import Routers
from kb.extract.expressions import brief, last
from kb.model.artifacts import Grounding, Link
from kb.structure.facts import Definition, Expr

_WRAPPERS_DEEP = 6


@dataclass(frozen=True)
class Handler:
    """A function, method or class that answers, or how it is written where it cannot be told."""

    name: str
    found: Found | None = None
    grounding: Grounding | None = None

    @property
    def definition(self) -> Definition | None:
        """Its definition, where it is inside the repository."""
        return self.found.definition if self.found is not None else None


def receiver(site: Site) -> Expr:
    """What a method call is made on (`router` of `router.get(...)`)."""
    if site.expr.value:
        return Expr("name", site.expr.value.rpartition(".")[0])
    callee = site.expr.items[0]
    return callee.items[0] if callee.kind == "attr" and callee.items else callee


def decorated(linker: Linker, site: Site, names: frozenset[str]) -> Handler:
    """The definition that a decorator of the linked file stands on."""
    candidates = [
        definition
        for definition in linker.file.module.definitions
        if definition.symbol_path == site.handler
        and any(decorator_name(decorator) in names for decorator in definition.decorators)
    ]
    module = linker.file.module_name
    qualified = f"{module}.{site.handler}" if module else site.handler
    if site.which >= len(candidates):
        return Handler(qualified)
    definition = candidates[site.which]
    found = Found(qualified, True, linker.file.path, site.handler, definition.kind, definition)
    return Handler(qualified, found, linker.file.ground_module(definition.header, "handler"))


def named(linker: Linker, place: Place, expr: Expr | None) -> Handler:
    """The definition that an argument names, seen through the calls that wrap it."""
    written = expr
    for _ in range(_WRAPPERS_DEEP):
        if expr is None:
            break
        expr, place = linker.bound(place, expr)
        if expr.kind == "name":
            found = _named(linker, place, expr.value)
            found = _rebound(linker, found) or found
            if found is not None and found.assignment is not None and found.assignment.value is not None:
                expr, place = found.assignment.value, found.place
                continue
            if found is not None:
                return Handler(found.qualified, found, ground_header(linker, found, "handler"))
            kept = linker.local(place, expr.value)  # `view = Items.as_view("items")` in the function around
            if kept is None:
                break
            expr, place = kept
            continue
        if expr.kind != "call":
            break
        inner = _unwrapped(expr)
        if inner is None:  # an instance of a class that can be called
            maker = linker.find(place, expr.value) if expr.value else None
            if maker is not None and maker.kind == "class":
                return Handler(maker.qualified, maker, ground_header(linker, maker, "handler"))
        expr = inner
    return Handler(brief(written) if written is not None else "dynamic")


def view_call(linker: Linker, place: Place, expr: Expr | None) -> tuple[Expr, Place] | None:
    """The call of `as_view` that a view comes from, through the names and the calls around it."""
    for _ in range(_WRAPPERS_DEEP):
        said = linker.value(place, expr) if expr is not None else None
        if said is None or said[0].kind != "call":
            return None
        expr, place = said
        if last(expr.value) == "as_view" and "." in expr.value:
            return expr, place
        expr = _unwrapped(expr)
    return None


def _rebound(linker: Linker, found: Found | None) -> Found | None:
    """The function behind `view = wrapped(view)`, where the linked file itself defines it."""
    if found is None or found.assignment is None or found.path != linker.file.path:
        return None
    for definition in linker.file.module.definitions:
        if definition.symbol_path == found.symbol_path:
            return Found(found.qualified, True, found.path, found.symbol_path, definition.kind, definition)
    return None


def ground_header(linker: Linker, found: Found, role: str) -> Grounding | None:
    """A grounding on the header of a function or class, None for anything else."""
    view = linker.view(found.path) if found.internal and found.definition is not None else None
    if view is None or found.definition is None:
        return None
    return view.ground_module(found.definition.header, role)


def _unwrapped(call: Expr) -> Expr | None:
    """The view inside `View.as_view(...)`, `login_required(view)`, `partial(view, x)`."""
    if last(call.value) in ("as_view", "as_asgi", "as_handler") and "." in call.value:
        return Expr("name", call.value.rpartition(".")[0])
    inner = [item for item in call.items[1:] if item.kind in ("name", "call")]
    return inner[0] if inner else None


def _named(linker: Linker, place: Place, name: str) -> Found | None:
    if name.startswith(("self.", "cls.")):
        owner = linker.at(place.path, scope_around(place.scope))
        return (
            linker.member(owner, name.partition(".")[2])
            if owner is not None and owner.kind == "class"
            else None
        )
    found = linker.find(place, name)
    if found is not None:
        return found
    head, _, attribute = name.rpartition(".")
    value = linker.value(place, Expr("name", head)) if head else None
    if value is not None and value[0].kind == "call":
        maker = linker.find(value[1], value[0].value)
        if maker is not None and maker.kind == "class":
            return linker.member(maker, attribute)
    return None


def attach(linker: Linker, route: Route, handler: Handler) -> None:
    """Ground the route on its handler and link it; say so where there is none to be found."""
    route.stand_on(handler.grounding)
    if handler.found is not None and handler.found.internal and handler.definition is not None:
        route.links.append(Link("handled_by", linker.symbol_key(handler.found)))
        route.docstring = route.docstring or handler.definition.docstring
    elif handler.found is None:
        route.unresolved.append(f"handler {handler.name}")


def attach_model(linker: Linker, route: Route, found: Found, role: str) -> None:
    """Ground the route on a model's class and link both its symbol and its entity."""
    route.stand_on(linker.ground(found, role))
    key = linker.symbol_key(found)
    route.links.append(Link("uses_model", key))
    route.links.append(Link("uses_model", "entity:" + key.removeprefix("symbol:")))


def attach_dependency(linker: Linker, route: Route, found: Found) -> None:
    """Ground the route on a dependency and link it."""
    route.stand_on(linker.ground(found, "dependency"))
    route.links.append(Link("depends_on", linker.symbol_key(found)))


def holder_of(routers: Routers, site: Site) -> Iterator[tuple[Place, Holder | None]]:
    """What the site's method is called on, once for each time that its loops run."""
    for place in routers.linker.runs(routers.linker.file.path, site):
        yield place, routers.holder(place, receiver(site))
