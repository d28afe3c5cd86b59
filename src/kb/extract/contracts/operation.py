"""One path operation of FastAPI: parameters, body, responses, security, from every call on the way down to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kb.extract.contracts.annotations import Annotation, classes_in, open_annotation, type_text
from kb.extract.contracts.facts import Site
from kb.extract.contracts.handlers import Handler, attach, attach_dependency, attach_model
from kb.extract.contracts.linker import keyword
from kb.extract.contracts.parameters import Collector, unique
from kb.extract.contracts.place import DYNAMIC, Found, Place, Text
from kb.extract.contracts.route import Route
from kb.extract.contracts.routers import Mount, Routers
from kb.extract.contracts.templates import from_braces
from kb.extract.expressions import dotted, is_false, is_none, is_true, keywords, last, pairs
from kb.structure.facts import Expr

_RESPONSE_MODULES = ("starlette.responses", "fastapi.responses", "fastapi", "starlette", "sse_starlette")
_RESPONSES = frozenset(
    f"{module}.{name}"
    for module in (*_RESPONSE_MODULES, "sse_starlette.sse", "fastapi.sse", "starlette.templating")
    for name in "Response JSONResponse HTMLResponse PlainTextResponse RedirectResponse StreamingResponse FileResponse "
    "ORJSONResponse UJSONResponse EventSourceResponse _TemplateResponse".split()
)
_JSON = frozenset({"JSONResponse", "ORJSONResponse", "UJSONResponse"})
_STREAMS = frozenset("AsyncIterable AsyncIterator AsyncGenerator Iterable Iterator Generator".split())
_NO_BODY = ("1", "204", "205", "304")


class Operation:
    """One method of one route below one mount."""

    def __init__(
        self,
        routers: Routers,
        site: Site,
        place: Place,
        handler: Handler,
        mount: Mount,
        method: str,
        path: Text,
    ) -> None:
        self.routers = routers
        self.linker = routers.linker
        self.site = site
        self.place = place
        self.handler = handler
        self.mount = mount
        self.method = method
        self.template = path
        plain, parameters = from_braces(path.value)
        self.path = Text(plain, path.how)
        self.options = keywords(site.expr)
        # What adds to the operation from outside in: the mount's calls, each with where it is read.
        self.layers: list[tuple[Expr, Place, bool]] = []
        self._layer_up()
        self.collector = Collector(self.linker, frozenset(entry["name"] for entry in parameters))

    def _layer_up(self) -> None:
        """Constructor, include, constructor, include...; a mounted application starts anew."""
        for number, holder in enumerate(self.mount.holders):
            if number:
                inclusion = self.mount.inclusions[number - 1]
                if inclusion.kind == "mount":
                    self.layers.clear()
                else:
                    self.layers.append((inclusion.site.expr, inclusion.place, True))
            site = self.routers.site_of(holder)
            if site is not None:
                self.layers.append((site.expr, holder.place, False))
        self.layers.append((self.site.expr, self.place, False))

    def route(self) -> Route:
        """The operation, read completely."""
        route = Route("fastapi", self.method, self.path, self.mount.root, self.handler.name)
        route.conditional = self.mount.conditional or self.site.branch == "if"
        route.stand_on(self.linker.file.ground(self.site.span, "route"))
        attach(self.linker, route, self.handler)
        self._ground_mount(route)
        self._collect()
        taken = self.collector.taken
        route.unresolved.extend(taken.unresolved)
        details = route.details
        if self.template.value != self.path.value:
            details["pattern"] = self.template.value
        details["parameters"] = list(taken.parameters.values())
        body = self.collector.request_body() if self.method != "WEBSOCKET" else None
        details["request_body"] = body
        if self.method != "WEBSOCKET":
            self._responses(route, bool(taken.parameters or body))
        details["tags"] = self._tags()
        details["dependencies"] = list(taken.dependencies)
        details["security"] = [{"scheme": name, "scopes": scopes} for name, scopes in taken.security.items()]
        details["deprecated"] = any(is_true(keyword(call, "deprecated")) for call, _, _ in self.layers)
        if any(is_false(keyword(call, "include_in_schema")) for call, _, _ in self.layers):
            details["include_in_schema"] = "no"
        for name in ("operation_id", "name", "summary", "description"):
            said = self.linker.text(self.place, self.options.get(name))
            details[name] = said.value if said.how != DYNAMIC else None
        details["root_path"] = self._root_path()
        details["schema_of"] = self._schema_of()
        for part in taken.body.values():
            for model in part.models:
                attach_model(self.linker, route, model, "request_model")
        for model in unique(taken.models):
            attach_model(self.linker, route, model, "parameter_model")
        for found in taken.dependencies.values():
            if found is not None:
                attach_dependency(self.linker, route, found)
        return route

    def _ground_mount(self, route: Route) -> None:
        for inclusion in self.mount.inclusions:
            route.stand_on(self.linker.ground_site(inclusion.path, inclusion.site, "include"))
        for holder in self.mount.holders:
            site = self.routers.site_of(holder)
            if site is not None:
                route.stand_on(self.linker.ground_site(holder.path, site, "router"))

    def _collect(self) -> None:
        definition = self.handler.definition
        if definition is not None and self.handler.found is not None:
            bound = definition.kind == "method" and not _static(definition.decorators)
            self.collector.signature(definition, self.handler.found.place, bound=bound)
            if definition.kind == "method":
                self._class_attributes(self.handler.found)
        for call, place, _ in self.layers:
            listed = self.linker.value(place, keyword(call, "dependencies"))
            if listed is None:
                continue
            if listed[0].kind not in ("list", "tuple"):
                self.collector.taken.unresolved.append("dependencies")
                continue
            for item in listed[0].items:
                self.collector.depends(item, listed[1])

    def _class_attributes(self, found: Found) -> None:
        """Dependencies that a class-based view declares for all of its methods."""
        owner = self.linker.at(found.path, found.symbol_path.rpartition(".")[0])
        if owner is None or owner.definition is None:
            return
        for name in owner.definition.members:
            member = self.linker.at(owner.path, f"{owner.symbol_path}.{name}")
            if member is None or member.assignment is None:
                continue
            place = Place(owner.path, owner.symbol_path)
            annotation = open_annotation(self.linker, place, member.assignment.annotation)
            for marker, where in (*annotation.metadata, (member.assignment.value, place)):
                if (
                    marker is not None
                    and marker.kind == "call"
                    and last(marker.value) in ("Depends", "Security")
                ):
                    self.collector.depends(marker, where, annotation)

    def _tags(self) -> list[str]:
        tags: list[str] = []
        for call, place, _ in self.layers:
            tags.extend(self.linker.texts(place, keyword(call, "tags")) or ())
        return tags

    def _root_path(self) -> str:
        for holder in self.mount.holders[:1]:
            site = self.routers.site_of(holder)
            if site is not None:
                return self.linker.text(holder.place, keyword(site.expr, "root_path")).value
        return ""

    def _schema_of(self) -> str:
        """The mounted application in whose schema the operation stands, "" for the outermost one."""
        for number in range(len(self.mount.inclusions) - 1, -1, -1):
            if self.mount.inclusions[number].kind == "mount":
                return self.routers.label(self.mount.holders[number + 1])
        return ""

    # -- responses

    def _responses(self, route: Route, validates: bool) -> None:
        responses: dict[str, dict[str, Any]] = {}
        response_class, class_place = self._response_class()
        class_name = self._class_name(response_class, class_place)
        code = self.linker.status(self.place, self.options.get("status_code"))
        if (
            code is None
            and self.options.get("status_code") is not None
            and not is_none(self.options["status_code"])
        ):
            route.unresolved.append("status code")
        code = code or ("307" if class_name == "RedirectResponse" else "200")
        model = self._model()
        entry: dict[str, Any] = {}
        json = class_name in _JSON or not class_name
        if class_name and class_name not in _JSON:
            entry["response_class"] = class_name
        if model is not None and model.type is not None and json and not code.startswith(_NO_BODY):
            entry["type"] = type_text(self.linker, model)
            route.details["response_model"] = type_text(self.linker, model)
            self._attach_models(route, entry, model)
        responses[code] = entry
        route.details["status_code"] = code
        for call, place, _ in self.layers:
            self._declared(route, responses, keyword(call, "responses"), place)
        if validates and not {"422", "4XX", "default"} & responses.keys():
            responses["422"] = {"description": "Validation Error"}
        route.details["responses"] = responses

    def _attach_models(self, route: Route, entry: dict[str, Any], annotation: Annotation) -> None:
        models = classes_in(self.linker, annotation.place, annotation.type)
        if models:
            entry["models"] = [model.qualified for model in models]
        for model in models:
            attach_model(self.linker, route, model, "response_model")

    def _declared(
        self, route: Route, responses: dict[str, dict[str, Any]], declared: Expr | None, place: Place
    ) -> None:
        found = self.linker.value(place, declared)
        if found is None or found[0].kind != "dict":
            if declared is not None and not is_none(declared):
                route.unresolved.append("responses")
            return
        for key, value in pairs(found[0]):
            if value is None:
                self._declared(route, responses, key.items[0] if key.items else None, found[1])
                continue
            code = self.linker.status(found[1], key)
            inner = self.linker.value(found[1], value)
            if code is None:
                route.unresolved.append("a response's status code")
                continue
            entry = responses.setdefault(code, {})
            for name, item in pairs(inner[0]) if inner is not None and inner[0].kind == "dict" else ():
                if name.kind == "str" and name.value == "model" and item is not None and inner is not None:
                    annotation = open_annotation(self.linker, inner[1], item)
                    entry["type"] = type_text(self.linker, annotation)
                    self._attach_models(route, entry, annotation)
                elif (
                    name.kind == "str"
                    and name.value == "description"
                    and item is not None
                    and inner is not None
                ):
                    said = self.linker.text(inner[1], item)
                    if said.how != DYNAMIC:
                        entry["description"] = said.value

    def _response_class(self) -> tuple[Expr | None, Place]:
        own = self.options.get("response_class")
        if own is not None:
            return own, self.place
        for call, place, _ in reversed(self.layers):
            default = keyword(call, "default_response_class")
            if default is not None:
                return default, place
        return None, self.place

    def _class_name(self, expr: Expr | None, place: Place) -> str:
        """Known name of the response class, `JSONResponse` for its subclasses; "" for the default."""
        if expr is None:
            return ""
        name = dotted(expr)
        found = self.linker.find(place, name)
        if found is not None and found.internal:
            return last(self.linker.derives(found, _RESPONSES) or found.qualified)
        return last(found.qualified if found is not None else name)

    def _model(self) -> Annotation | None:
        """The declared response model, else the return annotation where that is no response."""
        declared = self.options.get("response_model")
        if declared is not None:
            return None if is_none(declared) else open_annotation(self.linker, self.place, declared)
        definition = self.handler.definition
        if definition is None or definition.returns is None or self.handler.found is None:
            return None
        annotation = open_annotation(self.linker, self.handler.found.place, definition.returns)
        if annotation.type is None or is_none(annotation.type):
            return None
        if definition.is_generator and last(dotted(annotation.type)) in _STREAMS:
            return None
        return None if self._is_response(annotation) else annotation

    def _is_response(self, annotation: Annotation) -> bool:
        name = dotted(annotation.type)
        found = self.linker.find(annotation.place, name) if name else None
        if found is None:
            return last(name).endswith("Response") and last(name) in {last(known) for known in _RESPONSES}
        if not found.internal:
            return found.qualified in _RESPONSES or last(found.qualified) in {
                last(known) for known in _RESPONSES
            }
        return self.linker.derives(found, _RESPONSES) is not None


def _static(decorators: Iterable[Any]) -> bool:
    return any(last(dotted(decorator.expr)) == "staticmethod" for decorator in decorators)
