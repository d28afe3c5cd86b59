from __future__ import annotations

import pytest

from kb.retrieve.compatibility import judge

ROUTE = {
    "framework": "fastapi", "methods": ["GET"], "path": "/a", "handler": "app.a", "application": "app.app",
    "mounted": True, "resolution": "exact",
    "parameters": [
        {"name": "id", "in": "path", "required": True, "type": "int"},
        {"name": "q", "in": "query", "required": False, "type": "str", "default": "''"},
    ],
    "request_body": {
        "media_type": "application/json", "required": True,
        "fields": [{"name": "name", "type": "str", "required": True, "source": "body"}],
    },
    "responses": {"200": {"type": "Item", "description": "ok"}, "422": {"description": "Validation Error"}},
    "status_code": 200, "response_model": "Item",
    "security": [{"scheme": "oauth2", "scopes": ["read"]}],
}  # fmt: skip


def parameter(name, required, kind="str", where="query", **more):
    return {"name": name, "in": where, "required": required, "type": kind, **more}


def with_parameters(*parameters):
    return {**ROUTE, "parameters": list(parameters)}


ID, Q = ROUTE["parameters"]


@pytest.mark.parametrize(
    ("after", "verdict", "reason"),
    [
        (None, "breaking", "route removed"),
        (with_parameters(ID), "breaking", "parameter query q removed"),
        (with_parameters(ID, Q, parameter("n", True)), "breaking", "new required parameter query n"),
        (with_parameters(ID, Q, parameter("n", False)), "compatible", "new optional parameter query n"),
        (with_parameters(ID, {**Q, "required": True}), "breaking", "parameter query q is required now"),
        (with_parameters(ID, {**Q, "type": "int"}), "breaking", "parameter query q: type str -> int"),
        (with_parameters(ID, {**Q, "default": "'x'"}), "compatible", "parameter query q: default '' -> 'x'"),
        ({**ROUTE, "status_code": 204}, "breaking", "status 200 -> 204"),
        ({**ROUTE, "response_model": "Other"}, "breaking", "response model Item -> Other"),
        ({**ROUTE, "responses": {"200": {"type": "Item"}}}, "breaking", "response 422 removed"),
        (
            {**ROUTE, "responses": {**ROUTE["responses"], "404": {"description": "no"}}},
            "compatible",
            "response 404 added",
        ),
        ({**ROUTE, "request_body": None}, "breaking", "request body removed"),
        (
            {**ROUTE, "request_body": {**ROUTE["request_body"], "fields": []}},
            "breaking",
            "body field name removed",
        ),
        ({**ROUTE, "security": []}, "compatible", "no longer needs oauth2"),
        (
            {**ROUTE, "security": [{"scheme": "oauth2", "scopes": ["read", "write"]}]},
            "breaking",
            "oauth2 now needs write",
        ),
        ({**ROUTE, "deprecated": True}, "compatible", "now deprecated"),
        ({**ROUTE, "handler": "app.b"}, "compatible", "handler app.a -> app.b"),
        ({**ROUTE, "mounted": False}, "breaking", "no longer mounted"),
    ],
)
def test_a_change_of_a_route_is_judged(after, verdict, reason):
    found = judge("contract", ROUTE, after)
    assert found.compatibility == verdict
    assert reason in found.reasons


def test_a_path_that_was_free_of_security_and_needs_it_now_breaks():
    before = {name: value for name, value in ROUTE.items() if name != "security"}
    assert judge("contract", before, ROUTE) == ("breaking", ("now needs oauth2",))


def entity(*fields, **more):
    return {"name": "m.E", "framework": "pydantic", "form": "model", "fields": list(fields), **more}


ID_FIELD = {"name": "id", "type": "int", "required": True}


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        (entity(ID_FIELD), None, "breaking", "entity removed"),
        (None, entity(ID_FIELD), "compatible", "entity added"),
        (entity(ID_FIELD), entity(), "breaking", "field id removed"),
        (entity(), entity(ID_FIELD), "breaking", "new field id without a default"),
        (
            entity(),
            entity({"name": "n", "type": "int", "required": False, "default": "1"}),
            "compatible",
            "new field n",
        ),
        (entity(), entity({"name": "n", "type": "str", "nullable": True}), "compatible", "new field n"),
        (entity(ID_FIELD), entity({**ID_FIELD, "type": "str"}), "breaking", "field id: type int -> str"),
        (
            entity({"name": "n", "type": "int", "required": False, "default": "1"}),
            entity({"name": "n", "type": "int", "required": True}),
            "breaking",
            "field n is required now",
        ),
        (
            entity({"name": "n", "type": "int", "default": "1"}),
            entity({"name": "n", "type": "int", "default": "2"}),
            "compatible",
            "field n: default 1 -> 2",
        ),
        (
            entity({**ID_FIELD, "constraints": {"le": "10"}}),
            entity({**ID_FIELD, "constraints": {"le": "5"}}),
            "breaking",
            "field id: le 10 -> 5",
        ),
        (
            entity({**ID_FIELD, "constraints": {"le": "10"}}),
            entity(ID_FIELD),
            "compatible",
            "field id: le 10 -> none",
        ),
        (
            entity(table="orders"),
            entity(table="bills"),
            "breaking",
            "table orders -> bills",
        ),
        (
            entity(relations=[{"name": "items", "target": "m.Item", "cardinality": "many"}]),
            entity(relations=[{"name": "items", "target": "m.Item", "cardinality": "one"}]),
            "breaking",
            "relation items: cardinality many -> one",
        ),
        (
            entity(inherited=[{**ID_FIELD, "from": "m.Base"}]),
            entity(ID_FIELD),
            "compatible",
            None,
        ),
    ],
)
def test_a_change_of_an_entity_is_judged(before, after, verdict, reason):
    found = judge("entity", before, after)
    assert found.compatibility == verdict
    assert reason is None or reason in found.reasons


def test_members_of_an_enum_may_be_added_but_neither_removed_nor_renumbered():
    one = {"name": "A", "type": "", "default": "1"}
    enum = {"name": "m.E", "framework": "enum", "form": "enum"}
    before = {**enum, "fields": [one]}
    added = {**enum, "fields": [one, {"name": "B", "type": "", "default": "2"}]}
    assert judge("entity", before, added) == ("compatible", ("new member B",))
    assert judge("entity", added, before) == ("breaking", ("member B removed",))
    assert judge("entity", before, {**enum, "fields": [{**one, "default": "3"}]}).compatibility == "breaking"


def test_other_kinds_are_not_judged():
    assert judge("symbol", {"a": 1}, {"a": 2}) == (None, ())


def test_breaking_reasons_come_first():
    found = judge("contract", ROUTE, {**with_parameters(ID), "deprecated": True})
    assert found.reasons == ("parameter query q removed", "now deprecated")
