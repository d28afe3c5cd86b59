"""Gate: a snapshot made from a difference is the one that a clean rebuild makes, whatever the route."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kb.store.database import Database
from tests.databases import fresh_database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index, state_of

FILES = {
    "shop/__init__.py": "from shop.orders import Order\n\n__all__ = ['Order', 'charge']\nfrom .billing import charge\n",
    "shop/base.py": "class Entity:\n    id: int\n\n    def save(self) -> None:\n        pass\n",
    "shop/orders.py": (
        "import os\nfrom shop.base import Entity\nfrom shop.billing import charge\n\n\n"
        "class Order(Entity):\n    total: int = 0\n\n    def pay(self) -> bool:\n        return charge(self.total)\n\n\n"
        "class Line:\n    price: int\n\n    def cost(self) -> int:\n        return self.price\n"
    ),
    "shop/billing.py": "import os\n\n\ndef charge(amount: int) -> bool:\n    return amount > 0\n",
    "shop/api.py": (
        "from fastapi import APIRouter\nfrom pydantic import BaseModel\nfrom shop import Order\n\n"
        "router = APIRouter(prefix='/orders')\n\n\nclass OrderIn(BaseModel):\n    total: int\n\n\n"
        "@router.post('/{order_id}', response_model=OrderIn)\ndef pay(order_id: int, body: OrderIn) -> OrderIn:\n"
        "    return body\n"
    ),
    "shop/main.py": (
        "from fastapi import FastAPI\nfrom shop.api import router\n\napp = FastAPI()\n"
        "app.include_router(router, prefix='/v1')\n"
    ),
    "tools/run.py": "from shop import *\nimport shop.billing as money\n\nprint(money.charge(1))\n",
    "pyproject.toml": "[project]\nname = 'shop'\nversion = '1'\ndependencies = ['fastapi', 'pydantic', 'unused']\n",
    "README.md": "# Shop\n\nSells.\n",
}


def replace(name: str, old: str, new: str) -> Callable[[GitRepo], object]:
    def edit(repo: GitRepo) -> object:
        text = repo.path(name).read_text()
        assert old in text
        return repo.write(name, text.replace(old, new))

    return edit


def both(*edits: Callable[[GitRepo], object]) -> Callable[[GitRepo], object]:
    def edit(repo: GitRepo) -> None:
        for one in edits:
            one(repo)

    return edit


EDITS: dict[str, Callable[[GitRepo], object]] = {
    "edit": replace("shop/billing.py", "amount > 0", "amount > 1"),
    "signature": replace("shop/billing.py", "amount: int", "amount: float"),
    "comment on top": replace("shop/orders.py", "import os", "# new\nimport os"),
    "add": lambda repo: repo.write(
        "shop/extra.py", "from shop.orders import Line\n\n\nclass More(Line):\n    pass\n"
    ),
    "delete": lambda repo: repo.delete("shop/billing.py"),
    "rename": lambda repo: repo.move("shop/billing.py", "shop/money.py"),
    "move between packages": lambda repo: repo.write("store/__init__.py").move(
        "shop/base.py", "store/base.py"
    ),
    "changed re-export": replace(
        "shop/__init__.py", "from shop.orders import Order", "from shop.orders import Line as Order"
    ),
    "added name that shadows": lambda repo: repo.write("shop/orders/__init__.py", "class Order:\n    pass\n"),
    "added module that shadows a distribution": lambda repo: repo.write(
        "fastapi/__init__.py", "class APIRouter:\n    pass\n"
    ),
    "removed base class": replace("shop/orders.py", "class Order(Entity):", "class Order:"),
    "removed definition of a base class": replace("shop/base.py", "class Entity:", "class Other:"),
    "changed include_router prefix": replace("shop/main.py", "/v1", "/v2"),
    "moved method between classes": both(
        replace("shop/orders.py", "\n    def cost(self) -> int:\n        return self.price\n", "\n"),
        replace("shop/base.py", "pass\n", "pass\n\n    def cost(self) -> int:\n        return self.price\n"),
    ),
    "changed dependency file": replace("pyproject.toml", "'unused'", "'requests'"),
    "new root": lambda repo: repo.move("shop", "src/shop"),
    "mode only": lambda repo: repo.path("shop/billing.py").chmod(0o755),
    "twin import above": replace(
        "shop/orders.py", "import os\n", "def early():\n    import os\n\n\nimport os\n"
    ),
    "broken": replace("shop/orders.py", "class Order(Entity):", "class Order(Entity:"),
    "package becomes a namespace": lambda repo: repo.delete("shop/__init__.py"),
    "nothing": lambda _: None,
}


@pytest.fixture
def parts(database: Database, tmp_path: Path) -> TestParts:
    return TestParts(database, tmp_path / "home")


@pytest.fixture
def clean(second_database: Database, tmp_path: Path) -> TestParts:
    return TestParts(second_database, tmp_path / "clean-home")


@pytest.fixture
def shop(tmp_path: Path) -> GitRepo:
    return started(tmp_path / "repo")


def started(folder: Path) -> GitRepo:
    repo = GitRepo(folder)
    for name, text in FILES.items():
        repo.write(name, text)
    # Enough bystanders that a small change is never "a quarter of the files".
    for number in range(60):
        repo.write(
            f"shop/parts/part{number}.py",
            f"from shop.base import Entity\n\n\nclass Part{number}(Entity):\n    pass\n",
        )
    return repo.write("shop/parts/__init__.py").commit("start")


def same(parts: TestParts, clean: TestParts, repo: GitRepo, commitish: str = "HEAD") -> bool:
    """Indexes on top of what is there and from nothing; whether the first was a difference."""
    report = index(parts, repo, commitish)
    rebuilt = index(clean, repo, commitish, full=True)
    assert not rebuilt.incremental
    extended, built = state_of(parts.database, report.sha), state_of(clean.database, report.sha)
    assert extended - built == frozenset()
    assert built - extended == frozenset()
    assert (report.files, report.parsed, report.gap_files, report.no_language, report.excluded) == (
        rebuilt.files,
        rebuilt.parsed,
        rebuilt.gap_files,
        rebuilt.no_language,
        rebuilt.excluded,
    )
    assert (report.spans, report.artifacts, report.gaps) == (rebuilt.spans, rebuilt.artifacts, rebuilt.gaps)
    return report.incremental


@pytest.mark.gate("incremental.equals-clean")
@pytest.mark.parametrize("name", EDITS)
def test_one_edit_and_its_revert(parts: TestParts, clean: TestParts, shop: GitRepo, name: str) -> None:
    index(parts, shop)
    EDITS[name](shop)
    shop.commit(name)
    incremental = same(parts, clean, shop)
    assert incremental or name in {"new root", "package becomes a namespace"}
    shop.git("read-tree", "--reset", "-u", "HEAD~1")
    shop.commit("revert")
    same(parts, clean, shop)


@pytest.mark.gate("incremental.equals-clean")
def test_merges_older_commits_and_force_pushes(parts: TestParts, clean: TestParts, shop: GitRepo) -> None:
    start = shop.sha()
    index(parts, shop)
    shop.checkout("side", new=True)
    EDITS["changed re-export"](shop)
    shop.commit("side")
    side = shop.sha()
    shop.checkout("main")
    EDITS["changed include_router prefix"](shop)
    shop.commit("main")
    shop.merge("side")
    assert same(parts, clean, shop)
    assert same(parts, clean, shop, side)
    assert same(parts, clean, shop, "HEAD~1")
    shop.reset(start)
    EDITS["removed base class"](shop)
    shop.commit("rewritten")
    shop.git("reflog", "expire", "--expire=now", "--all")
    shop.git("branch", "-D", "side")
    shop.git("gc", "-q", "--prune=now")
    assert same(parts, clean, shop)


@pytest.mark.gate("incremental.equals-clean")
def test_an_orphan_branch_starts_from_what_is_there(
    parts: TestParts, clean: TestParts, shop: GitRepo
) -> None:
    index(parts, shop)
    shop.checkout("orphan", orphan=True)
    shop.write("alone.py", "def alone():\n    pass\n").commit("orphan")
    same(parts, clean, shop)
    shop.checkout("main")
    EDITS["edit"](shop)
    shop.commit("on")
    same(parts, clean, shop)


@pytest.mark.gate("incremental.equals-clean")
def test_what_lies_between_stays_exact(parts: TestParts, clean: TestParts, shop: GitRepo) -> None:
    shas = [shop.sha()]
    index(parts, shop)
    for name in ("edit", "rename", "changed re-export", "moved method between classes", "add"):
        EDITS[name](shop)
        shas.append(shop.commit(name).sha())
        index(parts, shop)
    for sha in shas:
        rebuilt = index(clean, shop, sha, full=True)
        assert state_of(parts.database, sha) == state_of(clean.database, rebuilt.sha)


EXAMPLES = int(os.environ.get("KB_TEST_EXAMPLES", "8"))
"""More of them are chosen anew in each run, until one fails."""
WORDS = st.sampled_from(["Order", "Entity", "charge", "Line", "router", "extra"])
NAMES = st.sampled_from(["base", "orders", "billing", "extra"])
MODULES = st.sampled_from(
    ["shop/base.py", "shop/orders.py", "shop/billing.py", "shop/extra.py", "lib/extra.py", "top.py"]
)
LINES = st.one_of(
    st.builds("class {}:\n    pass".format, WORDS),
    st.builds("class {}({}):\n    x: int = 1".format, WORDS, WORDS),
    st.builds("def {}(a=1):\n    return a".format, WORDS),
    st.builds(
        "from shop.{} import {}".format, st.sampled_from(["base", "orders", "billing", "extra"]), WORDS
    ),
    st.builds("from .{} import {} as {}".format, st.sampled_from(["base", "orders", "extra"]), WORDS, WORDS),
    st.builds("from shop.{} import *".format, st.sampled_from(["base", "orders", "extra"])),
    st.builds("import shop.{}".format, st.sampled_from(["base", "orders", "extra"])),
    st.builds("{} = 3".format, WORDS),
    st.builds("__all__ = ['{}', '{}']".format, WORDS, WORDS),
    st.builds("@router.get('/{}')\ndef handler(q: int) -> None: ...".format, WORDS),
    st.builds(
        "from flask import Flask\napp = Flask(__name__)\n\n@app.get('/{}')\ndef view(): ...".format, WORDS
    ),
    st.builds("from shop.{0} import router\napp.include_router(router, prefix='/{1}')".format, NAMES, WORDS),
    st.builds(
        "from pydantic import BaseModel\n\nclass {}(BaseModel):\n    other: '{} | None' = None".format,
        WORDS,
        WORDS,
    ),
    st.builds(
        "from sqlalchemy.orm import DeclarativeBase, Mapped, relationship\n\nclass Base(DeclarativeBase): ...\n\n"
        "class {}(Base):\n    __tablename__ = '{}'\n    other: Mapped['{}'] = relationship()".format,
        WORDS,
        WORDS,
        WORDS,
    ),
    st.builds(
        "from dataclasses import dataclass\n\n@dataclass\nclass {}({}):\n    y: int = 2".format, WORDS, WORDS
    ),
    st.builds("import os\nKEY = os.environ.get('{}', '{}')".format, WORDS, WORDS),
    st.builds("from celery import shared_task\n\n@shared_task\ndef {}(): ...".format, WORDS),
    st.builds("from shop.{} import {}\n{}.delay()".format, NAMES, WORDS, WORDS),
    st.builds("from django.dispatch import Signal\n{} = Signal()".format, WORDS),
    st.builds(
        "from django.dispatch import receiver\nfrom shop.{} import {}\n\n@receiver({})\ndef on(**_): ...".format,
        NAMES,
        WORDS,
        WORDS,
    ),
    st.builds("from shop.{} import {}\n{}.send(sender=None)".format, NAMES, WORDS, WORDS),
    st.builds("# a comment on {}".format, WORDS),
)
SOURCES = st.lists(LINES, max_size=5).map("\n\n".join)
OTHERS = st.sampled_from(
    [
        ("pyproject.toml", "[project]\nname = 'shop'\ndependencies = ['flask', 'celery']\n"),
        ("pyproject.toml", "[project]\nname = 'lib'\n[project.scripts]\nshop = 'shop.orders:charge'\n"),
        ("requirements.txt", "fastapi>=0.1\nos-thing==2\n"),
        ("lib/requirements.txt", "celery\n"),
        ("README.md", "# Shop\n\n## Orders\n\nSee `shop.orders.Order`.\n"),
        ("docs/extra.md", "# Shop\n\n## Orders\n\nSee `shop.orders.Order`.\n"),
        (".env.example", "Order=1\nEntity=2\n"),
        ("shop/base.pyi", "class Entity: ...\n"),
    ]
)


@pytest.fixture(scope="session")
def machine_databases(server_url: str, template: str) -> Callable[[], Iterator[Database]]:
    return lambda: fresh_database(server_url, template)


@pytest.mark.gate("incremental.equals-clean")
def test_random_sequences_of_edits(machine_databases: Callable[[], Iterator[Database]]) -> None:
    class Machine(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            self.scratch = TemporaryDirectory()
            self.fresh = [machine_databases(), machine_databases()]
            home = Path(self.scratch.name)
            self.parts = TestParts(next(self.fresh[0]), home / "one")
            self.clean = TestParts(next(self.fresh[1]), home / "two")
            self.repo = started(home / "repo")
            self.started = True
            index(self.parts, self.repo)

        @rule(name=MODULES, source=SOURCES)
        def write(self, name: str, source: str) -> None:
            self.repo.write(name, source + "\n")

        @rule(other=OTHERS)
        @precondition(lambda self: hasattr(self, "started"))
        def write_other(self, other: tuple[str, str]) -> None:
            name, text = other
            if self.repo.path(name).exists() and self.repo.path(name).read_text() == text:
                self.repo.delete(name)
            else:
                self.repo.write(name, text)

        @rule(name=MODULES)
        @precondition(lambda self: hasattr(self, "started"))
        def delete(self, name: str) -> None:
            if self.repo.path(name).exists():
                self.repo.delete(name)

        @rule(old=MODULES, new=MODULES)
        @precondition(lambda self: hasattr(self, "started"))
        def move(self, old: str, new: str) -> None:
            if self.repo.path(old).exists() and old != new:
                self.repo.move(old, new)

        @rule(name=st.sampled_from(sorted(EDITS)))
        @precondition(lambda self: hasattr(self, "started"))
        def edit(self, name: str) -> None:
            try:
                EDITS[name](self.repo)
            except (AssertionError, OSError):
                return  # the place that this edit wants is gone: the next one will do

        @rule()
        @precondition(lambda self: hasattr(self, "started"))
        def commit(self) -> None:
            self.repo.commit()
            same(self.parts, self.clean, self.repo)

        def teardown(self) -> None:
            if hasattr(self, "started"):
                self.repo.commit()
                same(self.parts, self.clean, self.repo)
                for database in self.fresh:
                    next(database, None)
                self.scratch.cleanup()

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=10,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize="KB_TEST_EXAMPLES" not in os.environ,
            print_blob=True,
        ),
    )
