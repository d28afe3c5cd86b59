"""Contracts equal what the frameworks themselves say, heard through the introspection sandbox."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evals.contract_types import ANY, Types, of_annotation, of_schema
from evals.linking import Linked, link_folder
from kb.extract.contracts.extractor import ContractsExtractor
from kb.introspect.run import Introspection, Request, introspect

pytestmark = [
    pytest.mark.gate("contract"),
    pytest.mark.skipif(sys.platform != "linux", reason="the oracle runs in a sandbox that needs Linux"),
]

APPS = Path(__file__).parents[1] / "fixtures" / "apps"
FASTAPI = {
    "fastapi_shop": "shop.main:app",
    "fastapi_bodies": "bodies.app:app",
    "fastapi_params": "params.main:app",
    "fastapi_security": "security.main:app",
    "fastapi_factory": "factory.main:app",
    "fastapi_responses": "responses.main:app",
    "fastapi_names": "names.app:application",
    "fastapi_classes": "classes.main:app",
}
METHODS = {"GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"}


@cache
def contracts(app: str) -> list[Linked]:
    return link_folder(APPS / app, ContractsExtractor())


@cache
def said(app: str, target: str) -> Introspection:
    return introspect(Request(target, APPS / app))


# -- FastAPI: both sides as plain data ------------------------------------------------------------


def operations_of_kb(app: str) -> dict[tuple[str, str], dict[str, Any]]:
    """kb's contracts that stand in the schema: of FastAPI, mounted in the primary application, not hidden."""
    found = {}
    for _, draft in contracts(app):
        body = draft.body
        method = body["methods"][0]
        hidden = body.get("include_in_schema") == "no" or body["framework"] != "fastapi"
        elsewhere = "@" in draft.logical_key or "schema_of" in body
        if not hidden and not elsewhere and body["mounted"] and method in METHODS:
            found[method, body["path"]] = dict(body)
    return found


def operations_of_openapi(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def parameters_of_kb(body: dict[str, Any]) -> dict[tuple[str, str], tuple[bool, Types]]:
    return {
        (entry["in"], entry["name"]): (entry["required"], of_annotation(entry["type"]))
        for entry in body.get("parameters", [])
        if entry.get("in_schema", True)
    }


def parameters_of_openapi(operation: dict[str, Any]) -> dict[tuple[str, str], tuple[bool, Types]]:
    return {
        (entry["in"], entry["name"]): (entry["required"], of_schema(entry["schema"]))
        for entry in operation.get("parameters", [])
    }


def request_of_kb(body: dict[str, Any]) -> Any:
    request = body.get("request_body")
    if not request:
        return None
    if "fields" in request:
        content: Any = {f["name"]: (f["required"], of_annotation(f["type"])) for f in request["fields"]}
    else:
        content = of_annotation(request["type"])
    return request["media_type"], request["required"], content


def request_of_openapi(operation: dict[str, Any], document: dict[str, Any]) -> Any:
    request = operation.get("requestBody")
    if not request:
        return None
    [(media_type, content)] = request["content"].items()
    schema = content["schema"]
    reference = schema.get("$ref", "").rsplit("/", 1)[-1]
    if not reference and len(schema.get("allOf", ())) == 1:
        reference = schema["allOf"][0]["$ref"].rsplit("/", 1)[-1]
    if reference.startswith("Body_"):
        joined = document["components"]["schemas"][reference]
        required = set(joined.get("required", ()))
        fields = {name: (name in required, of_schema(inner)) for name, inner in joined["properties"].items()}
        return media_type, request.get("required", False), fields
    return media_type, request.get("required", False), of_schema(schema)


def responses_of_kb(body: dict[str, Any]) -> dict[str, Types | None]:
    found: dict[str, Types | None] = {}
    for code, entry in body.get("responses", {}).items():
        if entry.get("response_class") in ("HTMLResponse", "PlainTextResponse"):
            found[code] = frozenset({"string"})
        else:
            found[code] = of_annotation(entry["type"]) if entry.get("type") else None
    return found


def responses_of_openapi(operation: dict[str, Any]) -> dict[str, Types | None]:
    found: dict[str, Types | None] = {}
    for code, entry in operation.get("responses", {}).items():
        schemas = [content.get("schema", {}) for content in entry.get("content", {}).values()]
        types = of_schema(schemas[0]) if schemas and schemas[0] else ANY
        found[code] = None if types in (ANY, frozenset({"HTTPValidationError"})) else types
    return found


@pytest.mark.parametrize("app", FASTAPI)
def test_fastapi_contracts_have_the_paths_and_methods_of_openapi(app):
    document = said(app, FASTAPI[app]).openapi
    assert document is not None
    assert sorted(operations_of_kb(app)) == sorted(operations_of_openapi(document))


@pytest.mark.parametrize("app", FASTAPI)
@pytest.mark.parametrize("what", ["parameters", "request", "responses", "tags", "security", "flags"])
def test_fastapi_contracts_say_what_openapi_says(app, what):
    document = said(app, FASTAPI[app]).openapi
    assert document is not None
    ours, theirs = operations_of_kb(app), operations_of_openapi(document)
    compare = {
        "parameters": (parameters_of_kb, parameters_of_openapi),
        "request": (request_of_kb, lambda operation: request_of_openapi(operation, document)),
        "responses": (responses_of_kb, responses_of_openapi),
        "tags": (lambda body: body.get("tags", []), lambda operation: operation.get("tags", [])),
        "security": (
            lambda body: {entry["scheme"]: sorted(entry["scopes"]) for entry in body.get("security", [])},
            lambda operation: {
                name: sorted(scopes)
                for entry in operation.get("security", [])
                for name, scopes in entry.items()
            },
        ),
        "flags": (
            lambda body: (body.get("deprecated", False), body.get("operation_id"), body.get("summary")),
            lambda operation: (
                operation.get("deprecated", False),
                operation["operationId"] if re.fullmatch(r"[a-z]+", operation["operationId"]) else None,
                operation["summary"] if not operation["summary"].istitle() else None,
            ),
        ),
    }
    read_ours, read_theirs = compare[what]
    different = {
        key: (read_ours(ours[key]), read_theirs(theirs[key]))
        for key in sorted(ours.keys() & theirs.keys())
        if read_ours(ours[key]) != read_theirs(theirs[key])
    }
    assert different == {}


@pytest.mark.parametrize("app", FASTAPI)
def test_every_fastapi_handler_is_the_function_that_the_application_calls(app):
    called = {
        (method, route["path"]): route["handler"].replace(".<locals>", "")
        for route in said(app, FASTAPI[app]).routes
        for method in route["methods"]
    }
    named = {
        (body["methods"][0], body.get("pattern", body["path"])): body["handler"].replace(".<locals>", "")
        for _, draft in contracts(app)
        for body in [draft.body]
        if body["mounted"] and "@" not in draft.logical_key
    }
    documented = {key for key, handler in called.items() if handler.startswith("fastapi.applications.")}
    heads = {("HEAD", path) for method, path in named if method == "GET"} - named.keys()
    assert named == {key: name for key, name in called.items() if key not in documented | heads}


# -- the other frameworks -------------------------------------------------------------------------


def kb_routes(app: str) -> set[tuple[str, str, str]]:
    return {
        (draft.body["methods"][0], draft.body["path"], draft.body["handler"].replace(".<locals>", ""))
        for _, draft in contracts(app)
        if draft.body["mounted"]
    }


def test_starlette_contracts_are_the_application_s_routes():
    expected = set()
    for route in said("starlette_site", "site_app.main:app").routes:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route["path"])
        if not route["methods"]:  # a mounted application of another distribution
            expected.add(("MOUNT", path, ""))
        for method in set(route["methods"]) - ({"HEAD"} if "GET" in route["methods"] else set()):
            expected.add((method, path, route["handler"]))
    found = {(m, p, "" if m == "MOUNT" else handler) for m, p, handler in kb_routes("starlette_site")}
    assert found == expected


def test_flask_contracts_are_the_application_s_url_map():
    expected = {
        (method, re.sub(r"<(?:[\w]+(?:\([^)]*\))?:)?(\w+)>", r"{\1}", route["path"]), route["handler"])
        for route in said("flask_blog", "wsgi:app").routes
        if route["name"] != "static"
        for method in set(route["methods"]) - {"HEAD", "OPTIONS"}
    }
    expected = {(method, path, handler.replace(".<locals>", "")) for method, path, handler in expected}
    assert kb_routes("flask_blog") == expected


def django_path(text: str) -> str:
    """A resolver's pattern as kb writes paths; regular expressions lose their anchors and groups."""
    text = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", text.replace("^", "").replace("$", ""))
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", text)


@pytest.mark.parametrize(
    ("app", "settings"), [("django_site", "config.settings"), ("drf_site", "project.settings")]
)
def test_django_contracts_are_the_resolver_s_listing(app, settings):
    expected: dict[str, tuple[set[str], str]] = {}
    for route in said(app, settings).routes:
        path = django_path(route["path"])
        if "format>" not in route["path"]:  # DRF's variants of the same routes with a format suffix
            methods, _ = expected.setdefault(path, (set(), route["handler"]))
            methods.update(route["methods"])
    found: dict[str, tuple[set[str], str]] = {}
    for method, path, handler in kb_routes(app):
        found.setdefault(path, (set(), handler))[0].add(method)
    assert found.keys() == expected.keys()
    # The resolver does not know which methods a function view lets through; decorators say it to kb.
    functions = {path for path, (methods, _) in expected.items() if not methods}
    assert {p: found[p][0] for p in found.keys() - functions} == {
        p: expected[p][0] for p in expected.keys() - functions
    }
    wrapped = {path for path, (_, handler) in expected.items() if handler.endswith(".WrappedAPIView")}
    assert {p: found[p][1] for p in found.keys() - wrapped} == {
        # kb names a class of another distribution by the name that the project imports it by.
        p: expected[p][1].replace("django.views.generic.base.", "django.views.generic.")
        for p in expected.keys() - wrapped
    }


def test_the_methods_of_function_views_are_those_of_their_decorators():
    found: dict[str, set[str]] = {}
    for method, _, handler in kb_routes("django_site"):
        found.setdefault(handler.removeprefix("library.views."), set()).add(method)
    functions = {name: found[name] for name in ("home", "one", "two", "archive", "lend", "authors")}
    assert functions == {
        "home": {"ANY"}, "one": {"GET"}, "two": {"ANY"}, "archive": {"GET", "POST"}, "lend": {"POST"},
        "authors": {"ANY"},
    }  # fmt: skip


def test_a_router_that_nobody_includes_is_told_as_not_mounted():
    [lost] = [draft for _, draft in contracts("fastapi_factory") if not draft.body["mounted"]]
    assert lost.logical_key == "api:GET /orphan/lost@factory.routers.items.orphan"
    assert lost.confidence == 50
    assert "Not mounted by any application that could be found." in lost.text


@pytest.mark.parametrize("app", sorted(path.name for path in APPS.iterdir() if path.is_dir()))
def test_every_contract_stands_on_its_route_and_its_handler_and_has_a_key_of_its_own(app):
    keys = [draft.logical_key for _, draft in contracts(app)]
    assert len(keys) == len(set(keys))
    for path, draft in contracts(app):
        roles = {grounding.role for grounding in draft.groundings}
        assert "route" in roles
        assert {grounding.path for grounding in draft.groundings if grounding.role == "route"} == {path}
        if any(link.relation == "handled_by" for link in draft.links):
            assert "handler" in roles
