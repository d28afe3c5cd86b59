import pytest

from kb.errors import GroundingError, UsageError
from kb.extract.api import FactOutput
from kb.extract.dependencies.extractor import DependenciesExtractor
from kb.extract.factstore import MemoryFacts
from kb.extract.invalidation import CHANGED, changed_answers
from kb.extract.linking import Linker
from kb.extract.registry import load_extractors, select_extractors
from kb.model.artifacts import ArtifactDraft, Grounding
from kb.structure.facts import Expr
from kb.structure.reader import read_blob
from tests.extract.snapshots import Snapshot


def read(dialect, text, *readers):
    return read_blob(text, text.encode(), dialect, readers)


class Tops:
    """A reader whose keys are the modules that a file imports."""

    id = "tops"
    version = 1
    dialects = frozenset({"python"})

    def facts(self, parse):
        keys = tuple(item.module for item in parse.module.imports)
        return FactOutput(Expr("tuple", ",".join(keys)), keys)


class Probe:
    """An extractor that asks what a test wants to know."""

    version = 1
    dialects = frozenset({"python"})

    def __init__(self, ask, at, name="probe"):
        self.id = name
        self.ask = ask
        self.at = at
        self.answer = None

    def facts(self, parse):
        return None

    def link(self, file, world):
        if file.path == self.at:
            self.answer = self.ask(world)
        return ()


def asked(files, at, ask):
    """(answer, look-ups) of a question asked while the file `at` is linked."""
    shown = Snapshot(files, ids=["symbols"])
    probe = Probe(ask, at)
    (linked,) = Linker([probe], shown.facts).link(at)
    return probe.answer, {(row.kind, row.key.replace("\x1f", " ")) for row in linked.lookups}


SHOP = {
    "shop/__init__.py": "from .orders import Order as Order\nfrom .billing import *\n",
    "shop/orders.py": """
        import collections
        from shop.base import Model
        import shop.base as base

        class Line(base.Model): ...

        class Order(Model):
            def total(self): ...
            def pay(self):
                return self.save()

        Alias = Order
        """,
    "shop/base.py": """
        from .kinds import *
        class Model(Kind):
            def save(self): ...
        """,
    "shop/kinds.py": "__all__ = ['Kind']\nclass Kind: ...\nclass Hidden: ...\n",
    "shop/billing.py": "class Invoice: ...\nclass _Secret: ...\n",
    "shop/collections.py": "",
    "app.py": """
        import shop
        import shop.billing
        from shop import Order, orders
        try:
            import fast as json
        except ImportError:
            import json
        class Own(Order): ...
        def run(shop):
            class Inner(Own): ...
        """,
}


def resolved(dotted, scope="", at="app.py", files=SHOP):
    found, _ = asked(files, at, lambda world: world.resolve(at, dotted, scope))
    return found.target, found.qualified, found.how


def test_a_name_is_followed_through_reexports_to_its_definition():
    assert resolved("Order") == ("internal", "shop.orders.Order", "exact")
    assert resolved("shop.Order.total") == ("internal", "shop.orders.Order.total", "exact")
    assert resolved("orders.Order") == ("internal", "shop.orders.Order", "exact")


def test_a_star_import_gives_what_all_or_the_underscore_rule_says():
    assert resolved("shop.Invoice") == ("internal", "shop.billing.Invoice", "exact")
    assert resolved("shop._Secret")[2] == "unresolved"
    assert resolved("Kind", at="shop/base.py") == ("internal", "shop.kinds.Kind", "exact")
    assert resolved("Hidden", at="shop/base.py") == ("unknown", "Hidden", "unresolved")


def test_submodules_are_attributes_of_their_package():
    assert resolved("shop.billing.Invoice") == ("internal", "shop.billing.Invoice", "exact")
    assert resolved("shop.base.Model.save") == ("internal", "shop.base.Model.save", "exact")


def test_a_parameter_hides_a_module():
    assert resolved("shop.Order", scope="run") == ("unknown", "shop.Order", "unresolved")


def test_names_of_enclosing_functions_are_seen():
    assert resolved("Inner", scope="run")[1] == "app.run.<locals>.Inner"


def test_builtins_and_unknown_names_are_told_apart():
    assert resolved("print") == ("stdlib", "builtins.print", "exact")
    assert resolved("nothing_of_this_name") == ("unknown", "nothing_of_this_name", "unresolved")


def test_a_binding_that_is_tried_comes_before_its_fallback():
    assert resolved("json.loads") == ("external", "fast.loads", "exact")


def test_a_local_module_does_not_hide_the_standard_library():
    assert resolved("collections.OrderedDict", at="shop/orders.py") == (
        "stdlib",
        "collections.OrderedDict",
        "exact",
    )


def test_self_is_the_class_and_members_are_inherited():
    assert resolved("self.save", scope="Order.pay", at="shop/orders.py") == (
        "internal",
        "shop.base.Model.save",
        "exact",
    )


def test_an_alias_is_followed_for_its_members():
    assert resolved("Alias.total", at="shop/orders.py")[1] == "shop.orders.Order.total"


def test_base_classes_are_walked_across_files():
    answer, _ = asked(
        SHOP, "app.py", lambda world: world.is_subclass("app.py", "Own", frozenset({"shop.kinds.Kind"}))
    )
    assert answer == "shop.kinds.Kind"
    answer, _ = asked(SHOP, "app.py", lambda world: world.is_subclass("app.py", "Own", frozenset({"other"})))
    assert answer is None


def test_a_name_by_which_a_class_is_known_counts_as_well_as_its_definition():
    files = {
        "lib/__init__.py": "from lib.core import Model\n",
        "lib/core.py": "class Model: ...\n",
        "app.py": "import lib\nclass Own(lib.Model): ...\n",
    }
    answer, _ = asked(
        files, "app.py", lambda world: world.is_subclass("app.py", "Own", frozenset({"lib.Model"}))
    )
    assert answer == "lib.Model"


def test_cycles_of_imports_and_bases_end():
    files = {
        "a.py": "from b import x\nfrom b import *\nclass A(A2): ...\nfrom b import B as A2\n",
        "b.py": "from a import x\nfrom a import *\nfrom a import A\nclass B(A): ...\n",
    }
    assert resolved("x", at="a.py", files=files)[2] == "unresolved"
    answer, _ = asked(files, "a.py", lambda world: world.is_subclass("a.py", "A", frozenset({"none"})))
    assert answer is None


def test_every_step_of_a_reexport_is_a_lookup():
    _, lookups = asked(SHOP, "app.py", lambda world: world.resolve("app.py", "Order"))
    assert lookups == {
        ("layout", "app.py"),
        ("module", "shop"),
        ("binding", "shop/__init__.py Order"),
        ("layout", "shop/__init__.py"),
        ("module", "shop/orders"),
        ("binding", "shop/orders.py Order"),
    }


def test_the_second_asker_records_the_same_lookups_as_the_first():
    shown = Snapshot(SHOP, ids=["symbols"])
    first, second = (
        Probe(lambda world: world.resolve("app.py", "Order.total"), "app.py", name) for name in "ab"
    )
    linked = Linker([first, second], shown.facts).link("app.py")
    rows = [{(row.kind, row.key, row.answer) for row in one.lookups} for one in linked]
    assert rows[0] == rows[1] != set()


def test_an_absent_answer_is_recorded_as_sixteen_zero_bytes():
    shown = Snapshot(SHOP, ids=["symbols"])
    (linked,) = Linker([Probe(lambda world: world.exists("nowhere.py"), "app.py")], shown.facts).link(
        "app.py"
    )
    assert [(row.kind, row.key, row.answer) for row in linked.lookups] == [
        ("exists", "nowhere.py", bytes(16))
    ]


def test_roots_of_another_project_in_the_repository_are_found():
    files = {
        "packages/one/pyproject.toml": "",
        "packages/one/src/one/__init__.py": "",
        "packages/one/src/one/core.py": "from two.core import Thing\n",
        "packages/two/pyproject.toml": "",
        "packages/two/src/two/__init__.py": "",
        "packages/two/src/two/core.py": "class Thing: ...\n",
    }
    assert resolved("Thing", at="packages/one/src/one/core.py", files=files) == (
        "internal",
        "two.core.Thing",
        "exact",
    )


def test_of_two_packages_of_one_name_the_importers_own_is_meant():
    files = {
        f"services/{name}/{path}": text
        for name in ("one", "two")
        for path, text in {
            "requirements.txt": "",
            "app/__init__.py": "",
            "app/main.py": "from app.thing import Thing\n",
            "app/thing.py": "class Thing: ...\n",
        }.items()
    }
    found, _ = asked(
        files, "services/two/app/main.py", lambda world: world.resolve("services/two/app/main.py", "Thing")
    )
    assert found.path == "services/two/app/thing.py"
    assert found.key == "symbol:services/two:app.thing.Thing"


def test_an_external_name_has_the_distribution_that_a_manifest_declares():
    manifest = "[project]\nname = 'x'\ndependencies = ['PyYAML>=6']\n"
    facts = MemoryFacts(
        {
            "app.py": read("python", "import yaml\n"),
            "pyproject.toml": read("pyproject", manifest, DependenciesExtractor()),
        }
    )
    probe = Probe(lambda world: (world.distribution("yaml"), world.distribution("requests")), "app.py")
    Linker([probe], facts).link("app.py")
    assert probe.answer == ("pyyaml", None)


# Linking ------------------------------------------------------------------------------------------------


class Yields(Probe):
    def __init__(self, make, name="yields"):
        super().__init__(None, None, name)
        self.make = make

    def link(self, file, world):
        return self.make(file)


def draft(key="k:1", groundings=(), text="text", body=None):
    return ArtifactDraft("k", key, "title", body or {}, text, tuple(groundings))


def link_one(make):
    shown = Snapshot({"m.py": "import os\n"}, ids=["symbols"])
    return Linker([Yields(make)], shown.facts).link("m.py")[0].artifacts


def test_a_draft_without_grounding_is_refused_by_extractor_and_file():
    with pytest.raises(GroundingError, match=r"'k:1' of extractor yields in m\.py stands on no span"):
        link_one(lambda file: [draft()])


def test_a_grounding_that_no_view_gave_is_refused():
    with pytest.raises(GroundingError, match="did not give"):
        link_one(lambda file: [draft(groundings=[Grounding("m.py", bytes(32), 0, "import")])])


def test_a_reference_outside_the_span_table_is_refused():
    with pytest.raises(GroundingError, match=r"span 99 of m\.py"):
        link_one(lambda file: [draft(groundings=[file.ground_module(99, "import")])])


def test_drafts_of_one_file_that_share_a_key_are_numbered():
    artifacts = link_one(lambda file: [draft(groundings=[file.ground_module(0, "r")]) for _ in range(3)])
    assert [artifact.draft.logical_key for artifact in artifacts] == ["k:1", "k:1~2", "k:1~3"]


def test_what_the_database_cannot_hold_is_replaced_everywhere():
    (artifact,) = link_one(
        lambda file: [
            draft(
                "k:\0",
                [file.ground_module(0, "r")],
                "a\ud800b",
                {"x\0": ["\udfff", {"y": "\0"}], "n": 1, "t": True, "z": None},
            )
        ]
    )
    assert artifact.draft.logical_key == "k:�"
    assert artifact.draft.text == "a�b"
    assert artifact.draft.body == {"x�": ["�", {"y": "�"}], "n": 1, "t": True, "z": None}


def test_extractors_have_one_id_each():
    with pytest.raises(UsageError, match="two extractors have the id 'twin'"):
        select_extractors([Probe(None, None, "twin"), Probe(None, None, "twin")])


def test_an_enabled_extractor_that_does_not_exist_is_named():
    with pytest.raises(UsageError, match="no extractor is called sybmols"):
        load_extractors(["sybmols"])


# Invalidation -------------------------------------------------------------------------------------------


def relinked(before, after):
    """Homes whose recorded look-ups have another answer, by the rule; changed files themselves left out."""
    old, new = Snapshot(before), Snapshot(after)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    answers = {(row.kind, row.key): row.answer for row in changed_answers(changed, old.facts, new.facts)}
    return {
        (path, extractor)
        for path, extractor, kind, key, answer in old.lookups()
        if path in after and path not in changed and answers.get((kind, key), answer) != answer
    }, changed


def truly_different(before, after):
    """Homes whose artifacts, groundings or look-ups a clean link makes otherwise: the oracle."""
    old, new = (
        {
            (one.path, one.extractor): (
                frozenset((a.artifact_id, frozenset(a.draft.groundings)) for a in one.artifacts),
                frozenset((row.kind, row.key, row.answer) for row in one.lookups),
            )
            for one in Snapshot(files).linked
        }
        for files in (before, after)
    )
    return {home for home in old.keys() & new.keys() if old[home] != new[home]}


EDITS = {
    "edit of a body": {
        "shop/billing.py": "class Invoice:\n    def pay(self): return 1\nclass _Secret: ...\n"
    },
    "a comment": {"shop/orders.py": "# note\n" + SHOP["shop/orders.py"]},
    "another re-export": {"shop/__init__.py": "from .base import Model as Order\n"},
    "a removed base": {"shop/base.py": "class Model:\n    def save(self): ...\n"},
    "a removed file": {"shop/billing.py": None},
    "a name that shadows": {"shop/base.py": SHOP["shop/base.py"] + "\nclass Kind: ...\n"},
    "a shorter list": {"shop/kinds.py": "__all__ = []\nclass Kind: ...\nclass Hidden: ...\n"},
    "a module beside": {"fast.py": ""},
    "a package that takes a module's place": {"shop/orders/__init__.py": "class Order: ...\n"},
    "an init that goes": {"shop/__init__.py": None},
    "an init above": {"more/shop/__init__.py": "", "more/shop/orders.py": ""},
    "a second root": {"lib/shop/__init__.py": "", "lib/setup.py": ""},
    "a stub": {"shop/orders.pyi": "class Order: ...\n"},
    "a package far away of a folder's name": {"far/shop/__init__.py": "", "src/shop/base.py": ""},
    "a declared root": {"shop/pyproject.toml": ""},
    "everything moves into src": {f"src/{path}": text for path, text in SHOP.items()} | dict.fromkeys(SHOP),
}


@pytest.mark.parametrize("name", EDITS)
def test_exactly_the_files_whose_answers_changed_are_linked_again(name):
    after = {path: text for path, text in (SHOP | EDITS[name]).items() if text is not None}
    for before, then in ((SHOP, after), (after, SHOP)):
        found, changed = relinked(before, then)
        expected = {home for home in truly_different(before, then) if home[0] not in changed}
        assert found == expected


def test_a_comment_changes_no_answer_but_the_facts_of_its_file():
    before, after = SHOP, SHOP | EDITS["a comment"]
    answers = changed_answers(["shop/orders.py"], Snapshot(before).facts, Snapshot(after).facts)
    assert answers == []


def test_inverse_lookups_change_with_the_rows_that_carry_the_key():
    def state(**sources):
        return MemoryFacts({f"{name}.py": read("python", text, Tops()) for name, text in sources.items()})

    before = state(a="import requests\n", b="import requests\n")
    after = state(a="import requests\n", b="import yaml\n")
    answers = changed_answers(["b.py"], before, after)
    assert {
        (row.kind, row.key.replace("\x1f", " "), row.answer == CHANGED)
        for row in answers
        if "tops" in row.key
    } == {
        ("fact", "b.py tops", False),
        ("inverse", "tops requests", True),
        ("inverse", "tops yaml", True),
        ("carried", "tops yaml", False),
    }
