from tests.extract.snapshots import Snapshot

FILES = {
    "shop/__init__.py": """
        from .orders import Order, helper
        from .parts import *
        import os

        __all__ = ["Order", "total"]

        def total(lines: list[int]) -> int: ...
        def unlisted(): ...
        """,
    "shop/orders.py": """
        class Base:
            def __init__(self, name: str) -> None: ...

        class Order(Base):
            def pay(self) -> None: ...

        def helper(): ...
        """,
    "shop/parts.py": "def part(): ...\n",
    "shop/open/__init__.py": """
        from ..orders import helper
        from ..parts import *
        from os.path import join
        LIMIT = 3
        _private = 1
        def own(): ...
        """,
    "single.py": "import json\ndef run(): ...\n",
    "setup.py": "def run(): ...\n",
    "shop/_hidden/__init__.py": "def run(): ...\n",
}


def surface(files=None):
    return Snapshot(files or FILES, ids=["surface"])


def offered(shown, package):
    return {
        artifact.draft.body["name"]: artifact.draft.body["via"]
        for artifact in shown.artifacts(kind="surface").values()
        if artifact.draft.body["package"] == package
    }


def test_a_static_list_says_all_that_a_package_offers():
    assert offered(surface(), "shop") == {"Order": "__all__", "total": "__all__"}


def test_without_a_list_definitions_reexports_and_stars_are_offered():
    assert offered(surface(), "shop.open") == {
        "helper": "reexport",
        "part": "star",
        "LIMIT": "definition",
        "own": "definition",
    }


def test_a_top_level_module_offers_what_it_defines():
    assert offered(surface(), "single") == {"run": "definition"}


def test_private_packages_and_build_scripts_offer_nothing():
    shown = surface()
    assert offered(shown, "shop._hidden") == {}
    assert offered(shown, "setup") == {}


def test_loose_modules_that_a_test_runner_runs_offer_nothing_and_packages_among_tests_offer_as_any_other():
    shown = surface(
        {
            "test_single.py": "def run(): ...\n",
            "single_test.py": "def run(): ...\n",
            "testing/python/collect.py": "class TestCollect: ...\n",
            "tests/apps/shop/__init__.py": "def make(): ...\n",
            "pkg/__init__.py": "",
            "pkg/testing/__init__.py": "def assert_equal(): ...\n",
            "attest.py": "def run(): ...\n",
        }
    )
    assert {
        artifact.draft.body["package"] for artifact in shown.artifacts(kind="package_surface").values()
    } == {
        "shop",
        "pkg.testing",
        "attest",
    }


def test_a_reexport_stands_on_list_import_definition_and_constructor():
    shown = surface()
    assert shown.body("surface:shop.Order") == {
        "package": "shop",
        "name": "Order",
        "via": "__all__",
        "target": "internal",
        "resolution": "exact",
        "definition": "shop.orders.Order",
        "kind": "class",
        "signature": "class Order(Base)",
        "constructor": "def __init__(self, name: str) -> None",
    }
    assert [
        (role, shown.lines("surface:shop.Order", role)) for role in ("export", "import", "definition")
    ] == [
        ("export", [("shop/__init__.py", 5, 5)]),
        ("import", [("shop/__init__.py", 1, 1)]),
        ("definition", [("shop/orders.py", 4, 4)]),
    ]
    assert shown.lines("surface:shop.Order", "constructor") == [("shop/orders.py", 2, 2)]


def test_an_edit_inside_a_body_changes_no_surface():
    edited = FILES | {
        "shop/orders.py": FILES["shop/orders.py"].replace("-> None: ...", "-> None: return None")
    }
    assert surface().ids_of() == surface(edited).ids_of()


def test_another_signature_changes_the_surface_of_whoever_offers_it():
    edited = FILES | {
        "shop/orders.py": FILES["shop/orders.py"].replace("name: str", "name: str, age: int = 1")
    }
    before, after = surface(), surface(edited)
    changed = {
        key
        for key, artifact in after.artifacts().items()
        if artifact.artifact_id != before.artifacts()[key].artifact_id
    }
    assert changed == {"surface:shop.Order"}


def test_a_module_getattr_makes_the_surface_open():
    shown = surface({"m.py": "__all__ = ['known', 'made']\ndef known(): ...\ndef __getattr__(name): ...\n"})
    assert shown.body("package:m")["resolution"] == "dynamic"
    assert shown.body("surface:m.made")["resolution"] == "dynamic"
    assert shown.artifacts()["surface:m.made"].draft.confidence == 50


def test_a_list_that_takes_another_list_is_read():
    shown = surface(
        {
            "p/__init__.py": "from .a import *\nfrom . import a, b\n__all__ = ['x'] + a.__all__\n__all__ += b.__all__\nx = 1\n",
            "p/a.py": "__all__ = ['y']\ny = 1\n",
            "p/b.py": "__all__ = ('z',)\nz = 1\n",
        }
    )
    assert set(offered(shown, "p")) == {"x", "y", "z"}
    assert shown.body("package:p")["resolution"] == "exact"
