"""Starlette: lists of routes, mounts and class-based endpoints; also what FastAPI inherits of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from kb.extract.contracts.facts import Site, last_of, target_keys
from kb.extract.contracts.handlers import Handler, attach, decorated, holder_of, named, receiver
from kb.extract.contracts.holders import APPLICATION, ROUTER, Holder
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import Found, Place, Text
from kb.extract.contracts.route import Route
from kb.extract.contracts.routers import Inclusion, Mount, Routers
from kb.extract.contracts.templates import from_braces
from kb.extract.expressions import argument, brief, dotted, is_false, keywords
from kb.structure.facts import Expr, ModuleFacts

_MOUNTS = frozenset({"Mount", "mount", "Host", "host"})
_ELEMENTS = frozenset({"Route", "WebSocketRoute", "Mount", "Host"})
_LISTS = frozenset({"Starlette", "Router"})
_ROUTES_AT = {"Starlette": 1, "Router": 0}
"""Where a constructor takes its routes by position."""
_ADDS = frozenset({"add_route", "add_websocket_route"})
_DECORATORS = frozenset({"route", "websocket_route"})
_ENDPOINT_VERBS = ("get", "post", "put", "patch", "delete", "head", "options")


class Starlette:
    """The framework module of Starlette."""

    name = "starlette"
    callees = _MOUNTS | _ELEMENTS | _LISTS | _ADDS
    decorators = _DECORATORS
    constructors: Mapping[str, str] = MappingProxyType(
        {
            "starlette.applications.Starlette": APPLICATION,
            "starlette.routing.Router": ROUTER,
        }
    )

    def keys(self, site: Site, module: ModuleFacts) -> Iterable[str]:
        """`include:<name>` for what is mounted or taken in as a list."""
        for target in _targets(site):
            yield from target_keys(site, target, module)

    def includes(self, routers: Routers, path: str, site: Site) -> Iterator[tuple[Expr, Inclusion]]:
        """Mounts, and the list that a constructor is given by name."""
        name = last_of(site.expr)
        if name not in _MOUNTS and name not in _LISTS:
            return
        for place in routers.linker.runs(path, site):
            prefix = _prefix(routers.linker, place, site)
            for target in _targets(site):
                if name in ("mount", "host"):
                    parent = routers.holder(place, receiver(site))
                    yield target, Inclusion(path, site, "mount", prefix, place, parent)
                elif name in ("Mount", "Host"):
                    yield target, Inclusion(path, site, "mount", prefix, place, element=True)
                else:
                    kind = routers.kind_of(path, site)
                    if kind is not None and site.target:
                        made = Holder(path, site.scope, site.target, kind.framework, kind.role)
                        yield target, Inclusion(path, site, "list", Text(""), place, made)
                    elif kind is not None:
                        yield target, Inclusion(path, site, "list", Text(""), place, element=True)

    def own_prefix(self, routers: Routers, holder: Holder) -> Text:
        """None: only mounts have one."""
        return Text("")

    def element_prefix(self, routers: Routers, place: Place, site: Site) -> Text | None:
        """The path of `Mount(path, routes=[...])` and of `app.mount(path, Router(...))`."""
        return _prefix(routers.linker, place, site) if last_of(site.expr) in _MOUNTS else None

    def routes(self, routers: Routers) -> Iterator[Route]:
        """Routes in lists, added ones, decorated ones, and mounted applications that are not read."""
        linker = routers.linker
        for site in linker.own.sites:
            name = last_of(site.expr)
            if site.decorates:
                if name in _DECORATORS:
                    yield from self._on_holder(routers, site, name)
            elif name in _ADDS:
                yield from self._on_holder(routers, site, name)
            elif name in ("Route", "WebSocketRoute") and self._is_ours(linker, site):
                for place in linker.runs(linker.file.path, site):
                    handler = named(linker, place, argument(site.expr, "endpoint", 1))
                    for mount in routers.element_mounts(linker.file.path, site):
                        yield from self._routes(routers, site, name, place, handler, mount)
            elif name in ("Mount", "mount") and self._foreign(routers, site):
                yield from self._mounted(routers, site, name)

    @staticmethod
    def _is_ours(linker: Linker, site: Site) -> bool:
        qualified = linker.qualified(Place(linker.file.path, site.scope), site.expr.value)
        return qualified.startswith(("starlette.", "fastapi.")) or qualified == site.expr.value

    def _on_holder(self, routers: Routers, site: Site, name: str) -> Iterator[Route]:
        for place, holder in holder_of(routers, site):
            if holder is None or holder.framework not in ("starlette", "fastapi"):
                continue
            if site.handler:
                handler = decorated(routers.linker, site, _DECORATORS)
            else:
                given = site.applied or argument(site.expr, "endpoint") or argument(site.expr, "route", 1)
                handler = named(routers.linker, place, given)
            for mount in routers.mounts(holder):
                yield from self._routes(routers, site, name, place, handler, mount)

    def _routes(
        self, routers: Routers, site: Site, name: str, place: Place, handler: Handler, mount: Mount
    ) -> Iterator[Route]:
        linker = routers.linker
        template = mount.prefix + linker.text(place, argument(site.expr, "path", 0))
        plain, parameters = from_braces(template.value)
        socket = "ebSocket" in name or "websocket" in name
        for method in ["WEBSOCKET"] if socket else self._methods(linker, place, site, handler):
            route = Route("starlette", method, Text(plain, template.how), mount.root, handler.name)
            route.conditional = mount.conditional or site.branch == "if"
            route.stand_on(linker.file.ground(site.span, "route"))
            attach(linker, route, _method_handler(linker, handler, method))
            ground_mount(routers, route, mount)
            route.details["parameters"] = parameters
            if plain != template.value:
                route.details["pattern"] = template.value
            if is_false(keywords(site.expr).get("include_in_schema")):
                route.details["include_in_schema"] = "no"
            yield route

    @staticmethod
    def _methods(linker: Linker, place: Place, site: Site, handler: Handler) -> list[str]:
        asked = argument(site.expr, "methods", 1 if site.decorates else 2)
        if asked is not None:
            return sorted({method.upper() for method in linker.texts(place, asked) or ["ANY"]})
        if handler.found is not None and handler.found.kind == "class":
            found = [
                verb.upper() for verb in _ENDPOINT_VERBS if linker.member(handler.found, verb) is not None
            ]
            return found or ["ANY"]
        return ["GET"]

    @staticmethod
    def _foreign(routers: Routers, site: Site) -> bool:
        """Whether a mount holds something that is no application, router or list of this repository."""
        path = routers.linker.file.path
        if _written_inside(site):
            return False
        targets = list(_targets(site))
        if not targets:
            return False
        if last_of(site.expr) == "mount" and routers.holder(Place(path, site.scope), receiver(site)) is None:
            return False
        return all(
            routers.holder(place, target) is None
            for place in routers.linker.runs(path, site)
            for target in targets
        ) and not _holds_sites(routers, site)

    def _mounted(self, routers: Routers, site: Site, name: str) -> Iterator[Route]:
        linker = routers.linker
        for place in linker.runs(linker.file.path, site):
            parent = routers.holder(place, receiver(site)) if name == "mount" else None
            if name == "mount":
                ways: tuple[Mount, ...] = routers.mounts(parent) if parent is not None else ()
            else:
                ways = routers.element_mounts(linker.file.path, site)
            target = next(_targets(site))
            for mount in ways:
                path = mount.prefix + _prefix(linker, place, site)
                route = Route("starlette", "MOUNT", path, mount.root, brief(target))
                route.stand_on(linker.file.ground(site.span, "route"))
                ground_mount(routers, route, mount)
                route.details["description"] = (
                    f"Everything below {path.value} is answered by {brief(target)}."
                )
                route.conditional = mount.conditional or site.branch == "if"
                yield route


def included_elsewhere(
    routers: Routers, site: Site, includes: Callable[[Routers, str, Site], Iterator[tuple[Expr, Inclusion]]]
) -> Iterator[Route]:
    """One artifact for each include of what is not in the repository, or is chosen at run time."""
    linker = routers.linker
    for target, inclusion in includes(routers, linker.file.path, site):
        parent = inclusion.parent
        if parent is None or not parent.framework or routers.holder(inclusion.place, target) is not None:
            continue
        if routers.makes(
            inclusion.place, target
        ):  # an own one without a name, which nothing is registered on
            continue
        said = linker.qualified(inclusion.place, dotted(target)) or brief(target)
        for mount in routers.mounts(parent):
            path = mount.prefix + inclusion.prefix
            route = Route(parent.framework, "INCLUDE", Text(path.value or "/", path.how), mount.root, said)
            route.stand_on(linker.file.ground(site.span, "route"))
            ground_mount(routers, route, mount)
            route.unresolved.append(f"the routes of {said}")
            route.conditional = mount.conditional or site.branch == "if"
            yield route


def _written_inside(site: Site) -> bool:
    """Whether the mount's routes are written inside the call itself."""
    routes = keywords(site.expr).get("routes")
    return routes is not None and routes.kind in ("list", "tuple")


def _holds_sites(routers: Routers, site: Site) -> bool:
    own = routers.linker.own.sites
    number = next((at for at, other in enumerate(own) if other is site), -1)
    return any(other.container == number for other in own)


def _targets(site: Site) -> Iterator[Expr]:
    """What a mount or a constructor names: an application, or a list of routes by its name."""
    name = last_of(site.expr)
    if name in _MOUNTS:
        target = argument(site.expr, "app", 1)
        if target is not None:
            yield target
    if name in _MOUNTS or name in _LISTS:
        routes = argument(site.expr, "routes", _ROUTES_AT.get(name))
        if routes is not None:
            yield from _names(routes)


def _names(expr: Expr) -> Iterator[Expr]:
    """Lists by name: alone, added to each other, or unpacked inside a list that is written out."""
    if expr.kind in ("list", "tuple"):
        for item in expr.items:
            if item.kind == "star":
                yield from _names(item.items[0])
    elif expr.kind == "binop":
        for item in expr.items:
            yield from _names(item)
    elif expr.kind in ("name", "call"):
        yield expr


def _prefix(linker: Linker, place: Place, site: Site) -> Text:
    if last_of(site.expr) in ("Host", "host"):
        return Text("")
    said = linker.text(place, argument(site.expr, "path", 0))
    return Text(said.value.rstrip("/"), said.how)


def _method_handler(linker: Linker, handler: Handler, method: str) -> Handler:
    """The method of a class-based endpoint that answers."""
    if handler.found is None or handler.found.kind != "class":
        return handler
    found: Found | None = linker.member(handler.found, method.lower())
    if found is None or found.definition is None:
        return handler
    view = linker.view(found.path)
    return Handler(
        handler.name, found, view.ground_module(found.definition.header, "handler") if view else None
    )


def ground_mount(routers: Routers, route: Route, mount: Mount) -> None:
    """Ground the route on every call that contributes its prefix, and on what makes its holders."""
    for inclusion in mount.inclusions:
        route.stand_on(routers.linker.ground_site(inclusion.path, inclusion.site, "include"))
    for holder in mount.holders:
        site = routers.site_of(holder) if holder.name else None
        if site is not None:
            route.stand_on(routers.linker.ground_site(holder.path, site, "router"))
