"""What an application says of itself, as JSON; runs inside the jail under the application's interpreter.

Needs nothing but the standard library (kb need not be installed there) and Python 3.9 or later.
Called as `python -I listing.py SPEC`; answers one JSON line over the descriptor that SPEC names.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

Route = dict[str, Any]


def main(argv: list[str]) -> None:
    """Load the target and answer; an exception of the application is an answer too."""
    spec = json.loads(argv[1])
    sys.path[:0] = spec["paths"]
    try:
        answer = describe(spec["target"], spec.get("factory", False))
        written = json.dumps(answer, default=str, allow_nan=False)
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt of the application too
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        answer = {"error": "".join(traceback.format_exception_only(type(error), error)).strip()}
        answer["traceback"] = "".join(lines)[-4000:]
        written = json.dumps(answer)
    with os.fdopen(spec["report_fd"], "wb") as report:
        report.write(written.encode("utf-8", "replace") + b"\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that the application left behind must not keep the jail open


def describe(target: str, factory: bool) -> dict[str, Any]:
    """Framework, routes, and the OpenAPI document where the framework makes one."""
    module_name, _, attribute = target.partition(":")
    if not attribute:
        return _django()
    app = importlib.import_module(module_name)
    for part in attribute.split("."):
        app = getattr(app, part)
    if factory:
        app = app()  # type: ignore[operator]
    names = {cls.__module__.split(".")[0] + "." + cls.__name__ for cls in type(app).__mro__}
    if "fastapi.FastAPI" in names:
        return {"framework": "fastapi", "openapi": app.openapi(), "routes": _starlette(app.routes, "")}
    if "starlette.Starlette" in names or "starlette.Router" in names:
        return {"framework": "starlette", "openapi": None, "routes": _starlette(app.routes, "")}
    if "flask.Flask" in names or hasattr(app, "url_map"):
        return {"framework": "flask", "openapi": None, "routes": _flask(app)}
    if any(name.startswith("django.") for name in names):
        return _django()
    raise TypeError(f"{target} is a {type(app).__name__}, of no framework that is known here")


def _name(handler: Any) -> str:
    handler = getattr(handler, "func", handler)
    qualified = getattr(handler, "__qualname__", type(handler).__name__)
    return f"{getattr(handler, '__module__', '')}.{qualified}"


def _opened(routes: Any) -> Any:
    """The routes with those of included routers in their place (newer FastAPI keeps a tree of them)."""
    try:
        contexts = importlib.import_module("fastapi.routing").iter_route_contexts
    except (ImportError, AttributeError):
        return routes
    return contexts(routes)


def _starlette(routes: Any, prefix: str) -> list[Route]:
    found: list[Route] = []
    for route in _opened(routes):
        original = getattr(route, "original_route", route)
        path = prefix + (getattr(route, "path", "") or "")
        endpoint = getattr(route, "endpoint", None)
        inner = getattr(original, "routes", None)
        if endpoint is not None:
            methods = sorted(getattr(route, "methods", None) or _class_methods(original))
            found.append({"path": path, "methods": methods, "handler": _name(endpoint), "name": route.name})
        elif inner:
            found.extend(_starlette(inner, path))
        else:
            app = getattr(original, "app", original)
            found.append({"path": path, "methods": [], "handler": _name(app), "name": ""})
    return found


def _class_methods(route: Any) -> list[str]:
    """HTTP methods of a class-based endpoint; `WEBSOCKET` for a websocket route."""
    if "WebSocket" in type(route).__name__:
        return ["WEBSOCKET"]
    verbs = ("get", "head", "post", "put", "patch", "delete", "options")
    return [verb.upper() for verb in verbs if callable(getattr(route.endpoint, verb, None))]


def _flask(app: Any) -> list[Route]:
    found = []
    for rule in app.url_map.iter_rules():
        view = app.view_functions.get(rule.endpoint)
        view = getattr(view, "view_class", view)
        methods = sorted(rule.methods or ())
        found.append({"path": rule.rule, "methods": methods, "handler": _name(view), "name": rule.endpoint})
    return found


def _django() -> dict[str, Any]:
    django = importlib.import_module("django")
    django.setup()
    resolver = importlib.import_module("django.urls").get_resolver()
    return {"framework": "django", "openapi": None, "routes": _django_patterns(resolver.url_patterns, "/")}


def _django_patterns(patterns: Any, prefix: str) -> list[Route]:
    found: list[Route] = []
    for entry in patterns:
        path = prefix + str(entry.pattern)
        if hasattr(entry, "url_patterns"):
            found.extend(_django_patterns(entry.url_patterns, path))
            continue
        view = entry.callback
        actions = getattr(view, "actions", None)
        cls = getattr(view, "cls", None) or getattr(view, "view_class", None)
        if actions:
            methods = sorted(verb.upper() for verb in actions)
        elif cls is not None:
            verbs = [verb for verb in cls.http_method_names if hasattr(cls, verb) and verb != "options"]
            methods = sorted(verb.upper() for verb in verbs)
        else:
            methods = []
        found.append({"path": path, "methods": methods, "handler": _name(cls or view), "name": entry.name})
    return found


if __name__ == "__main__":
    main(sys.argv)
