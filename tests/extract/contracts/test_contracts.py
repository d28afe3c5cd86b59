"""Contracts across files: keys, grounding, what cannot be told, and exact re-linking."""

from __future__ import annotations

import re

import pytest
from django.urls.resolvers import RegexPattern
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.extract.invalidation import changed_answers
from tests.extract.snapshots import Snapshot

ORDERS = """
from fastapi import APIRouter, Depends

from shop.deps import session
from shop.models import Order

router = APIRouter(prefix="/orders")


@router.get("/{order_id}", response_model=Order, tags=["orders"])
async def read_order(order_id: int, expand: bool = False, db=Depends(session)):
    \"\"\"One order.

    With its lines.
    \"\"\"
"""
SHOP = {
    "shop/__init__.py": "",
    "shop/models.py": "from pydantic import BaseModel\n\n\nclass Order(BaseModel):\n    id: int\n",
    "shop/deps.py": "def session(tenant: str = 'x'):\n    yield tenant\n",
    "shop/orders.py": ORDERS,
    "shop/main.py": """
        from fastapi import FastAPI
        from shop import orders

        app = FastAPI()
        app.include_router(orders.router, prefix="/api")
    """,
}


def contracts(files):
    return Snapshot(files, ["contracts"])


def keys(files):
    return sorted(contracts(files).artifacts("contract"))


def test_a_route_has_the_key_of_its_method_and_whole_path():
    assert keys(SHOP) == ["api:GET /api/orders/{order_id}"]


def test_a_contract_stands_on_every_file_that_makes_it_what_it_is():
    shop = contracts(SHOP)
    key = "api:GET /api/orders/{order_id}"
    assert shop.lines(key, "route") == [("shop/orders.py", 9, 9)]
    assert shop.lines(key, "handler")[0][:2] == ("shop/orders.py", 9)
    assert shop.lines(key, "response_model") == [("shop/models.py", 4, 5)]
    assert shop.lines(key, "dependency")[0][:2] == ("shop/deps.py", 1)
    assert shop.lines(key, "include") == [("shop/main.py", 5, 5)]
    assert {path for path, _, _ in shop.lines(key, "router")} == {"shop/main.py", "shop/orders.py"}


def test_a_contract_links_to_its_handler_models_and_dependencies():
    draft = contracts(SHOP).artifacts("contract")["api:GET /api/orders/{order_id}"].draft
    assert {tuple(link) for link in draft.links} == {
        ("handled_by", "symbol:shop.orders.read_order"),
        ("uses_model", "symbol:shop.models.Order"),
        ("uses_model", "entity:shop.models.Order"),
        ("depends_on", "symbol:shop.deps.session"),
    }


def test_the_text_is_what_a_person_wants_to_read():
    draft = contracts(SHOP).artifacts("contract")["api:GET /api/orders/{order_id}"].draft
    assert draft.text.splitlines() == [
        "GET /api/orders/{order_id}",
        "One order.",
        "Handled by shop.orders.read_order (fastapi).",
        (
            "Parameters: order_id (path, int, required); expand (query, bool, default False); "
            'tenant (query, str, default "x").'
        ),
        "Responses: 200 Order, 422.",
        "Tags: orders.",
        "Depends on: shop.deps.session.",
    ]


def test_no_path_or_line_is_in_a_body():
    moved = {**SHOP, "shop/orders.py": "# a comment above\n\n" + ORDERS.lstrip()}
    before, after = contracts(SHOP), contracts(moved)
    assert before.ids_of() == after.ids_of()
    assert ".py" not in str(before.body("api:GET /api/orders/{order_id}"))


def test_a_router_that_is_included_twice_gives_two_routes():
    twice = SHOP["shop/main.py"] + "    app.include_router(orders.router, prefix='/old')\n"
    assert keys({**SHOP, "shop/main.py": twice}) == [
        "api:GET /api/orders/{order_id}",
        "api:GET /old/orders/{order_id}",
    ]


def test_a_path_that_comes_twice_in_one_file_is_counted():
    again = ORDERS + "\n\n@router.get('/{order_id}')\ndef again(order_id: str): ...\n"
    assert keys({**SHOP, "shop/orders.py": again}) == [
        "api:GET /api/orders/{order_id}",
        "api:GET /api/orders/{order_id}~2",
    ]


def test_a_path_that_cannot_be_told_names_its_module():
    served = SHOP["shop/orders.py"].replace("/{order_id}", "") + "\n\n@router.get(path)\ndef any(): ...\n"
    assert [key for key in keys({**SHOP, "shop/orders.py": served}) if "#" in key] == [
        "api:GET /api/orders<path>#shop.orders"
    ]


def test_a_second_application_names_itself_in_its_keys():
    files = {
        **SHOP,
        "tests/test_app.py": """
            from fastapi import FastAPI

            app = FastAPI()

            @app.get("/api/orders/{order_id}")
            def fake(order_id: int): ...
        """,
    }
    assert keys(files) == [
        "api:GET /api/orders/{order_id}",
        "api:GET /api/orders/{order_id}@tests.test_app.app",
    ]


def test_a_router_that_nobody_includes_is_said_to_be_unmounted():
    files = {**SHOP, "shop/main.py": "from fastapi import FastAPI\napp = FastAPI()\n"}
    [artifact] = contracts(files).artifacts("contract").values()
    assert artifact.draft.logical_key == "api:GET /orders/{order_id}@shop.orders.router"
    assert (artifact.draft.body["mounted"], artifact.draft.confidence) == (False, 50)


def test_a_prefix_that_is_computed_is_said_to_be_dynamic():
    main = SHOP["shop/main.py"].replace('"/api"', "compute()")
    [artifact] = contracts({**SHOP, "shop/main.py": main}).artifacts("contract").values()
    assert artifact.draft.body["resolution"] == "dynamic"
    assert artifact.draft.confidence == 60
    assert "compute()" in artifact.draft.body["path"]


def test_a_default_of_the_settings_is_approximate():
    files = {
        **SHOP,
        "shop/config.py": "from pydantic_settings import BaseSettings\n\n\nclass S(BaseSettings):\n"
        "    API: str = '/v1'\n\n\nsettings = S()\n",
        "shop/main.py": SHOP["shop/main.py"]
        .replace('"/api"', 'f"{settings.API}/x"')
        .replace(
            "from shop import orders", "from shop import orders\n        from shop.config import settings"
        ),
    }
    [artifact] = contracts(files).artifacts("contract").values()
    assert artifact.draft.body["path"] == "/v1/x/orders/{order_id}"
    assert (artifact.draft.body["resolution"], artifact.draft.confidence) == ("approximate", 80)


DJANGO = {
    "site/manage.py": "",
    "site/tickets/__init__.py": "",
    "site/conf/__init__.py": "",
    "site/conf/settings.py": 'ROOT_URLCONF = "conf.urls"\n',
    "site/conf/urls.py": """
        from django.urls import include, path
        from rest_framework import routers
        from tickets.views import Tickets

        simple = routers.SimpleRouter()
        simple.register("tickets", Tickets)
        urlpatterns = [path("api/", include(simple.urls))]
    """,
    "site/tickets/views.py": """
        from rest_framework.decorators import action
        from rest_framework.viewsets import ReadOnlyModelViewSet
        from tickets.serializers import Brief, Closing, Full

        class Tickets(ReadOnlyModelViewSet):
            serializer_class = Full

            def get_serializer_class(self):
                return Brief if self.action == "list" else Full

            @action(detail=True, methods=["post"], serializer_class=Closing)
            def close(self, request, pk): ...

            @close.mapping.put
            def close_again(self, request, pk): ...
    """,
    "site/tickets/serializers.py": """
        from rest_framework.serializers import Serializer

        class Brief(Serializer): ...
        class Closing(Serializer): ...
        class Full(Serializer): ...
    """,
}


def test_a_further_verb_of_an_action_has_its_path_and_its_serializer():
    found = contracts(DJANGO).body("api:PUT /api/tickets/{pk}/close/")
    assert found["action"] == "close_again"
    assert found["request_body"]["type"] == "tickets.serializers.Closing"
    assert "unresolved" not in found


def test_a_serializer_that_a_method_chooses_is_said_to_be_unknown():
    found = contracts(DJANGO).artifacts()["api:GET /api/tickets/"].draft
    assert found.body["unresolved"] == ["the serializer that get_serializer_class chooses"]
    assert found.confidence == 80


BY_HAND = {
    **DJANGO,
    "site/conf/urls.py": """
        from django.urls import path, re_path
        from tickets.views import Posts, Tickets
        from tickets.serializers import Brief, Closing

        closing = Tickets.as_view({"post": "close", "put": "close_again"})
        urlpatterns = [
            path("kept/<int:pk>/", closing),
            path("given/<int:pk>/", Tickets.as_view({"post": "close"}, serializer_class=Closing)),
            path("untold/", Tickets.as_view(actions_of("tickets"))),
            path("posts/", Posts.as_view()),
            path("one/", Posts.as_view(http_method_names=["get"])),
            re_path(r"^news/(?P<slug>[-\\w]+)/(?:p(?P<page>\\d+)/)?$", Posts.as_view(http_method_names=["put"])),
        ]
    """,
    "site/tickets/views.py": """
        from django.utils.decorators import method_decorator
        from django.views import View
        from django.views.decorators.http import require_http_methods
        from rest_framework.decorators import action, permission_classes
        from rest_framework.permissions import AllowAny, IsAdminUser
        from rest_framework.viewsets import GenericViewSet
        from tickets.serializers import Brief, Closing, Full

        class Tickets(GenericViewSet):
            serializer_class = Full
            permission_classes = [IsAdminUser]

            @action(detail=True, methods=["post"], serializer_class=Closing, permission_classes=[AllowAny])
            def close(self, request, pk): ...

            @permission_classes([AllowAny])
            def close_again(self, request, pk): ...

        @method_decorator([require_http_methods(["POST", "PUT"])], name="dispatch")
        class Posts(View):
            def get(self, request): ...
            def post(self, request): ...
            def put(self, request): ...
    """,
}


def test_a_view_made_by_hand_has_what_as_view_is_given_and_nothing_of_action():
    """As Django REST framework does it: only a router hands what `@action` says on to `as_view`."""
    found = contracts(BY_HAND)
    kept, given = found.body("api:POST /kept/{pk}/"), found.body("api:POST /given/{pk}/")
    assert kept["request_body"]["type"] == "tickets.serializers.Full"
    assert kept["security"] == [{"scheme": "rest_framework.permissions.IsAdminUser", "scopes": []}]
    assert kept["action"] == "close"
    assert found.body("api:PUT /kept/{pk}/")["security"] == kept["security"]
    assert given["request_body"]["type"] == "tickets.serializers.Closing"


def test_a_view_answers_what_its_dispatch_and_its_names_of_methods_let_through():
    found = contracts(BY_HAND)
    assert sorted(key for key in found.artifacts("contract") if "posts" in key or "one" in key) == [
        "api:ANY /one/",
        "api:POST /posts/",
        "api:PUT /posts/",
    ]


def test_actions_that_a_run_makes_are_said_to_be_unknown():
    untold = contracts(BY_HAND).artifacts()["api:ANY /untold/"].draft
    assert untold.body["unresolved"] == ["the actions that as_view is given"]
    assert untold.confidence == 80


def test_a_group_inside_an_optional_part_of_a_path_is_a_parameter():
    body = contracts(BY_HAND).body("api:PUT /news/{slug}/(?:p{page}/)?")
    assert [(parameter["name"], parameter["required"]) for parameter in body["parameters"]] == [
        ("slug", True),
        ("page", False),
    ]


@pytest.mark.parametrize(
    ("regex", "with_all", "without"),
    [
        (r"^a/(?P<x>\d+)?$", "a/1", "a/"),
        (r"^a/(?:p(?P<x>\d+)/)?$", "a/p1/", "a/"),
        (r"^a/(?:(?:p(?P<x>\d+)/)+)?(?P<y>\w+)$", "a/p1/b", "a/b"),
        (r"^a/(?:p(?P<x>\d+)|all)/$", "a/p1/", "a/all/"),
        (r"^a/(?P<x>\d+)/$|^b/$", "a/1/", "b/"),
        (r"^a/(?:p(?P<x>\d)){0,2}$", "a/p1", "a/"),
        (r"^a/(?P<y>[|?(]|\(\|)(?P<x>\d)*$", "a/|1", "a/("),
        (r"(?i)^a/(?=\w)(?P<y>\w)(?P<x>\d)?$", "A/b1", "a/b"),
        (r"^a/(?:(?P<x>\d)/){1,2}$", "a/1/", None),
        (r"^(a|b)/(p(?P<x>\d)/)?$", "a/p1/", "b/"),
        (r"^(a|b)/(\d)$", "a/1", None),
    ],
)
def test_groups_are_the_parameters_that_django_gives_and_what_a_match_may_leave_out_is_not_required(
    regex, with_all, without
):
    def given(path):
        _, args, kwargs = RegexPattern(regex).match(path)
        return kwargs or {f"arg{number}": value for number, value in enumerate(args)}

    everything = given(with_all)
    always = everything if without is None else given(without)
    files = {
        "proj/urls.py": (
            "from django.urls import re_path\nfrom proj import views\n"
            f"urlpatterns = [re_path({regex!r}, views.v)]\n"
        ),
        "proj/views.py": "def v(request, **kwargs): ...\n",
        "proj/settings.py": "ROOT_URLCONF = 'proj.urls'\n",
    }
    (found,) = contracts(files).artifacts("contract").values()
    told = {entry["name"]: entry["required"] for entry in found.draft.body["parameters"]}
    assert told == {name: name in always for name in everything}


def test_what_is_included_at_run_time_or_from_another_distribution_is_said():
    found = contracts(
        {
            "app/main.py": """
                import importlib
                from fastapi import FastAPI
                from fastapi_users import users
                from app.plugins import NAMES

                app = FastAPI()
                app.include_router(users.router, prefix="/auth")
                for name in NAMES.split():
                    app.include_router(importlib.import_module(name).router, prefix="/plug")
            """,
            "app/__init__.py": "",
            "app/plugins.py": "import os\n\nNAMES = os.environ['PLUGINS']\n",
        }
    )
    assert {
        key: (artifact.draft.body["unresolved"], artifact.draft.confidence)
        for key, artifact in found.artifacts("contract").items()
    } == {
        "api:INCLUDE /auth": (["the routes of fastapi_users.users.router"], 80),
        "api:INCLUDE /plug": (["the routes of importlib.import_module(name).router"], 80),
    }


def test_a_blueprint_of_another_distribution_is_said():
    source = """
        from flask import Flask
        from flask_health import health

        app = Flask(__name__)
        app.register_blueprint(health, url_prefix="/health")
    """
    assert keys({"app.py": source}) == ["api:INCLUDE /health"]


def test_a_part_of_a_path_that_only_a_run_can_tell_is_no_parameter():
    files = {
        "site/conf/__init__.py": "",
        "site/conf/settings.py": 'ROOT_URLCONF = "conf.urls"\n',
        "site/conf/views.py": "def page(request): ...\n",
        "site/conf/urls.py": """
            from django.urls import path
            from conf import views

            urlpatterns = [path(f"page/{n}/<int:pk>/", views.page) for n in range(views.COUNT)]
        """,
        "site/manage.py": "",
    }
    [found] = [artifact.draft for artifact in contracts(files).artifacts("contract").values()]
    assert found.logical_key == "api:ANY /page/<n>/{pk}/#conf.urls"
    assert [entry["name"] for entry in found.body["parameters"]] == ["pk"]
    assert found.confidence == 60


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ('re_path(f"{f(x)}/(?P<pk>[0-9]+)/$", views.page)', "/<f(x)>/{pk}/"),
        ('re_path(f"{f(x)}/([0-9]+)/$", views.page)', "/<f(x)>/{arg0}/"),
        ('re_path(f"a/(?P<pk>{f(x)})/$", views.page)', "/a/{pk}/"),
        ("path(f\"{f('<int:n>')}/<pk>/\", views.page)", '/<f("<int:n>")>/{pk}/'),
        ('path("", include([re_path(f"{f(x)}(a>b)", views.page)]))', "/<f(x)>{arg0}"),
    ],
)
def test_what_a_run_calls_for_a_part_of_a_path_brings_no_parameter(entry, path):
    urls = (
        f"from django.urls import include, path, re_path\nfrom conf import views\n\nurlpatterns = [{entry}]\n"
    )
    files = {
        "site/conf/__init__.py": "",
        "site/conf/settings.py": 'ROOT_URLCONF = "conf.urls"\n',
        "site/conf/views.py": "def page(request): ...\n",
        "site/conf/urls.py": urls,
        "site/manage.py": "",
    }
    [found] = [artifact.draft for artifact in contracts(files).artifacts("contract").values()]
    assert (found.body["path"], found.confidence) == (path, 60)
    assert [f"{{{entry['name']}}}" for entry in found.body["parameters"]] == re.findall(r"{\w+}", path)


def test_what_a_run_calls_for_the_prefix_of_a_viewset_brings_no_parameter():
    urls = DJANGO["site/conf/urls.py"].replace('"tickets"', "prefix_of(Tickets, slug)")
    found = contracts({**DJANGO, "site/conf/urls.py": urls}).artifacts("contract")
    assert {
        (draft.body["path"], *(entry["name"] for entry in draft.body.get("parameters", ())))
        for draft in (artifact.draft for artifact in found.values())
    } == {
        ("/api/<prefix_of(Tickets, slug)>/",),
        ("/api/<prefix_of(Tickets, slug)>/{pk}/", "pk"),
        ("/api/<prefix_of(Tickets, slug)>/{pk}/close/", "pk"),
    }


def test_what_a_run_calls_for_a_part_of_a_path_of_fastapi_brings_no_parameter():
    source = ORDERS.replace('"/{order_id}"', "f\"/{name_of('{tenant}')}/{{order_id}}\"")
    [found] = contracts({**SHOP, "shop/orders.py": source}).artifacts("contract").values()
    assert found.draft.body["path"] == '/api/orders/<name_of("{tenant}")>/{order_id}'
    assert [(p["name"], p["in"]) for p in found.draft.body["parameters"]] == [
        ("order_id", "path"),
        ("expand", "query"),
        ("tenant", "query"),
    ]


def test_a_description_of_a_response_that_only_a_run_can_tell_is_left_out():
    given = 'responses={404: {"description": text_of(404)}, 409: {"description": "Taken"}}'
    source = ORDERS.replace('tags=["orders"]', given)
    body = contracts({**SHOP, "shop/orders.py": source}).body("api:GET /api/orders/{order_id}")
    assert {code: body["responses"][code] for code in ("404", "409")} == {
        "404": {},
        "409": {"description": "Taken"},
    }


def test_an_include_inside_a_branch_is_conditional():
    main = SHOP["shop/main.py"].replace("app.include", "if app.debug:\n            app.include")
    [artifact] = contracts({**SHOP, "shop/main.py": main}).artifacts("contract").values()
    assert (artifact.draft.body["conditional"], artifact.draft.confidence) == (True, 90)


def test_a_dependency_of_another_distribution_is_named_as_unread():
    source = ORDERS.replace("from shop.deps import session", "from auth_library import session")
    body = contracts({**SHOP, "shop/orders.py": source}).body("api:GET /api/orders/{order_id}")
    assert body["unresolved"] == ["parameters of auth_library.session"]


@pytest.mark.parametrize(
    "source",
    [
        "from unittest import mock\n\n\n@mock.patch('shop.orders.router')\ndef test(): ...\n",
        "import os\n\nos.path.join('a', 'urls')\n",
        "client.get('/orders')\n",
        "@cache.get('/orders')\ndef f(): ...\n",
        "class Registry:\n    def route(self, p): ...\n\n\nr = Registry()\n\n\n@r.route('/x')\ndef f(): ...\n",
    ],
)
def test_what_only_looks_like_a_route_is_none(source):
    assert keys({"shop/__init__.py": "", "shop/x.py": source}) == []


def test_a_changed_prefix_links_the_routes_below_it_again_and_nothing_else():
    files = {**SHOP, "shop/other.py": "from fastapi import FastAPI\n\nother = FastAPI()\n"}
    before = contracts(files)
    changed = {**files, "shop/main.py": files["shop/main.py"].replace("/api", "/v2")}
    after = contracts(changed)
    assert sorted(after.artifacts("contract")) == ["api:GET /v2/orders/{order_id}"]
    assert relinked(before, after, {"shop/main.py"}) == {"shop/orders.py"}


def relinked(before, after, changed):
    answers = {(row.kind, row.key): row.answer for row in changed_answers(changed, before.facts, after.facts)}
    return {
        path
        for path, _, kind, key, answer in before.lookups()
        if path not in changed and answers.get((kind, key), answer) != answer
    }


VARIANTS = {
    "app/__init__.py": ["", "from app.a import router\nfrom app.b import router as other\n"],
    "app/main.py": [
        (
            "from fastapi import FastAPI\nfrom app import a, b\napp = FastAPI()\napp.include_router(a.router)\n"
            "app.include_router(b.router, prefix='/b')\n"
        ),
        (
            "from fastapi import FastAPI\nfrom app import router, other\napp = FastAPI()\n"
            "for r in (router, other):\n    app.include_router(r, prefix='/x')\n"
        ),
        (
            "from fastapi import FastAPI\nfrom app.a import router as first\napp = FastAPI()\n"
            "app.include_router(first, prefix='/x')\n\n\n@app.get('/x/y')\ndef own(): ...\n"
        ),
        "from fastapi import FastAPI\n",
    ],
    "app/a.py": [
        (
            "from fastapi import APIRouter\nfrom app.models import M\nrouter = APIRouter()\n\n\n@router.get('/y')\n"
            "def y(m: M): ...\n"
        ),
        (
            "from fastapi import APIRouter\nfrom app import b\nrouter = APIRouter(prefix='/p')\n"
            "router.include_router(b.router)\n\n\n@router.get('/')\ndef root(): ...\n"
        ),
        "from app.b import router\n\n\n@router.post('/y')\ndef y(): ...\n",
    ],
    "app/b.py": [
        "from fastapi import APIRouter\nP = '/y'\nrouter = APIRouter()\n\n\n@router.get(P)\ndef y(): ...\n",
        (
            "from fastapi import APIRouter, Depends\nfrom app.models import dep\nrouter = APIRouter(prefix='/y')\n"
            "\n\n@router.get('')\ndef y(d=Depends(dep)): ...\n"
        ),
        "from app.main import app as router\n\n\n@router.get('/x/y')\ndef y(): ...\n",
    ],
    "app/models.py": [
        "from pydantic import BaseModel\n\n\nclass M(BaseModel):\n    x: int\n\n\ndef dep(q: str = ''): ...\n",
        "class M: ...\n\n\ndef dep(n: int): ...\n",
        "",
    ],
}


@st.composite
def states(draw):
    paths = draw(st.lists(st.sampled_from(sorted(VARIANTS)), min_size=2, unique=True))
    return {path: draw(st.sampled_from(VARIANTS[path])) for path in paths}


def held(shown):
    return {
        linked.path: frozenset((one.artifact_id, frozenset(one.draft.groundings)) for one in linked.artifacts)
        for linked in shown.linked
    }


@settings(max_examples=150, deadline=None)
@given(states(), states())
def test_after_any_edit_every_file_whose_contracts_differ_is_linked_again(first, second):
    before, after = contracts(first), contracts(second)
    changed = {path for path in first.keys() | second.keys() if first.get(path) != second.get(path)}
    again = relinked(before, after, changed) | changed
    old, new = held(before), held(after)
    assert {path for path in old.keys() & new.keys() if old[path] != new[path]} <= again


@settings(max_examples=150, deadline=None)
@given(states())
def test_keys_are_unique_in_each_file_in_every_state(files):
    found = [(one.path, a.draft.logical_key) for one in contracts(files).linked for a in one.artifacts]
    assert len(set(found)) == len(found)
