"""Gate: after a commit exactly those homes are linked whose facts or look-ups changed, each once.

What is expected is written by hand, edit by edit, for the extractors whose look-ups are documented; for
all of them together the number of homes is compared with what a linker of the test's own counted, and
the outcome with a clean rebuild.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kb.extract.linking import Linker
from kb.model.artifacts import LinkedFile
from kb.snapshot import extend
from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index, state_of
from tests.snapshot.test_versions import bumped, by_extractor

pytestmark = pytest.mark.gate("invalidation.exact")

Home = tuple[str, str]
"""path, extractor"""

FILES = {
    "shop/__init__.py": "from shop.orders import Order\n",
    "shop/base.py": "class Entity:\n    id: int\n\n    def save(self) -> None:\n        pass\n",
    "shop/orders.py": (
        "from shop.base import Entity\nfrom shop.billing import charge\n\n\n"
        "class Order(Entity):\n    def pay(self) -> bool:\n        return charge(1)\n"
    ),
    "shop/billing.py": (
        "import os\n\nRATE = 2\n\n\ndef charge(amount: int) -> bool:\n    return amount > 0\n\n\n"
        "def refund(amount: int) -> bool:\n    return os.sep == str(amount)\n"
    ),
    "tools/run.py": "import shop\nfrom shop import Order\n\nORDER = Order()\n",
    "alone.py": "def alone(x: int) -> int:\n    return x\n",
    "README.md": "# Shop\n\nSells things.\n\n## Orders\n\nThey are paid.\n",
    "pyproject.toml": "[project]\nname = 'shop'\nversion = '1'\ndependencies = ['requests']\n",
}
WATCHED = ("symbols", "imports", "passages")
"""Extractors for which every expectation is written out. Symbols and passages ask about no other file but
for names of modules; imports ask where each imported name leads."""


def replace(name: str, old: str, new: str) -> Callable[[GitRepo], object]:
    def edit(repo: GitRepo) -> object:
        text = repo.path(name).read_text()
        assert text.count(old) >= 1
        return repo.write(name, text.replace(old, new, 1))

    return edit


def homes(*paths: str, by: tuple[str, ...] = WATCHED) -> set[Home]:
    return {(path, extractor) for path in paths for extractor in by}


EDITS: dict[str, tuple[Callable[[GitRepo], object], set[Home]]] = {
    # Nothing that any extractor reads is different.
    "comment": (replace("shop/billing.py", "import os", "# money\nimport os"), set()),
    "layout": (replace("shop/billing.py", "amount > 0", "(\n        amount > 0\n    )"), set()),
    "mode": (lambda repo: repo.path("shop/billing.py").chmod(0o755), set()),
    "nothing": (lambda _: None, set()),
    # The file itself says something else; who imports `charge` learns that it is still a function there.
    "body": (replace("shop/billing.py", "amount > 0", "amount > 1"), homes("shop/billing.py")),
    "signature": (
        replace("shop/billing.py", "charge(amount: int)", "charge(amount: float)"),
        homes("shop/billing.py"),
    ),
    "new name that nobody asked for": (
        replace("shop/billing.py", "RATE = 2", "RATE = 2\nOTHER = 3"),
        homes("shop/billing.py"),
    ),
    "leaf": (replace("alone.py", "return x", "return x + 1"), homes("alone.py")),
    # `charge` is a function no more, but a value: that is part of where the import leads.
    "kind of an imported name": (
        replace(
            "shop/billing.py", "def charge(amount: int) -> bool:\n    return amount > 0\n", "charge = RATE\n"
        ),
        homes("shop/billing.py") | {("shop/orders.py", "imports")},
    ),
    "imported name is gone": (
        replace("shop/billing.py", "def charge(", "def take("),
        homes("shop/billing.py") | {("shop/orders.py", "imports")},
    ),
    # The re-export leads elsewhere: the package itself, and who imports through it.
    "re-export": (
        replace("shop/__init__.py", "from shop.orders import Order", "from shop.base import Entity as Order"),
        homes("shop/__init__.py") | {("tools/run.py", "imports")},
    ),
    # A class that others derive from changes inside: their imports of it lead where they led.
    "base class inside": (
        replace("shop/base.py", "    def save(self)", "    def store(self)"),
        homes("shop/base.py"),
    ),
    # A new module that nobody imports; listing its folder is what nobody here asked.
    "new module": (lambda repo: repo.write("shop/extra.py", "x = 1\n"), homes("shop/extra.py")),
    "deleted leaf": (lambda repo: repo.delete("alone.py"), set()),
    # The module that two names were taken from is gone.
    "deleted module": (
        lambda repo: repo.delete("shop/billing.py"),
        {("shop/orders.py", "imports")},
    ),
    "renamed module": (
        lambda repo: repo.move("shop/billing.py", "shop/money.py"),
        homes("shop/money.py") | {("shop/orders.py", "imports")},
    ),
    # Prose has passages only.
    "prose": (replace("README.md", "They are paid.", "They are paid at once."), {("README.md", "passages")}),
}


class Counting:
    """What was linked, and how often."""

    def __init__(self) -> None:
        self.linked: list[Home] = []


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counted = Counting()

    class Instrumented(Linker):
        def link(self, path: str, only: frozenset[str] | None = None) -> list[LinkedFile]:
            made = super().link(path, only)
            counted.linked += [(one.path, one.extractor) for one in made]
            return made

    monkeypatch.setattr(extend, "Linker", Instrumented)
    return counted


@pytest.fixture
def shop(tmp_path: Path) -> GitRepo:
    repo = GitRepo(tmp_path / "repo")
    for name, text in FILES.items():
        repo.write(name, text)
    for number in range(30):
        repo.write(f"notes/{number}.bin", str(number))
    return repo.commit("start")


@pytest.mark.parametrize("name", EDITS)
def test_exactly_these_homes_are_linked(
    database: Database,
    second_database: Database,
    shop: GitRepo,
    counting: Counting,
    tmp_path: Path,
    name: str,
) -> None:
    parts, clean = TestParts(database, tmp_path / "home"), TestParts(second_database, tmp_path / "clean")
    index(parts, shop)
    edit, expected = EDITS[name]
    edit(shop)
    shop.commit(name)
    report = index(parts, shop)
    assert report.incremental
    assert {home for home in counting.linked if home[1] in WATCHED} == expected
    assert len(counting.linked) == len(set(counting.linked)) == report.linked_homes
    assert len({path for path, _ in counting.linked}) == report.linked_files
    rebuilt = index(clean, shop, full=True)
    assert state_of(database, report.sha) == state_of(second_database, rebuilt.sha)
    if not expected:
        assert {path for path, _ in counting.linked} <= _asking(name)


def _asking(name: str) -> set[str]:
    """Files whose other extractors may have asked about what such an edit changes."""
    return set(FILES) if name == "deleted leaf" else set()


def lookups(database: Database) -> set[tuple[object, ...]]:
    with database.reader() as connection:
        return set(
            connection.execute(
                """SELECT path, extractor, kind, key, answer FROM lookup JOIN path USING (path_id)
                   JOIN lineage l USING (lineage_id)
                   WHERE lineage_id = (SELECT max(lineage_id) FROM lineage)"""
            ).fetchall()
        )


@pytest.mark.parametrize(
    "name", ["imported name is gone", "re-export", "base class inside", "renamed module"]
)
def test_who_is_linked_is_who_changed_or_whose_recorded_answers_did(
    database: Database,
    second_database: Database,
    shop: GitRepo,
    counting: Counting,
    tmp_path: Path,
    name: str,
) -> None:
    """For all extractors: compared with the look-ups that two clean links recorded, before and after."""
    parts, clean = TestParts(database, tmp_path / "home"), TestParts(second_database, tmp_path / "clean")
    index(parts, shop)
    before, blobs = lookups(database), _blobs(shop)
    EDITS[name][0](shop)
    shop.commit(name)
    index(parts, shop)
    index(clean, shop, full=True)
    after = lookups(second_database)
    # What an extractor asks next depends on earlier answers: so who has another record is to be linked.
    wanted = {(row[0], row[1]) for row in before ^ after}
    touched = {path for path, oid in _blobs(shop).items() if blobs.get(path) != oid}
    present = set(_blobs(shop))
    linked = set(counting.linked)
    assert {home for home in linked if home[0] not in touched} == {
        home for home in wanted if home[0] not in touched and home[0] in present
    }
    assert lookups(database) == after


def _blobs(repo: GitRepo) -> dict[str, str]:
    rows = [line.split(maxsplit=3) for line in repo.git("ls-tree", "-r", "HEAD").splitlines()]
    return {path: oid for _, _, oid, path in rows}


@pytest.mark.parametrize("name", ["passages", "surface"])
def test_an_extractors_new_version_renews_its_artifacts_and_no_others(
    database: Database, shop: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    parts = TestParts(database, tmp_path / "home")
    index(parts, shop)
    before = by_extractor(parts, shop.sha())
    bumped(monkeypatch, name)
    index(parts, shop)
    after = by_extractor(parts, shop.sha())
    assert len(after[name]) == len(before[name]) > 0
    assert after[name].isdisjoint(before[name])
    others = before.keys() - {name}
    assert {other: after[other] for other in others} == {other: before[other] for other in others}
