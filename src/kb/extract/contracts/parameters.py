"""What a FastAPI operation takes: parameters, body, security, through the whole chain of dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from kb.extract.contracts.annotations import (
    Annotation,
    classes_in,
    fields_of,
    is_model,
    is_scalar,
    model_of,
    open_annotation,
    type_text,
)
from kb.extract.contracts.bodies import BodyField, joined, mentions_upload
from kb.extract.contracts.linker import Linker, keyword
from kb.extract.contracts.place import Found, Place
from kb.extract.expressions import (
    argument,
    brief,
    dotted,
    is_false,
    is_true,
    keywords,
    last,
    positional,
    text_of,
)
from kb.structure.facts import Definition, Expr, Param

_PLACES = {"Path": "path", "Query": "query", "Header": "header", "Cookie": "cookie"}
_BODIES = {"Body": "body", "Form": "form", "File": "file"}
_DEPENDS = frozenset({"Depends", "Security"})
_MARKERS = frozenset({*_PLACES, *_BODIES, *_DEPENDS})
_SPECIAL = frozenset(
    "Request WebSocket HTTPConnection Response BackgroundTasks SecurityScopes JSONResponse HTMLResponse "
    "StreamingResponse PlainTextResponse RedirectResponse FileResponse ORJSONResponse UJSONResponse".split()
)
SCHEMES = frozenset(
    f"fastapi.security{module}.{name}"
    for module, names in {
        "": "OAuth2 OAuth2PasswordBearer OAuth2AuthorizationCodeBearer HTTPBasic HTTPBearer HTTPDigest APIKeyHeader "
        "APIKeyQuery APIKeyCookie OpenIdConnect SecurityBase",
        ".oauth2": "OAuth2 OAuth2PasswordBearer OAuth2AuthorizationCodeBearer",
        ".http": "HTTPBase HTTPBasic HTTPBearer HTTPDigest",
        ".api_key": "APIKeyHeader APIKeyQuery APIKeyCookie APIKeyBase",
        ".open_id_connect_url": "OpenIdConnect",
        ".base": "SecurityBase",
    }.items()
    for name in names.split()
)
_PASSWORD_FORM = (
    ("grant_type", "str | None", False), ("username", "str", True), ("password", "str", True),
    ("scope", "str", False), ("client_id", "str | None", False), ("client_secret", "str | None", False),
)  # fmt: skip
_DEEP = 16


_MAKES_INIT = frozenset("dataclass mapped_as_dataclass define frozen mutable attrs attrib s".split())
_NO_INIT = frozenset("object ABC Protocol Generic".split())


@dataclass(frozen=True)
class Held:
    """What `functools.partial` gives a function: so many positional arguments, and some by keyword."""

    positional: int
    keywords: Mapping[str, Expr] = field(hash=False)

    def left(self, params: Sequence[Param]) -> list[Param]:
        """The parameters that are still open, those that are given by keyword with that as their default."""
        return [
            replace(param, default=self.keywords.get(param.name, param.default))
            for at, param in enumerate(params)
            if at >= self.positional or param.kind in ("keyword_only", "vararg", "kwarg")
        ]


@dataclass
class Taken:
    """Everything that an operation takes, as collected so far."""

    parameters: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    body: dict[str, BodyField] = field(default_factory=dict)
    security: dict[str, list[str]] = field(default_factory=dict)
    dependencies: dict[str, Found | None] = field(default_factory=dict)
    models: list[Found] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    visited: set[tuple[object, ...]] = field(default_factory=set)


class Collector:
    """Walks one operation's signature and its dependencies."""

    def __init__(self, linker: Linker, path_names: frozenset[str]) -> None:
        self.linker = linker
        self.path_names = path_names
        self.taken = Taken()

    # -- signatures

    def signature(
        self,
        definition: Definition,
        place: Place,
        *,
        bound: bool,
        scopes: tuple[str, ...] = (),
        via: str = "",
        held: Held | None = None,
    ) -> None:
        """Read a function's parameters; `bound` drops the first one (`self`, `cls`), `held` what a partial gives."""
        later: list[tuple[Expr, Place, Annotation]] = []
        params = definition.params[1:] if bound and definition.params else definition.params
        for param in held.left(params) if held is not None else params:
            dependency = self._parameter(param, place, via)
            if dependency is not None:
                later.append(dependency)
        for depends, where, annotation in later:
            self.depends(depends, where, annotation, scopes)

    def _parameter(self, param: Param, place: Place, via: str) -> tuple[Expr, Place, Annotation] | None:
        """File one parameter; a dependency is handed back, to be walked after its siblings."""
        annotation = open_annotation(self.linker, place, param.annotation)
        marker: tuple[Expr, Place] | None = None
        default = param.default
        for item, where in annotation.metadata:
            if self._marker(item, where):
                marker = (item, where)
        if default is not None and self._marker(default, place):
            marker, default = (default, place), None
        name = self._marker(*marker) if marker else ""
        if marker and name in _DEPENDS:
            return (*marker, annotation)
        if not marker and self._special(annotation):
            return None
        self._field(param.name, annotation, marker, name, default, via)
        return None

    def _marker(self, expr: Expr | None, place: Place) -> str:
        """`Query`, `Depends`... where the expression is a call of one of FastAPI's; "" otherwise."""
        if expr is None or expr.kind not in ("call", "name"):
            return ""
        if expr.kind == "name":  # `Depends` by reference, or a constant that holds a marker
            value = self.linker.value(place, expr) if last(expr.value) not in _MARKERS else None
            return self._marker(*value) if value is not None and value[0].kind == "call" else ""
        found = self.linker.find(place, expr.value)
        if found is not None and found.internal and not found.qualified.startswith("fastapi."):
            return ""
        name = last(found.qualified) if found is not None else last(expr.value)
        return name if name in _MARKERS else ""

    def _special(self, annotation: Annotation) -> bool:
        if annotation.type is None or annotation.type.kind != "name":
            return False
        found = self.linker.find(annotation.place, annotation.type.value)
        if found is None or not found.internal:
            return last(found.qualified if found else annotation.type.value) in _SPECIAL
        bases = frozenset(
            {f"{m}.{n}" for n in _SPECIAL for m in ("starlette.requests", "starlette.responses", "fastapi")}
        )
        return found.kind == "class" and self.linker.derives(found, bases) is not None

    def _field(
        self,
        name: str,
        annotation: Annotation,
        marker: tuple[Expr, Place] | None,
        kind: str,
        default: Expr | None,
        via: str,
    ) -> None:
        call = marker[0] if marker else None
        if call is not None and call.kind == "name" and marker is not None:
            value = self.linker.value(marker[1], call)
            call = value[0] if value is not None else None
        if call is not None and default is None:
            default = argument(call, "default", 0) or keyword(call, "default_factory")
        required = default is None or (default.kind == "const" and default.value == "...")
        if not kind:
            kind = self._inferred(name, annotation)
        options = keywords(call) if call is not None else {}
        if kind in _BODIES:
            self._body(name, annotation, kind, options, required, via)
        else:
            self._named(name, annotation, kind, options, required, default, via)

    def _inferred(self, name: str, annotation: Annotation) -> str:
        if name in self.path_names:
            return "Path"
        if mentions_upload(annotation.type):
            return "File"
        return "Query" if is_scalar(self.linker, annotation.place, annotation.type) else "Body"

    def _named(
        self,
        name: str,
        annotation: Annotation,
        kind: str,
        options: dict[str, Expr],
        required: bool,
        default: Expr | None,
        via: str,
    ) -> None:
        """A path, query, header or cookie parameter; a model is as many as it has fields."""
        place = _PLACES[kind]
        convert = kind == "Header" and not is_false(options.get("convert_underscores"))
        model = model_of(self.linker, annotation) if kind != "Path" else None
        if model is not None and is_model(self.linker, model):
            self.taken.models.append(model)
            for inner in fields_of(self.linker, model):
                alias = (
                    inner.alias.replace("_", "-") if convert and inner.alias == inner.name else inner.alias
                )
                self._file(
                    alias, place, inner.required and required, type_text(self.linker, inner.annotation), inner.default, via,
                    model=model.qualified,
                )  # fmt: skip
            return
        said = text_of(options.get("validation_alias")) or text_of(options.get("alias"))
        outer = said or (name.replace("_", "-") if convert else name)
        self._file(
            outer, place, required or kind == "Path", type_text(self.linker, annotation), None if required else default, via,
            hidden=is_false(options.get("include_in_schema")), deprecated=is_true(options.get("deprecated")),
        )  # fmt: skip
        self.taken.models.extend(classes_in(self.linker, annotation.place, annotation.type))

    def _file(
        self,
        name: str,
        place: str,
        required: bool,
        type_text: str,
        default: Expr | None,
        via: str,
        **more: Any,
    ) -> None:
        entry: dict[str, Any] = {"name": name, "in": place, "required": required, "type": type_text or "Any"}
        if not required and default is not None:
            entry["default"] = brief(default)
        if via:
            entry["via"] = via
        if more.pop("hidden", False):
            entry["in_schema"] = False
        entry.update((key, value) for key, value in more.items() if value)
        known = self.taken.parameters.get((place, name))
        if known is None or (required and not known["required"]):
            self.taken.parameters[(place, name)] = entry

    def _body(
        self, name: str, annotation: Annotation, kind: str, options: dict[str, Expr], required: bool, via: str
    ) -> None:
        outer = text_of(options.get("validation_alias")) or text_of(options.get("alias")) or name
        self.taken.body.setdefault(
            outer,
            BodyField(
                outer,
                _BODIES[kind],
                type_text(self.linker, annotation) or "Any",
                required,
                is_true(options.get("embed")),
                text_of(options.get("media_type")) or "",
                tuple(classes_in(self.linker, annotation.place, annotation.type)),
                model_of(self.linker, annotation),
                via,
            ),
        )

    # -- dependencies

    def depends(
        self, call: Expr, place: Place, annotation: Annotation | None = None, scopes: tuple[str, ...] = ()
    ) -> None:
        """Walk what `Depends(...)` or `Security(...)` names."""
        if call.kind == "name":
            value = self.linker.value(place, call)
            if value is None or value[0].kind != "call":
                self.taken.unresolved.append(f"dependency {brief(call)}")
                return
            call, place = value
        target = argument(call, "dependency", 0)
        asked = self.linker.texts(place, argument(call, "scopes", 1)) if "Security" in call.value else None
        scopes = (*scopes, *(scope for scope in asked or () if scope not in scopes))
        if target is None and annotation is not None and annotation.type is not None:
            self._target(Expr("name", dotted(annotation.type)), annotation.place, scopes, 0)
        elif target is not None:
            self._target(target, place, scopes, 0)

    def _target(
        self, target: Expr, place: Place, scopes: tuple[str, ...], depth: int, held: Held | None = None
    ) -> None:
        target, place = self.linker.bound(place, target)
        if depth > _DEEP:
            return
        if target.kind == "call":
            self._made(target, place, scopes, depth)
            return
        name = dotted(target) if target.kind == "name" else ""
        found = self.linker.find(place, name)
        if found is None and name:
            found = self._method(place, name)
        if found is None:
            if target.kind != "other" or not target.value.startswith("lambda"):
                self.taken.unresolved.append(f"dependency {brief(target)}")
            return
        if found.assignment is not None and found.assignment.value is not None:
            made = found.assignment.value
            self.taken.dependencies.setdefault(found.qualified, found)
            self._target(made, found.place, scopes, depth + 1, held)
            return
        self._callable(found, scopes, held)

    def _method(self, place: Place, name: str) -> Found | None:
        """`service.get` where `service` is an instance or a class."""
        head, _, attribute = name.rpartition(".")
        value = self.linker.value(place, Expr("name", head)) if head else None
        if value is None or value[0].kind != "call":
            return None
        maker = self.linker.find(value[1], value[0].value)
        return self.linker.member(maker, attribute) if maker is not None and maker.kind == "class" else None

    def _callable(self, found: Found, scopes: tuple[str, ...], held: Held | None) -> None:
        if not found.internal:
            self._external(found, scopes)
            return
        self.taken.dependencies.setdefault(found.qualified, found)
        visit = (found.path, found.symbol_path, scopes, held)
        if visit in self.taken.visited or found.definition is None:
            return
        self.taken.visited.add(visit)
        if found.kind == "class":
            self._class(found, scopes, held)
            return
        bound = found.kind == "method" and not _has_decorator(found.definition, "staticmethod")
        self.signature(
            found.definition, found.place, bound=bound, scopes=scopes, via=found.qualified, held=held
        )

    def _class(self, found: Found, scopes: tuple[str, ...], held: Held | None) -> None:
        init = self.linker.member(found, "__init__")
        if init is not None and init.definition is not None:
            self.signature(
                init.definition, init.place, bound=True, scopes=scopes, via=found.qualified, held=held
            )
            return
        model = is_model(self.linker, found)
        if not model and not self._has_made_init(found):
            return
        later = []
        for inner in fields_of(self.linker, found):
            place = Place(found.path, found.symbol_path)
            written = [(inner.marker or inner.default, place), *inner.annotation.metadata]
            marker = next(((expr, at) for expr, at in written if expr and self._marker(expr, at)), None)
            kind = self._marker(*marker) if marker else ""
            default = None if marker and marker[0] in (inner.default, inner.marker) else inner.default
            name = inner.name
            if marker and kind in _DEPENDS:
                later.append((*marker, inner.annotation))
                continue
            if (
                model
            ):  # its signature has the alias where that is a name, and knows nothing of `Query` and the like
                marker, kind, default = None, "", inner.default
                name = inner.alias if inner.alias.isidentifier() else inner.name
            if default is None and not marker and not inner.required:
                default = Expr("const", "None")
            self._field(name, inner.annotation, marker, kind, default, found.qualified)
        for depends, where, annotation in later:
            self.depends(depends, where, annotation, scopes)

    def _has_made_init(self, found: Found, depth: int = 0) -> bool:
        """Whether the fields of a class are what it is called with; said where only another distribution knows."""
        for decorator in found.definition.decorators if found.definition is not None else ():
            if last(dotted(decorator.expr)) in _MAKES_INIT:
                return True
        bases = self.linker.bases(found) if depth < _DEEP else []
        foreign = [base for base in bases if not base.internal and last(base.qualified) not in _NO_INIT]
        if foreign:
            self.taken.unresolved.append(f"parameters of {foreign[0].qualified}")
            return True
        inherited = [base for base in bases if base.internal and base.kind == "class"]
        return any(self._has_made_init(base, depth + 1) for base in inherited)

    def _made(self, call: Expr, place: Place, scopes: tuple[str, ...], depth: int) -> None:
        """A dependency that is the result of a call: an instance, a closure, a partial, a scheme."""
        maker = self.linker.find(place, call.value) if call.value else None
        if maker is None:
            self.taken.unresolved.append(f"dependency {brief(call)}")
            return
        if last(maker.qualified) == "partial" and not maker.internal and len(call.items) > 1:
            given = positional(call)[1:]
            self._target(call.items[1], place, scopes, depth + 1, Held(len(given), keywords(call)))
            return
        scheme = self.linker.derives(maker, SCHEMES)
        if scheme is not None:
            self._scheme(text_of(keyword(call, "scheme_name")) or last(maker.qualified), scopes)
            if maker.internal and maker.kind == "class":
                self._instance(maker, scopes)
            return
        if not maker.internal:
            self.taken.unresolved.append(f"dependency {brief(call)} is made outside of the repository")
            return
        if maker.kind == "class":
            self._instance(maker, scopes)
            return
        self.taken.dependencies.setdefault(maker.qualified, maker)
        given = positional(call)
        wrapped = given[0] if given and given[0].kind in ("name", "call") else None
        if not self._closure(maker, scopes, seen_through=wrapped is not None) and wrapped is not None:
            self._target(wrapped, place, scopes, depth + 1)

    def _instance(self, maker: Found, scopes: tuple[str, ...]) -> None:
        """An instance of an internal class: what is called is its `__call__`."""
        self.taken.dependencies.setdefault(maker.qualified, maker)
        inner = self.linker.member(maker, "__call__")
        if inner is not None and inner.definition is not None:
            self.signature(inner.definition, inner.place, bound=True, scopes=scopes, via=maker.qualified)

    def _closure(self, maker: Found, scopes: tuple[str, ...], *, seen_through: bool) -> bool:
        """The function that a factory defines and returns: its only inner one, else one that is unknown.

        False, and nothing read, where `functools.wraps` gives it the signature of what the factory is handed
        and that is `seen_through`.
        """
        view = self.linker.view(maker.path)
        prefix = f"{maker.symbol_path}.<locals>."
        inner = [
            definition
            for definition in (view.module.definitions if view is not None else ())
            if definition.symbol_path.startswith(prefix) and "." not in definition.symbol_path[len(prefix) :]
        ]
        functions = [definition for definition in inner if definition.kind == "function"]
        if len(functions) != 1:
            self.taken.unresolved.append(f"dependency made by {maker.qualified}")
            return True
        if seen_through and _has_decorator(functions[0], "wraps"):
            return False
        self.linker.world.definition(maker.path, functions[0].symbol_path)  # what this reads is a look-up
        place = Place(maker.path, maker.symbol_path)
        self.signature(functions[0], place, bound=False, scopes=scopes, via=maker.qualified)
        return True

    def _external(self, found: Found, scopes: tuple[str, ...]) -> None:
        name = last(found.qualified)
        if self.linker.derives(found, SCHEMES):
            self._scheme(name, scopes)
        elif name in ("OAuth2PasswordRequestForm", "OAuth2PasswordRequestFormStrict"):
            self.taken.dependencies.setdefault(found.qualified, None)
            for field_name, type_text, required in _PASSWORD_FORM:
                strict = name.endswith("Strict") and field_name == "grant_type"
                entry = BodyField(field_name, "form", type_text, required or strict, via=found.qualified)
                self.taken.body.setdefault(field_name, entry)
        elif name not in _SPECIAL:
            self.taken.dependencies.setdefault(found.qualified, None)
            self.taken.unresolved.append(f"parameters of {found.qualified}")

    def _scheme(self, name: str, scopes: tuple[str, ...]) -> None:
        known = self.taken.security.setdefault(name, [])
        known.extend(scope for scope in scopes if scope not in known)

    # -- the result

    def request_body(self) -> dict[str, Any] | None:
        """The body as FastAPI joins its parts, None where nothing is read from it."""
        return joined(self.linker, list(self.taken.body.values()))


def _has_decorator(definition: Definition, name: str) -> bool:
    return any(last(dotted(decorator.expr)) == name for decorator in definition.decorators)


def unique(found: Iterable[Found]) -> list[Found]:
    """Each definition once, in order."""
    return list({(item.path, item.symbol_path): item for item in found}.values())
