import os
import re
import subprocess
import sys
import textwrap

import pytest

from kb.extract.architecture.graph import components
from tests.extract.snapshots import Snapshot

SHOP = {
    "pyproject.toml": """
        [project]
        name = "shop"
        version = "1"

        [project.scripts]
        shop = "shop.cli.main:run"
        broken = "shop.nowhere:run"

        [project.entry-points."shop.plugins"]
        pdf = "shop.core.pdf:Plugin"

        [tool.importlinter]
        root_packages = ["shop"]

        [[tool.importlinter.contracts]]
        name = "Imports run one way"
        type = "layers"
        containers = ["shop"]
        layers = ["cli", "core | store", "model"]

        [[tool.importlinter.contracts]]
        name = "Nobody but store speaks SQL"
        type = "forbidden"
        source_modules = ["shop.model"]
        forbidden_modules = ["shop.store"]

        [[tool.importlinter.contracts]]
        name = "Nobody speaks SQL"
        type = "forbidden"
        source_modules = ["shop"]
        forbidden_modules = ["sqlalchemy"]

        [[tool.importlinter.contracts]]
        name = "Parts"
        type = "independence"
        modules = ["shop.core", "shop.store"]
        ignore_imports = ["shop.core.* -> shop.store.**"]
        """,
    "shop/__init__.py": "from shop.core import work\n",
    "shop/__main__.py": "from shop.cli.main import run\nrun()\n",
    "shop/cli/__init__.py": "",
    "shop/cli/main.py": """
        from shop.core import work
        from shop.store.tables import Table

        def run() -> None: ...

        if __name__ == "__main__":
            run()
        """,
    "shop/core/__init__.py": "from shop.core.work import work\n",
    "shop/core/work.py": """
        from typing import TYPE_CHECKING
        import shop.model
        from shop.core import pdf
        from shop.store import tables
        if TYPE_CHECKING:
            from shop.cli import main
        """,
    "shop/core/pdf.py": "from shop.core import work\nclass Plugin: ...\n",
    "shop/store/__init__.py": "",
    "shop/store/tables.py": """
        from shop import model

        class Table:
            def late(self):
                from shop.core import work
        """,
    "shop/model/__init__.py": "",
    "tools/run.py": "import shop\nif __name__ == '__main__':\n    pass\n",
}


@pytest.fixture(scope="module")
def shop():
    return Snapshot(SHOP, ids=["architecture"])


def test_package_dependencies_stand_on_the_statements_that_make_them(shop):
    found = {
        key.removeprefix("package-dependency:"): shop.lines(key)
        for key in shop.artifacts(kind="package_dependency")
    }
    assert found == {
        "shop->shop.core": [("shop/__init__.py", 1, 1)],
        "shop->shop.cli": [("shop/__main__.py", 1, 1)],
        "shop.cli->shop.core": [("shop/cli/main.py", 1, 1)],
        "shop.cli->shop.store": [("shop/cli/main.py", 2, 2)],
        "shop.core->shop.cli": [("shop/core/work.py", 6, 6)],
        "shop.core->shop.model": [("shop/core/work.py", 2, 2)],
        "shop.core->shop.store": [("shop/core/work.py", 4, 4)],
        "shop.store->shop.model": [("shop/store/tables.py", 1, 1)],
        "shop.store->shop.core": [("shop/store/tables.py", 5, 5)],
    }
    assert shop.body("package-dependency:shop.core->shop.cli")["type_checking"] is True
    assert shop.body("package-dependency:shop.store->shop.core")["deferred"] is True


def test_packages_that_need_each_other_are_a_cycle(shop):
    (key,) = shop.artifacts(kind="package_cycle")
    assert shop.body(key) == {
        "members": ["shop.core", "shop.store"],
        "edges": [["shop.core", "shop.store"], ["shop.store", "shop.core"]],
    }
    assert shop.lines(key) == [("shop/core/work.py", 4, 4), ("shop/store/tables.py", 5, 5)]


def test_modules_that_import_each_other_while_loading_are_a_cycle(shop):
    (key,) = shop.artifacts(kind="import_cycle")
    assert shop.body(key)["members"] == ["shop.core.pdf", "shop.core.work"]


def test_layers_are_what_the_imports_make_them(shop):
    assert shop.body("layers:shop") == {
        "package": "shop",
        "layers": [["__main__"], ["cli"], ["core", "store"], ["model"]],
        "cyclic": [["core", "store"]],
    }


def test_a_contract_is_read_and_checked_against_direct_imports(shop):
    body = shop.body("contract:pyproject.toml:1")
    assert (body["name"], body["type"], body["checked"]) == ("Imports run one way", "layers", True)
    assert body["options"]["layers"] == ["cli", "core | store", "model"]
    assert body["broken_by"] == [
        ["shop.core.work", "shop.cli.main"],
        ["shop.core.work", "shop.store.tables"],
        ["shop.store.tables", "shop.core.work"],
    ]
    assert shop.lines("contract:pyproject.toml:1", "contract") == [("pyproject.toml", 16, 19)]
    assert shop.body("contract:pyproject.toml:2")["broken_by"] == []


def test_a_contract_about_other_distributions_is_not_said_to_hold(shop):
    assert shop.body("contract:pyproject.toml:2")["checked"] is True
    assert shop.body("contract:pyproject.toml:3")["checked"] is False


def test_imports_that_a_contract_ignores_do_not_break_it(shop):
    assert shop.body("contract:pyproject.toml:4")["broken_by"] == [["shop.store.tables", "shop.core.work"]]


def test_a_contract_of_an_ini_file_is_read():
    shown = Snapshot(
        {
            ".importlinter": """
            [importlinter]
            root_package = shop

            [importlinter:contract:parts]
            name = Parts do not know each other
            type = independence
            modules =
                shop.core
                shop.store
            """,
            **{path: text for path, text in SHOP.items() if path != "pyproject.toml"},
        },
        ids=["architecture"],
    )
    body = shown.body("contract:.importlinter:parts")
    assert body["name"] == "Parts do not know each other"
    assert body["broken_by"] == [
        ["shop.core.work", "shop.store.tables"],
        ["shop.store.tables", "shop.core.work"],
    ]
    assert shown.lines("contract:.importlinter:parts", "contract") == [(".importlinter", 4, 9)]


CHAINED = {
    ".importlinter": """
        [importlinter]
        root_packages =
            chain
        exclude_type_checking_imports = True

        [importlinter:contract:layers]
        name = layers
        type = layers
        layers =
            chain.top
            chain.low

        [importlinter:contract:barred]
        name = barred
        type = layers
        layers =
            chain.top
            chain.between
            chain.low
        ignore_imports =
            chain.low.* -> chain.between

        [importlinter:contract:forbidden]
        name = forbidden
        type = forbidden
        source_modules =
            chain.low
        forbidden_modules =
            chain.top.*

        [importlinter:contract:direct]
        name = direct
        type = forbidden
        source_modules =
            chain.low
        forbidden_modules =
            chain.top
        allow_indirect_imports = True

        [importlinter:contract:exact]
        name = exact
        type = forbidden
        source_modules =
            chain.low
        forbidden_modules =
            chain.top
        as_packages = False

        [importlinter:contract:independent]
        name = independent
        type = independence
        modules =
            chain.low
            chain.typed
            chain.top

        [importlinter:contract:apart]
        name = apart
        type = independence
        modules =
            chain.typed
            chain.top

        [importlinter:contract:exhaustive]
        name = exhaustive
        type = layers
        exhaustive = True
        exhaustive_ignores =
            typed
        containers =
            chain
        layers =
            between : low
            (none) | top

        [importlinter:contract:all]
        name = all
        type = layers
        exhaustive = True
        containers =
            chain
        layers =
            between : low
            top
        """,
    "chain/__init__.py": "",
    "chain/top/__init__.py": "",
    "chain/top/roof.py": "",
    "chain/between.py": "from chain.top import roof\n",
    "chain/low/__init__.py": "",
    "chain/low/floor.py": "def f():\n    import chain.between\n",
    "chain/typed.py": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from chain.top import roof
        """,
}


def test_a_contract_is_kept_or_broken_as_import_linter_says(tmp_path):
    for path, text in CHAINED.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(textwrap.dedent(text))
    ended = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as f; f()", "--no-cache"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = re.findall(r"^(\w+) (KEPT|BROKEN)", re.sub(r"\x1b\[[\d;]*m", "", ended.stdout), re.MULTILINE)
    assert len(said) == 9, ended.stdout + ended.stderr
    found = Snapshot(CHAINED, ids=["architecture"]).artifacts(kind="architecture_contract")
    kept = {artifact.draft.body["name"]: artifact.draft.body["kept"] for artifact in found.values()}
    assert kept == {name: word == "KEPT" for name, word in said}


def test_a_chain_that_breaks_a_contract_is_named_with_its_statements():
    shown = Snapshot(CHAINED, ids=["architecture"])
    body = shown.body("contract:.importlinter:layers")
    assert (body["broken_by"], body["broken_through"]) == (
        [],
        [["chain.low.floor", "chain.between", "chain.top.roof"]],
    )
    assert shown.lines("contract:.importlinter:layers", "violation") == [
        ("chain/low/floor.py", 2, 2),
        ("chain/between.py", 1, 1),
    ]
    assert shown.body("contract:.importlinter:all")["undeclared"] == ["chain.typed"]


def test_a_contract_of_very_many_parts_is_not_said_to_hold():
    files = {
        ".importlinter": """
            [importlinter]
            root_package = many

            [importlinter:contract:a]
            name = a
            type = independence
            modules =
                many.*
            """,
        "many/__init__.py": "",
        **{f"many/m{number}.py": "" for number in range(501)},
    }
    draft = Snapshot(files, ids=["architecture"]).artifacts()["contract:.importlinter:a"].draft
    assert draft.body["checked"] is False
    assert draft.text.endswith("Not checked: it has more than 500 parts.")


def test_entry_points_are_joined_to_what_they_start(shop):
    assert shop.body("entry-point:console_scripts:shop") == {
        "group": "console_scripts",
        "name": "shop",
        "target": "shop.cli.main:run",
        "resolution": "exact",
        "definition": "shop.cli.main.run",
    }
    assert shop.lines("entry-point:console_scripts:shop") == [
        ("pyproject.toml", 6, 6),
        ("shop/cli/main.py", 4, 4),
    ]
    assert shop.body("entry-point:console_scripts:broken")["resolution"] == "unresolved"
    assert shop.body("entry-point:shop.plugins:pdf")["definition"] == "shop.core.pdf.Plugin"


def test_modules_that_can_be_run_are_entry_points(shop):
    runnable = {key for key in shop.artifacts(kind="entry_point") if ":module:" in key}
    assert runnable == {
        "entry-point:module:shop.__main__",
        "entry-point:module:shop.cli.main",
        "entry-point:module:tools.run",
    }
    assert shop.lines("entry-point:module:shop.cli.main") == [("shop/cli/main.py", 6, 7)]


def test_an_edit_that_changes_no_import_renews_nothing():
    tables = SHOP["shop/store/tables.py"].replace(
        "class Table:", "import os\n        class Table:\n            x = 1\n"
    )
    edited = SHOP | {"shop/store/tables.py": tables}
    assert Snapshot(SHOP, ids=["architecture"]).ids_of() == Snapshot(edited, ids=["architecture"]).ids_of()


def test_components_come_after_those_that_they_lead_to():
    found = list(components({"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": []}))
    assert [sorted(group) for group in found] == [["d"], ["b", "c"], ["a"]]


def test_one_command_that_several_manifests_declare_has_a_key_for_each():
    manifest = "[project]\nname = 'x'\nversion = '1'\n[project.scripts]\nrun = 'm:run'\n"
    shown = Snapshot({"pyproject.toml": manifest, "sub/pyproject.toml": manifest}, ids=["architecture"])
    assert set(shown.artifacts()) == {
        "entry-point:console_scripts:run",
        "entry-point:sub/pyproject.toml:console_scripts:run",
    }


def test_modules_in_plain_folders_of_a_package_belong_to_its_tree():
    found = Snapshot(
        {
            "shop/__init__.py": "",
            "shop/core/__init__.py": "",
            "shop/core/work.py": "from shop.ui import panel\n",
            "shop/ui/panel.py": "import shop.core.work\nfrom shop.ui.parts.source import box\n",
            "shop/ui/parts/__init__.py": "",
            "shop/ui/parts/source/box.py": "import shop.core\n",
            "shop/plain/inner/__init__.py": "import shop.core\n",
            "shop/tests/fixtures/app/__init__.py": "import shop.core\n",
        },
        ["architecture"],
    )
    assert sorted(found.artifacts("package_dependency")) == [
        "package-dependency:app->shop.core",
        "package-dependency:shop.core->shop.ui",
        "package-dependency:shop.plain.inner->shop.core",
        "package-dependency:shop.ui->shop.core",
        "package-dependency:shop.ui->shop.ui.parts.source",
        "package-dependency:shop.ui.parts.source->shop.core",
    ]
    assert found.body("package-cycle:shop.core")["members"] == ["shop.core", "shop.ui"]


def test_layers_hold_what_packages_in_a_plain_folder_import():
    found = Snapshot(
        {
            "shop/__init__.py": "",
            "shop/core/__init__.py": "",
            "shop/plain/inner/__init__.py": "import shop.core\n",
        },
        ["architecture"],
    )
    assert sorted(found.artifacts("layers")) == ["layers:shop"]
    assert found.body("layers:shop")["layers"] == [["plain"], ["core"]]


def test_an_entry_point_that_is_a_method_is_joined_to_the_method():
    files = {
        "pyproject.toml": """
            [project]
            name = "plug"
            [project.entry-points."plug.parts"]
            own = "plug.one:Part.make [fast]"
            inherited = "plug.one:Part.load"
            outside = "plug.one:Part.begin"
        """,
        "plug/__init__.py": "",
        "plug/base.py": "class Base:\n    def load(self): ...\n",
        "plug/one.py": """
            from click import Command
            from plug.base import Base

            class Part(Base, Command):
                @classmethod
                def make(cls): ...
        """,
    }
    shown = Snapshot(files, ids=["architecture"])
    said = {
        name: (body["definition"], body["resolution"])
        for name in ("own", "inherited", "outside")
        for body in [shown.body(f"entry-point:plug.parts:{name}")]
    }
    assert said == {
        "own": ("plug.one.Part.make", "exact"),
        "inherited": ("plug.base.Base.load", "exact"),
        "outside": ("click.Command.begin", "approximate"),
    }
    assert ("plug/one.py", 5, 6) in shown.lines("entry-point:plug.parts:own")
