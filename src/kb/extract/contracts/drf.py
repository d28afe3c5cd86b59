"""Django REST framework: viewsets on routers, one route per action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kb.extract.contracts import drf_views
from kb.extract.contracts.django import ancestors
from kb.extract.contracts.facts import Site, last_of, target_keys
from kb.extract.contracts.handlers import Handler, attach, ground_header, holder_of, named, receiver
from kb.extract.contracts.holders import ROUTER, Holder
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import APPROXIMATE, EXACT, Found, Place, Text, worst
from kb.extract.contracts.route import Route
from kb.extract.contracts.routers import Inclusion, Mount, Routers
from kb.extract.contracts.starlette import ground_mount
from kb.extract.contracts.templates import from_angles, from_regex
from kb.extract.expressions import argument, dotted, is_false, is_true, keywords, last, text_of
from kb.structure.facts import Expr, ModuleFacts

_ROUTERS = ("DefaultRouter", "SimpleRouter", "BaseRouter")
_LIST = {"get": "list", "post": "create"}
_DETAIL = {"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}


class _Action(NamedTuple):
    method: str
    suffix: str
    """Below the list's path, or below the detail's one."""
    detail: bool
    name: str
    marked: str
    """The method whose `@action` says how it is called: its own, or the one that it is a further verb of."""
    exact: bool = True


class RestFramework:
    """The framework module of Django REST framework."""

    name = "django-rest-framework"
    callees = frozenset({*_ROUTERS, "register", "extend"})
    decorators: frozenset[str] = frozenset()
    constructors: Mapping[str, str] = MappingProxyType(
        {
            **{f"rest_framework.routers.{name}": ROUTER for name in _ROUTERS},
            "rest_framework_extensions.routers.ExtendedDefaultRouter": ROUTER,
            "rest_framework_extensions.routers.ExtendedSimpleRouter": ROUTER,
        }
    )

    def keys(self, site: Site, module: ModuleFacts) -> Iterable[str]:
        """`include:<name>` for a router whose registrations another one takes over."""
        target = _taken_over(site)
        return target_keys(site, target, module) if target is not None else ()

    def includes(self, routers: Routers, path: str, site: Site) -> Iterator[tuple[Expr, Inclusion]]:
        """`router.registry.extend(other.registry)`; Django's `include` is what includes the router itself."""
        target = _taken_over(site)
        owner = receiver(site)
        if target is None or owner.kind != "name":
            return
        for place in routers.linker.runs(path, site):
            parent = routers.holder(place, Expr("name", owner.value.removesuffix(".registry")))
            if parent is not None:
                yield target, Inclusion(path, site, "list", Text(""), place, parent)

    def own_prefix(self, routers: Routers, holder: Holder) -> Text:
        """None: prefixes stand at the registrations."""
        return Text("")

    def element_prefix(self, routers: Routers, place: Place, site: Site) -> Text | None:
        """Never."""
        return None

    def routes(self, routers: Routers) -> Iterator[Route]:
        """The actions of every viewset that the linked file registers."""
        linker = routers.linker
        for site in linker.own.sites:
            yield from self._root_view(routers, site)
            if site.handler or last_of(site.expr) != "register":
                continue
            for place, holder in holder_of(routers, site):
                if holder is None or holder.framework not in (self.name, ""):
                    continue
                viewset = named(linker, place, argument(site.expr, "viewset", 1))
                prefix = _angled(linker.text(place, argument(site.expr, "prefix", 0)))
                for mount in routers.mounts(holder):
                    yield from self._registered(routers, site, prefix, viewset, holder, mount)

    def _root_view(self, routers: Routers, site: Site) -> Iterator[Route]:
        """The page that a `DefaultRouter` adds, which lists what is registered."""
        path = routers.linker.file.path
        if last_of(site.expr) != "DefaultRouter" or not site.target or routers.kind_of(path, site) is None:
            return
        if is_false(keywords(site.expr).get("include_root_view")):
            return
        for mount in routers.mounts(Holder(path, site.scope, site.target, self.name, ROUTER)):
            if (
                mount.inclusions
                and mount.inclusions[-1].kind == "list"
                and last_of(mount.inclusions[-1].site.expr)
            ):
                continue  # only its registrations were taken over
            route = Route(
                self.name, "GET", Text("/") + mount.prefix, mount.root, "rest_framework.routers.APIRootView"
            )
            route.stand_on(routers.linker.file.ground(site.span, "route"))
            ground_mount(routers, route, mount)
            route.details["description"] = "Lists the endpoints that are registered on the router."
            yield route

    def _registered(
        self, routers: Routers, site: Site, prefix: Text, viewset: Handler, holder: Holder, mount: Mount
    ) -> Iterator[Route]:
        linker = routers.linker
        slash = "" if _bare(routers, _outermost(mount, holder)) else "/"
        base = Text("/") + mount.prefix + prefix
        found = viewset.found
        if found is None or not found.internal:
            route = Route(self.name, "ANY", base + Text(slash), mount.root, viewset.name)
            route.stand_on(linker.file.ground(site.span, "route"))
            ground_mount(routers, route, mount)
            route.unresolved.append(f"the actions of {viewset.name}")
            yield route
            return
        lookup = _lookup(linker, found)
        for action in _actions(linker, found):
            path = base + (Text("/") if prefix.value and action.detail else Text(""))
            path = path + (Text(f"<{lookup}>") if action.detail else Text(""))
            if action.suffix:
                path = path + Text(("/" if action.detail or prefix.value else "") + action.suffix)
            path = path if action.exact else Text(path.value, worst(path.how, APPROXIMATE))
            plain, parameters = from_angles(path.value)
            trailing = slash if plain != "/" and not plain.endswith("/") else ""
            route = Route(
                self.name, action.method, Text(plain + trailing, path.how), mount.root, found.qualified
            )
            route.conditional = mount.conditional or site.branch == "if"
            route.stand_on(linker.file.ground(site.span, "route"))
            route.stand_on(ground_header(linker, found, "view"))
            answering = linker.member(found, action.name)
            if answering is not None and answering.definition is not None:
                attach(
                    linker,
                    route,
                    Handler(found.qualified, answering, ground_header(linker, answering, "handler")),
                )
            else:
                attach(linker, route, viewset)
            if answering is None and found.definition is not None:
                route.docstring = found.definition.docstring
            ground_mount(routers, route, mount)
            route.details["parameters"] = parameters
            route.details["action"] = action.name
            says = answering if action.marked == action.name else linker.member(found, action.marked)
            drf_views.describe(linker, route, found, action.method, drf_views.marked(says))
            yield route


def _taken_over(site: Site) -> Expr | None:
    """The router whose registrations `registry.extend(<router>.registry)` takes."""
    given = argument(site.expr, "iterable", 0) if last_of(site.expr) == "extend" else None
    written = dotted(given) if given is not None and given.kind == "name" else ""
    return Expr("name", written.removesuffix(".registry")) if written.endswith(".registry") else None


def _outermost(mount: Mount, holder: Holder) -> Holder:
    """The router that makes the paths: the one that took the registrations of the others over."""
    return next((above for above in mount.holders if above.framework == holder.framework), holder)


def _angled(text: Text) -> Text:
    """A prefix or path, which may be a regular expression, with `<name>` for each of its groups."""
    if "(" not in text.value:
        return text
    plain, exact = from_regex(text.value)
    return Text(plain, text.how if exact else worst(text.how, APPROXIMATE))


def _bare(routers: Routers, holder: Holder) -> bool:
    """Whether the router leaves out the trailing slash."""
    site = routers.site_of(holder)
    if site is None:
        return False
    said = keywords(site.expr).get("trailing_slash")
    return is_false(said)


def _lookup(linker: Linker, found: Found) -> str:
    for name in ("lookup_url_kwarg", "lookup_field"):
        said = drf_views.setting(linker, found, name)
        text = linker.text(said[1], said[0]) if said is not None else None
        if text is not None and text.how == EXACT and text.value:
            return text.value
    return "pk"


def _actions(linker: Linker, found: Found) -> Iterator[_Action]:
    """Standard actions that the class or its bases have, then those marked by `@action`."""
    brought = {action for base in ancestors(linker, found) for action in drf_views.mixed_in(base.qualified)}
    allowed = _allowed(linker, found)
    for table, detail in ((_LIST, False), (_DETAIL, True)):
        for verb, name in table.items():
            if (name in brought or linker.member(found, name) is not None) and verb in allowed:
                yield _Action(verb.upper(), "", detail, name, name)
    for owner in (found, *(base for base in ancestors(linker, found) if base.internal)):
        yield from _marked(linker, owner, allowed)


def _allowed(linker: Linker, found: Found) -> frozenset[str]:
    said = drf_views.setting(linker, found, "http_method_names")
    texts = linker.texts(said[1], said[0]) if said is not None else None
    return frozenset(texts if texts is not None else ("get", "post", "put", "patch", "delete", "head"))


def _marked(linker: Linker, owner: Found, allowed: frozenset[str]) -> Iterator[_Action]:
    """Methods under `@action`, and those that answer further verbs of one (`@close.mapping.delete`)."""
    called: dict[str, tuple[Text, bool]] = {}
    for name in owner.definition.members if owner.definition is not None else ():
        member = linker.at(owner.path, f"{owner.symbol_path}.{name}")
        definition = member.definition if member is not None else None
        for decorator in definition.decorators if definition is not None else ():
            verbs: list[str] = []
            marked = name
            if last_of(decorator.expr) == "action" and member is not None:
                given = keywords(decorator.expr)
                listed = argument(decorator.expr, "methods", 0)
                verbs = (linker.texts(member.place, listed) if listed is not None else None) or ["get"]
                path = _angled(Text(text_of(given.get("url_path")) or name))
                called[name] = path, is_true(argument(decorator.expr, "detail", 1))
            elif ".mapping." in dotted(decorator.expr):
                marked = dotted(decorator.expr).partition(".")[0]
                verbs = [last(dotted(decorator.expr))] if marked in called else []
            for verb in verbs:
                if verb.lower() in allowed:
                    path, detail = called[marked]
                    yield _Action(verb.upper(), path.value, detail, name, marked, path.how == EXACT)
