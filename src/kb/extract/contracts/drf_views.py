"""What the views of Django REST framework say of themselves: serializers, permissions, generic methods."""

from __future__ import annotations

from collections.abc import Mapping

from kb.extract.contracts.facts import last_of
from kb.extract.contracts.handlers import attach_model
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import Found, Place
from kb.extract.contracts.route import Route
from kb.extract.expressions import brief, dotted, keywords, last, positional
from kb.structure.facts import Expr

_MODULES = ("rest_framework.", "rest_framework_")
_MIXINS = {
    "ListModelMixin": ("list",), "CreateModelMixin": ("create",), "RetrieveModelMixin": ("retrieve",),
    "UpdateModelMixin": ("update", "partial_update"), "DestroyModelMixin": ("destroy",),
    "ModelViewSet": ("list", "create", "retrieve", "update", "partial_update", "destroy"),
    "ReadOnlyModelViewSet": ("list", "retrieve"),
}  # fmt: skip
_GENERIC = {
    "ListAPIView": ("GET",), "CreateAPIView": ("POST",), "RetrieveAPIView": ("GET",),
    "UpdateAPIView": ("PATCH", "PUT"), "DestroyAPIView": ("DELETE",), "ListCreateAPIView": ("GET", "POST"),
    "RetrieveUpdateAPIView": ("GET", "PATCH", "PUT"), "RetrieveDestroyAPIView": ("DELETE", "GET"),
    "RetrieveUpdateDestroyAPIView": ("DELETE", "GET", "PATCH", "PUT"), "APIView": (),
    "TokenObtainPairView": ("POST",), "TokenRefreshView": ("POST",), "TokenVerifyView": ("POST",),
    "SpectacularAPIView": ("GET",), "SpectacularSwaggerView": ("GET",), "SpectacularRedocView": ("GET",),
}  # fmt: skip
Given = tuple[Expr, Place]
"""An expression, and the place to read it in."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


def generic_methods(qualified: str) -> tuple[str, ...] | None:
    """Methods of one of the framework's generic views, None for anything else."""
    known = qualified.startswith((*_MODULES, "drf_spectacular."))
    return _GENERIC.get(last(qualified)) if known else None


def mixed_in(qualified: str) -> tuple[str, ...]:
    """Actions that one of the framework's viewsets or mixins brings."""
    return _MIXINS.get(last(qualified), ()) if qualified.startswith(_MODULES) else ()


def setting(linker: Linker, found: Found, name: str) -> tuple[Expr, Place] | None:
    """A class-level setting of a view with the place to read it in, looked for along its bases."""
    member = linker.member(found, name)
    if member is None or member.assignment is None or member.assignment.value is None:
        return None
    return member.assignment.value, Place(member.path, member.symbol_path.rpartition(".")[0])


def describe(linker: Linker, route: Route, found: Found, method: str, given: Mapping[str, Given]) -> None:
    """Add the serializers of request and response, permissions and authentication to a route's details.

    `given` is what the view is made with (`as_view(serializer_class=...)`, or what a router takes from
    `@action`): the framework sets it on the instance, so it comes before what the class says.
    """
    own = {**given, **_decorated(found)}
    serializer = own.get("serializer_class") or (
        setting(linker, found, "serializer_class") if found.kind == "class" else None
    )
    if serializer is not None:
        _serializer(linker, route, serializer, method)
    if found.kind == "class" and "serializer_class" not in own:
        chooses = linker.member(found, "get_serializer_class")
        if chooses is not None and chooses.definition is not None:
            route.unresolved.append("the serializer that get_serializer_class chooses")
    for name, label in (("permission_classes", "security"), ("authentication_classes", "authentication")):
        declared = own.get(name) or (setting(linker, found, name) if found.kind == "class" else None)
        listed = linker.value(declared[1], declared[0]) if declared is not None else None
        if listed is not None and listed[0].kind in ("list", "tuple"):
            names = [linker.qualified(listed[1], dotted(item)) or brief(item) for item in listed[0].items]
            route.details[label] = (
                [{"scheme": n, "scopes": []} for n in names] if label == "security" else names
            )


def marked(action: Found | None) -> dict[str, Given]:
    """What `@action(serializer_class=...)` says; a router hands it to `as_view`, and nothing else does."""
    if action is None or action.definition is None:
        return {}
    return {
        key: (value, action.place)
        for decorator in action.definition.decorators
        if last_of(decorator.expr) == "action"
        for key, value in keywords(decorator.expr).items()
    }


def _decorated(found: Found) -> dict[str, Given]:
    """What `@permission_classes(...)` and the like say of a function; on a method they do nothing."""
    if found.definition is None or found.kind == "class":
        return {}
    said: dict[str, Given] = {}
    for decorator in found.definition.decorators:
        given = positional(decorator.expr)
        if last_of(decorator.expr) in ("permission_classes", "authentication_classes") and given:
            said[last_of(decorator.expr)] = (given[0], found.place)
    return said


def _serializer(linker: Linker, route: Route, declared: tuple[Expr, Place], method: str) -> None:
    expr, place = declared
    name = dotted(expr)
    found = linker.find(place, name) if name else None
    shown = found.qualified if found is not None else brief(expr)
    if method in _WITH_BODY:
        route.details["request_body"] = {"media_type": "application/json", "required": True, "type": shown}
    route.details["response_model"] = shown
    route.details.setdefault("responses", {})["201" if method == "POST" else "200"] = {"type": shown}
    if method == "DELETE":
        route.details.pop("response_model")
        route.details["responses"] = {"204": {}}
        return
    if found is not None and found.internal and found.kind == "class":
        attach_model(linker, route, found, "request_model" if method in _WITH_BODY else "response_model")
        if method in _WITH_BODY:
            attach_model(linker, route, found, "response_model")
