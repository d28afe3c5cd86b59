from kb.extract.factstore import MemoryFacts
from kb.extract.layout import Layout


def names(*paths, roots=()):
    layout = Layout(MemoryFacts({}, paths), tuple(roots))
    return {
        path: layout.name(path).key_prefix + layout.name(path).dotted
        for path in paths
        if path.endswith((".py", ".pyi"))
    }


def test_a_package_at_the_top_is_named_from_the_top():
    assert names("shop/__init__.py", "shop/orders.py", "shop/db/__init__.py", "shop/db/models.py") == {
        "shop/__init__.py": "shop",
        "shop/orders.py": "shop.orders",
        "shop/db/__init__.py": "shop.db",
        "shop/db/models.py": "shop.db.models",
    }


def test_src_is_no_part_of_a_name():
    assert names("src/shop/__init__.py", "src/shop/orders.py", "src/tool.py") == {
        "src/shop/__init__.py": "shop",
        "src/shop/orders.py": "shop.orders",
        "src/tool.py": "tool",
    }


def test_a_namespace_package_below_src_keeps_its_first_part():
    found = names("src/acme/billing/__init__.py", "src/acme/billing/core.py", "src/acme/loose/part.py")
    assert found["src/acme/billing/core.py"] == "acme.billing.core"
    assert found["src/acme/loose/part.py"] == "acme.loose.part"


def test_a_plain_folder_with_several_packages_is_a_namespace_package():
    found = names("acme/billing/__init__.py", "acme/orders/__init__.py", "acme/orders/core.py")
    assert found["acme/orders/core.py"] == "acme.orders.core"


def test_folders_without_any_init_are_named_from_the_top():
    assert names("acme/billing/core.py")["acme/billing/core.py"] == "acme.billing.core"


def test_a_plain_folder_with_one_package_is_where_the_name_starts():
    assert names("backend/app/__init__.py", "backend/app/main.py")["backend/app/main.py"] == "app.main"


def test_a_plain_folder_below_a_package_belongs_to_it():
    assert names("src/shop/__init__.py", "src/shop/data/seed.py")["src/shop/data/seed.py"] == "shop.data.seed"


def test_a_package_in_a_plain_folder_of_a_package_belongs_to_it_whatever_the_folder_is_called():
    found = names(
        "src/shop/__init__.py",
        "src/shop/data/source/status/__init__.py",
        "src/shop/data/source/status/models.py",
        "src/shop/data/source/service.py",
    )
    assert found["src/shop/data/source/status/models.py"] == "shop.data.source.status.models"
    assert found["src/shop/data/source/service.py"] == "shop.data.source.service"


def test_a_program_among_the_fixtures_of_a_package_keeps_its_own_name():
    found = names("shop/__init__.py", "shop/tests/__init__.py", "shop/tests/fixtures/app/__init__.py")
    assert found["shop/tests/fixtures/app/__init__.py"] == "app"


def test_scripts_and_tests_without_init_are_named_from_the_top():
    assert names("scripts/run.py", "tests/unit/test_orders.py", "setup.py") == {
        "scripts/run.py": "scripts.run",
        "tests/unit/test_orders.py": "tests.unit.test_orders",
        "setup.py": "setup",
    }


def test_packages_below_a_plain_tests_folder_start_there():
    assert (
        names("tests/admin/__init__.py", "tests/admin/models.py", "tests/signals/__init__.py")[
            "tests/admin/models.py"
        ]
        == "admin.models"
    )


def test_several_projects_of_one_repository_have_their_own_roots():
    found = names(
        "packages/one/pyproject.toml",
        "packages/one/src/one/__init__.py",
        "packages/two/pyproject.toml",
        "packages/two/two/__init__.py",
        "packages/two/two/core.py",
    )
    assert found["packages/one/src/one/__init__.py"] == "one"
    assert found["packages/two/two/core.py"] == "two.core"


def test_colliding_roots_get_their_root_as_a_prefix():
    found = names(
        "services/one/requirements.txt",
        "services/one/app/__init__.py",
        "services/one/app/billing.py",
        "services/two/requirements.txt",
        "services/two/app/__init__.py",
    )
    assert found == {
        "services/one/app/__init__.py": "services/one:app",
        "services/one/app/billing.py": "services/one:app.billing",
        "services/two/app/__init__.py": "services/two:app",
    }


def test_an_unmarked_copy_of_a_package_does_not_rename_the_marked_one():
    found = names("src/shop/__init__.py", "examples/first/shop/__init__.py")
    assert found == {"src/shop/__init__.py": "shop", "examples/first/shop/__init__.py": "examples/first:shop"}


def test_a_stub_beside_its_source_is_told_apart():
    found = names("shop/__init__.py", "shop/fast.py", "shop/fast.pyi", "shop/native.pyi")
    assert found["shop/fast.py"] == "shop.fast"
    assert found["shop/fast.pyi"] == "stub:shop.fast"
    assert found["shop/native.pyi"] == "shop.native"


def test_a_stub_package_is_named_as_what_it_describes():
    assert names("shop-stubs/__init__.pyi")["shop-stubs/__init__.pyi"] == "stub:shop"


def test_a_module_that_a_package_hides_is_told_apart():
    found = names("shop/__init__.py", "shop/orders.py", "shop/orders/__init__.py")
    assert found["shop/orders/__init__.py"] == "shop.orders"
    assert found["shop/orders.py"] == "file:shop.orders"


def test_a_path_that_no_import_can_name_is_its_own_prefix():
    assert names("v1.0/run.py")["v1.0/run.py"] == "v1.0/run.py:v1.0.run"


def test_configured_roots_come_before_what_is_detected():
    found = names("code/shop/__init__.py", "code/shop/orders.py", "src/x/y.py", roots=["code", "src/x"])
    assert found["code/shop/orders.py"] == "shop.orders"
    assert found["src/x/y.py"] == "y"


def test_every_file_of_a_crowded_repository_has_a_name_of_its_own():
    paths = [
        "app.py", "app/__init__.py", "app/x.py", "a/tests/test_x.py", "b/tests/test_x.py",
        "a/pyproject.toml", "b/pyproject.toml", "tests/test_x.py", "a/setup.py", "b/setup.py", "setup.py",
        "ns/x.py", "other/ns/__init__.py", "other/ns/x.py", "other/setup.py", "app/x.pyi", "app/x/__init__.pyi",
        "services/app/__init__.py", "services/app/x.py",
    ]  # fmt: skip
    found = names(*paths)
    assert len(set(found.values())) == len(found)


def test_the_module_at_a_stem_is_what_python_would_load():
    layout = Layout(
        MemoryFacts({}, ["shop/__init__.py", "shop/a.py", "shop/a/__init__.py", "shop/b.pyi", "ns/x.py"])
    )
    assert layout.module_at("shop").path == "shop/__init__.py"
    assert layout.module_at("shop/a").path == "shop/a/__init__.py"
    assert layout.module_at("shop/b").path == "shop/b.pyi"
    assert layout.module_at("ns").path == "ns/"
    assert layout.module_at("shop/missing") is None


def test_a_folder_without_python_is_no_namespace_package():
    layout = Layout(MemoryFacts({}, ["docs/index.md", "shop/__init__.py"]))
    assert layout.module_at("docs") is None
