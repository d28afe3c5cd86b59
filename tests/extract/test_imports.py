from pathlib import Path

import pytest

from tests.extract.snapshots import Snapshot

FLAT = Path(__file__).parents[2] / "evals" / "fixtures" / "packages"


def folder(name):
    return {
        path.relative_to(FLAT / name).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((FLAT / name).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def flat():
    return Snapshot(folder("flat"), ids=["imports"])


def of(shown, importer):
    start = f"import:{importer}->"
    return {
        key.removeprefix(start): dict(a.draft.body)
        for key, a in shown.artifacts().items()
        if key.startswith(start)
    }


def test_every_imported_name_of_a_module_has_one_artifact(flat):
    assert set(of(flat, "shop.orders")) == {
        "__future__.annotations",
        "collections",
        "os.path",
        "dataclasses.dataclass",
        "dataclasses.field",
        "typing.TYPE_CHECKING",
        "yaml",
        "shop.money",
        "shop.money.Money",
        "shop.money.zero",
        "shop.stock",
        "shop.audit.log",
        "shop.billing.Invoice",
        "simplejson",
        "json",
        "shop.fast.total",
        "shop.slow.total",
    }


def test_a_relative_import_is_named_absolutely_with_its_module_and_definition(flat):
    assert of(flat, "shop.orders")["shop.money.zero"] == {
        "importer": "shop.orders",
        "imported": "shop.money.zero",
        "target": "internal",
        "resolution": "exact",
        "module": "shop.money",
        "name": "zero",
        "kind": "function",
        "aliases": ["nothing"],
    }


def test_a_reexport_is_resolved_to_where_it_is_defined(flat):
    body = of(flat, "shop.plugins.csv")["shop.audit.write"]
    assert (body["module"], body["definition"]) == ("shop.audit", "shop.audit.log.write")
    links = flat.artifacts()["import:shop.plugins.csv->shop.audit.write"].draft.links
    assert {(link.relation, link.target_key) for link in links} == {
        ("imports", "module:shop.audit"),
        ("imports", "symbol:shop.audit.log.write"),
    }


def test_a_star_import_is_one_artifact(flat):
    body = of(flat, "shop.billing")["shop.money.*"]
    assert (body["module"], body["name"]) == ("shop.money", "*")


def test_a_local_collections_is_not_what_import_collections_means(flat):
    assert of(flat, "shop.orders")["collections"]["target"] == "stdlib"
    assert of(flat, "shop.plugins.csv")["csv"]["target"] == "stdlib"


def test_a_standard_module_with_a_dot_is_standard(flat):
    assert of(flat, "shop.orders")["os.path"]["target"] == "stdlib"


def test_several_statements_that_import_one_thing_are_one_artifact_with_all_their_lines(flat):
    assert flat.lines("import:shop.orders->shop.billing.Invoice") == [
        ("shop/orders.py", 18, 18),
        ("shop/orders.py", 36, 36),
    ]
    assert flat.lines("import:shop.orders->shop.money") == [
        ("shop/orders.py", 12, 12),
        ("shop/orders.py", 42, 42),
    ]


def test_circumstances_are_said_where_they_hold_for_every_statement(flat):
    found = of(flat, "shop.orders")
    assert found["simplejson"]["optional"] is True
    assert found["shop.slow.total"]["optional"] is True
    assert "type_checking" not in found["shop.billing.Invoice"]
    assert "deferred" not in found["shop.money"]
    assert of(flat, "shop.audit.log")["shop.money"]["deferred"] is True


def test_what_a_package_offers_further_is_marked(flat):
    assert of(flat, "shop")["shop.orders.Order"]["reexported"] is True
    assert of(flat, "shop.audit")["shop.audit.log"]["reexported"] is True


def test_an_import_that_leads_nowhere_is_said_to_be_unresolved(flat):
    body = of(flat, "shop.billing")["shop.missing_name"]
    assert (body["target"], body["resolution"], body["module"]) == ("internal", "unresolved", "shop")
    beyond = of(flat, "shop.audit.log")["...shop.nowhere"]
    assert (beyond["target"], beyond["resolution"]) == ("unknown", "unresolved")


def test_a_stub_imports_under_a_name_of_its_own_where_a_source_is_beside(flat):
    assert of(flat, "shop.typed")["shop.money.Money"]["module"] == "shop.money"


def test_dynamic_imports_are_recorded_and_resolved_as_far_as_they_say(flat):
    found = {key: body for key, body in of(flat, "shop.billing").items() if key.startswith("dynamic:")}
    assert {
        key: (body["target"], body.get("module"), body.get("package")) for key, body in found.items()
    } == {
        'dynamic:f"shop.plugins.{name}"': ("internal", None, "shop.plugins"),
        "dynamic:shop.plugins.csv": ("internal", "shop.plugins.csv", None),
        "dynamic:shop.plugins.pdf": ("internal", "shop.plugins.pdf", None),
        "dynamic:shop.plugins.pdf~2": ("internal", "shop.plugins.pdf", None),
        "dynamic:name": ("unknown", None, None),
    }
    assert all(body["resolution"] == "dynamic" for body in found.values())


def test_confidence_falls_with_what_is_not_known(flat):
    confidence = {
        key.rpartition("->")[2]: artifact.draft.confidence for key, artifact in flat.artifacts().items()
    }
    assert confidence["shop.money.zero"] == 100
    assert confidence["shop.missing_name"] == 50
    assert confidence["dynamic:name"] == 30


def test_packages_of_one_source_root_know_each_other():
    shown = Snapshot(folder("src_layout"), ids=["imports"])
    assert of(shown, "alpha")["beta.tools.helper"]["module"] == "beta.tools"
    assert of(shown, "alpha.sub.deep")["beta.tools.*"]["target"] == "internal"
    assert of(shown, "alpha")["requests"]["target"] == "external"


def test_tests_without_init_find_the_package_and_their_siblings():
    shown = Snapshot(folder("src_layout"), ids=["imports"])
    found = of(shown, "tests.test_alpha")
    assert found["alpha.core.tools"]["definition"] == "beta.tools"
    assert found["tests.helpers.make"]["module"] == "tests.helpers"


def test_portions_of_a_namespace_package_find_each_other_across_roots():
    shown = Snapshot(folder("namespaces"), ids=["imports"])
    assert of(shown, "acme.one")["acme.two.core"]["module"] == "acme.two.core"
    assert of(shown, "acme.one.core")["acme.two.core.Thing"]["kind"] == "class"


def test_a_file_with_a_syntax_error_keeps_the_imports_that_can_be_read():
    shown = Snapshot(
        {"a.py": "from b import x\ndef broken(:\n    pass\nimport b\n", "b.py": "x = 1\n"}, ids=["imports"]
    )
    assert set(of(shown, "a")) >= {"b.x"}


def test_a_name_that_is_a_submodule_and_a_function_says_both(flat):
    body = of(flat, "shop.names.user")["shop.names.parse"]
    assert body["module"] == "shop.names.parse"


def test_two_roots_that_define_one_name_are_told_apart_in_keys():
    files = {
        f"services/{name}/{path}": text
        for name in ("one", "two")
        for path, text in {
            "setup.py": "",
            "app/__init__.py": "",
            "app/main.py": "from app import thing\n",
            "app/thing.py": "",
        }.items()
    }
    shown = Snapshot(files, ids=["imports"])
    assert set(shown.artifacts()) == {
        "import:services/one:app.main->services/one:app.thing",
        "import:services/two:app.main->services/two:app.thing",
    }


def test_a_name_that_a_module_has_from_elsewhere_is_still_imported_from_the_module():
    shown = Snapshot(
        {
            "db/__init__.py": "",
            "db/base.py": "from sqlite3 import dbapi2 as Database\n",
            "db/ops.py": "from .base import Database\n",
        },
        ids=["imports"],
    )
    body = of(shown, "db.ops")["db.base.Database"]
    assert (body["target"], body["module"]) == ("internal", "db.base")
    assert (body["defined"], body["definition"]) == ("stdlib", "sqlite3.dbapi2")


def test_a_dynamic_import_is_recorded_whatever_import_module_is_called():
    source = """
        import importlib as il
        from importlib import import_module as load

        a = il.import_module("shop.a")
        b = load("shop.b")
        c = load(f"shop.{a}")
    """
    found = of(
        Snapshot({"shop/__init__.py": "", "shop/a.py": "", "shop/b.py": "", "m.py": source}, ["imports"]), "m"
    )
    dynamic = {
        key: (body["call"], body["target"]) for key, body in found.items() if key.startswith("dynamic:")
    }
    assert dynamic == {
        "dynamic:shop.a": ("il.import_module", "internal"),
        "dynamic:shop.b": ("load", "internal"),
        'dynamic:f"shop.{a}"': ("load", "internal"),
    }
