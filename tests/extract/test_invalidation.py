"""Random edits of a small repository: exactly the files whose answers changed are linked again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kb.extract.invalidation import changed_answers
from tests.extract.snapshots import Snapshot

PATHS = [
    "shop/__init__.py",
    "shop/orders.py",
    "shop/orders.pyi",
    "shop/orders/__init__.py",
    "shop/base.py",
    "shop/sub/__init__.py",
    "shop/sub/deep.py",
    "src/shop/__init__.py",
    "src/shop/orders.py",
    "src/ns/one/core.py",
    "lib/ns/two/core.py",
    "lib/setup.py",
    "other/shop/__init__.py",
    "other/orders.py",
    "services/a/app/__init__.py",
    "services/a/app/main.py",
    "services/b/app/__init__.py",
    "services/b/app/main.py",
    "services/b/requirements.txt",
    "shop/pyproject.toml",
    "pyproject.toml",
    "main.py",
    "collections.py",
]

PYTHON = [
    "",
    "class Order: ...\n",
    "class Order:\n    def pay(self): return 1\n",
    "from shop import Order\nclass Big(Order): ...\n",
    "from .orders import Order\nfrom .orders import *\n__all__ = ['Order']\n",
    "from .orders import *\nfrom .base import *\n",
    "from shop.base import Order as Base\nclass Order(Base): ...\n",
    "import shop.orders\nimport shop.sub.deep as deep\nclass Deep(deep.Order): ...\n",
    "from ..base import Order\nfrom . import deep\nfrom .. import orders\n",
    "import ns.one.core\nfrom ns.two.core import Order\nfrom ns.two import core\n",
    "from app.main import Order\nimport app\nfrom app import main, missing\n",
    "import collections, yaml\nfrom collections import OrderedDict\nx: int = 1\n",
    "try:\n    from shop.orders import Order\nexcept ImportError:\n    Order = None\n",
    "def __getattr__(name): ...\nimport importlib\nimportlib.import_module('shop.orders')\n",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shop.sub import deep\n__all__ = []\n",
    "# only a comment\nclass Order: ...\n",
]
OTHER = {
    "pyproject.toml": [
        "",
        "[project]\nname = 'shop'\ndependencies = ['pyyaml']\n[project.scripts]\nshop = 'shop.orders:Order'\n",
        (
            "[tool.importlinter]\nroot_packages = ['shop']\n[[tool.importlinter.contracts]]\nname = 'c'\n"
            "type = 'layers'\ncontainers = ['shop']\nlayers = ['sub', 'orders', 'base']\n"
        ),
    ],
    "requirements.txt": ["", "pyyaml\n"],
}
IDS = ["symbols", "imports", "surface", "architecture"]


@st.composite
def states(draw: st.DrawFn) -> dict[str, str]:
    paths = draw(st.lists(st.sampled_from(PATHS), min_size=3, max_size=14, unique=True))
    return {path: draw(st.sampled_from(OTHER.get(path.rpartition("/")[2], PYTHON))) for path in paths}


@st.composite
def edits(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str]]:
    before = draw(states())
    after = dict(before)
    for path in draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=3, unique=True)):
        if path in after and draw(st.booleans()):
            del after[path]
        else:
            after[path] = draw(st.sampled_from(OTHER.get(path.rpartition("/")[2], PYTHON)))
    return before, after


def contents(shown: Snapshot) -> dict[tuple[str, str], object]:
    """What each home holds: artifacts with their located groundings, and its look-ups with answers."""
    return {
        (linked.path, linked.extractor): (
            frozenset((one.artifact_id, frozenset(one.draft.groundings)) for one in linked.artifacts),
            frozenset((row.kind, row.key, row.answer) for row in linked.lookups),
        )
        for linked in shown.linked
    }


@settings(max_examples=120, deadline=None)
@given(edits())
def test_after_random_edits_exactly_the_homes_whose_answers_changed_are_linked_again(
    states: tuple[dict[str, str], dict[str, str]],
) -> None:
    before, after = states
    old, new = Snapshot(before, IDS), Snapshot(after, IDS)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    answers = {(row.kind, row.key): row.answer for row in changed_answers(changed, old.facts, new.facts)}
    again = {
        (path, extractor)
        for path, extractor, kind, key, answer in old.lookups()
        if path in after and path not in changed and answers.get((kind, key), answer) != answer
    }
    held, holds = contents(old), contents(new)
    different = {home for home in held.keys() & holds.keys() if held[home] != holds[home]}
    assert again == {home for home in different if home[0] not in changed}


@settings(max_examples=60, deadline=None)
@given(states())
def test_keys_are_unique_in_every_state(files: dict[str, str]) -> None:
    shown = Snapshot(files, IDS)
    keys = [
        (artifact.draft.kind, artifact.draft.logical_key)
        for linked in shown.linked
        for artifact in linked.artifacts
    ]
    assert len(set(keys)) == len(keys)
