"""Flask (and Quart, which is written alike): applications, blueprints, class-based views, RESTful resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from kb.extract.contracts.annotations import classes_in
from kb.extract.contracts.facts import Site, last_of, target_keys
from kb.extract.contracts.handlers import (
    Handler,
    attach,
    attach_model,
    decorated,
    ground_header,
    holder_of,
    named,
    receiver,
)
from kb.extract.contracts.holders import APPLICATION, ROUTER, Holder
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import Place, Text
from kb.extract.contracts.route import Route
from kb.extract.contracts.routers import Inclusion, Mount, Routers
from kb.extract.contracts.starlette import ground_mount, included_elsewhere
from kb.extract.contracts.templates import from_angles
from kb.extract.expressions import argument, is_none, keywords, last, positional, text_of
from kb.structure.facts import Expr, ModuleFacts

_VERBS = frozenset({"get", "post", "put", "patch", "delete"})
_DECORATORS = _VERBS | {"route", "websocket"}
_REGISTERS = frozenset({"register_blueprint", "register_api", "add_namespace"})
_APPLICATIONS = frozenset({"Flask", "Quart", "APIFlask", "OpenAPI"})
_BLUEPRINTS = frozenset({"Blueprint", "APIBlueprint"})
_APIS = frozenset({"Api", "Namespace"})
_REGISTRATIONS = frozenset({"add_url_rule", "add_resource"})
_VIEW_VERBS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")


class Flask:
    """The framework module of Flask."""

    name = "flask"
    callees = _APPLICATIONS | _BLUEPRINTS | _APIS | _REGISTERS | {"add_url_rule", "add_resource"}
    decorators = _DECORATORS
    constructors: Mapping[str, str] = MappingProxyType(
        {
            "flask.Flask": APPLICATION,
            "flask.app.Flask": APPLICATION,
            "quart.Quart": APPLICATION,
            "apiflask.APIFlask": APPLICATION,
            "flask_openapi3.OpenAPI": APPLICATION,
            "flask.Blueprint": ROUTER,
            "flask.blueprints.Blueprint": ROUTER,
            "quart.Blueprint": ROUTER,
            "apiflask.APIBlueprint": ROUTER,
            "flask_openapi3.APIBlueprint": ROUTER,
            "flask_smorest.Blueprint": ROUTER,
            "flask_smorest.blueprint.Blueprint": ROUTER,
            "flask_restful.Api": ROUTER,
            "flask_restx.Api": ROUTER,
            "flask_restx.Namespace": ROUTER,
            "flask_restplus.Api": ROUTER,
            "flask_restplus.Namespace": ROUTER,
        }
    )

    def keys(self, site: Site, module: ModuleFacts) -> Iterable[str]:
        """`include:<name>` for what is registered."""
        name = last_of(site.expr)
        if name in _REGISTERS:
            yield from target_keys(site, _first(site.expr), module)
        if name in _APIS and site.target:
            yield f"include:{last(site.target)}"

    def includes(self, routers: Routers, path: str, site: Site) -> Iterator[tuple[Expr, Inclusion]]:
        """`register_blueprint` in every run of its loops, and `Api(app)`."""
        name = last_of(site.expr)
        linker = routers.linker
        if name in _REGISTERS:
            target = _first(site.expr)
            for place in linker.runs(path, site) if target is not None else ():
                given = keywords(site.expr)
                said = given.get("url_prefix") or given.get("path")
                if said is None and name == "add_namespace":
                    said = argument(site.expr, "path", 1)
                if target is None or not self._is_registration(routers, place, site):
                    continue
                prefix = _slashed(linker.text(place, said))
                replaces = said is not None and not is_none(said)
                parent = routers.holder(place, receiver(site))
                yield target, Inclusion(path, site, "include", prefix, place, parent, replaces=replaces)
        elif name == "Api" and site.target:
            place = Place(path, site.scope)
            given_app = argument(site.expr, "app", 0)
            parent = routers.holder(place, given_app) if given_app is not None else None
            if parent is not None:
                yield Expr("name", site.target), Inclusion(path, site, "include", Text(""), place, parent)

    @staticmethod
    def _is_registration(routers: Routers, place: Place, site: Site) -> bool:
        return last_of(site.expr) != "register_api" or routers.holder(place, receiver(site)) is not None

    def own_prefix(self, routers: Routers, holder: Holder) -> Text:
        """`Blueprint(url_prefix=...)`, `Api(prefix=...)`, `Namespace(path=...)`."""
        site = routers.site_of(holder)
        if site is None:
            return Text("")
        given = keywords(site.expr)
        said = given.get("url_prefix") or given.get("prefix") or given.get("path")
        if said is None and last_of(site.expr) == "Namespace":
            name = routers.linker.text(holder.place, argument(site.expr, "name", 0))
            return Text(f"/{name.value}", name.how)
        return _slashed(routers.linker.text(holder.place, said))

    def element_prefix(self, routers: Routers, place: Place, site: Site) -> Text | None:
        """Never: rules stand in no list."""
        return None

    def routes(self, routers: Routers) -> Iterator[Route]:
        """Decorated views, `add_url_rule` and `add_resource` of the linked file."""
        for site in routers.linker.own.sites:
            name = last_of(site.expr)
            if name == "register_blueprint" and not site.decorates:
                yield from included_elsewhere(routers, site, self.includes)
            if name not in (_DECORATORS if site.decorates else _REGISTRATIONS):
                continue
            for place, holder in holder_of(routers, site):
                if holder is None or holder.framework not in ("flask", ""):
                    continue
                if holder.framework or self._likely(routers.linker, name):
                    yield from self._site(routers, site, name, place, holder)

    @staticmethod
    def _likely(linker: Linker, name: str) -> bool:
        """A view on something that a function was handed, in a file that speaks of Flask."""
        modules = {imported.module.partition(".")[0] for imported in linker.file.module.imports}
        return name in ("route", "add_url_rule") and bool(modules & {"flask", "quart"})

    def _site(self, routers: Routers, site: Site, name: str, place: Place, holder: Holder) -> Iterator[Route]:
        linker = routers.linker
        if site.handler:
            handler = decorated(linker, site, _DECORATORS)
        elif name == "add_resource":
            handler = named(linker, place, argument(site.expr, "resource", 0))
        else:
            handler = named(linker, place, site.applied or argument(site.expr, "view_func", 2))
        rules = positional(site.expr)[1:] if name == "add_resource" else positional(site.expr)[:1]
        if not rules:
            rule = argument(site.expr, "rule", 0)
            rules = (rule,) if rule is not None else ()
        for rule in rules:
            for mount in routers.mounts(holder):
                inside = mount.read_in(place)
                local = linker.text(inside, rule)
                yield from self._routes(routers, site, name, inside, handler, local, mount)

    def _routes(
        self,
        routers: Routers,
        site: Site,
        name: str,
        place: Place,
        handler: Handler,
        rule: Text,
        mount: Mount,
    ) -> Iterator[Route]:
        linker = routers.linker
        template = _join(mount.prefix, rule)
        plain, parameters = from_angles(template.value)
        methods, known = self._methods(linker, place, site, name, handler)
        for method in methods:
            route = Route("flask", method, Text(plain, template.how), mount.root, handler.name)
            route.conditional = mount.conditional or site.branch == "if"
            route.stand_on(linker.file.ground(site.span, "route"))
            self._attach(linker, route, handler, method)
            ground_mount(routers, route, mount)
            if not known:
                route.unresolved.append("methods")
            route.details["parameters"] = parameters
            if plain != template.value:
                route.details["pattern"] = template.value
            endpoint = text_of(keywords(site.expr).get("endpoint"))
            route.details["endpoint"] = endpoint
            yield route

    @staticmethod
    def _attach(linker: Linker, route: Route, handler: Handler, method: str) -> None:
        """Ground on the function, or on the class and the method of it that answers."""
        found = handler.found
        if found is not None and found.kind == "class":
            route.stand_on(ground_header(linker, found, "view"))
            inner = linker.member(found, method.lower()) or linker.member(found, "dispatch_request")
            if inner is not None and inner.definition is not None:
                handler = Handler(handler.name, inner, ground_header(linker, inner, "handler"))
        attach(linker, route, handler)
        definition = handler.definition
        if definition is None or handler.found is None:
            return
        for param in definition.params:
            for model in classes_in(linker, handler.found.place, param.annotation):
                attach_model(linker, route, model, "request_model")
        for model in classes_in(linker, handler.found.place, definition.returns):
            attach_model(linker, route, model, "response_model")

    @staticmethod
    def _methods(
        linker: Linker, place: Place, site: Site, name: str, handler: Handler
    ) -> tuple[list[str], bool]:
        """The methods, HEAD and OPTIONS that Flask adds by itself left out, and whether they are known."""
        if name in _VERBS and site.decorates:
            return [name.upper()], True
        if name == "websocket":
            return ["WEBSOCKET"], True
        asked = argument(site.expr, "methods")
        if asked is not None and not is_none(asked):
            texts = linker.texts(place, asked)
            return (sorted({text.upper() for text in texts}), True) if texts else (["ANY"], False)
        found = handler.found
        if found is not None and found.kind == "class":
            listed = linker.member(found, "methods")
            if listed is not None and listed.assignment is not None:
                texts = linker.texts(listed.place, listed.assignment.value)
                if texts:
                    return sorted({text.upper() for text in texts}), True
            verbs = [verb.upper() for verb in _VIEW_VERBS if linker.member(found, verb) is not None]
            return (verbs, True) if verbs else (["GET"], True)
        return ["GET"], True


def _first(call: Expr) -> Expr | None:
    given = positional(call)
    return given[0] if given else next(iter(keywords(call).values()), None)


def _slashed(text: Text) -> Text:
    stripped = text.value.strip("/") if text.how == "exact" else text.value.rstrip("/").lstrip("/")
    return Text(f"/{stripped}" if stripped else "", text.how)


def _join(prefix: Text, rule: Text) -> Text:
    if not prefix.value:
        return (
            rule if rule.value.startswith(("/", "<")) or not rule.value else Text(f"/{rule.value}", rule.how)
        )
    if not rule.value:
        return prefix
    return prefix + Text("/" + rule.value.lstrip("/"), rule.how)
