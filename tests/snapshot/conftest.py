"""A small shop in a real repository, and the parts to index it with."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts

ORDERS = '''"""Orders of the shop."""

import os
from shop.billing import charge


class Order:
    """What a customer wants."""

    limit = 10

    def total(self) -> int:
        """Sum of the lines."""
        return sum(line.price for line in self.lines)

    def pay(self) -> None:
        charge(self.total())


async def close(order: Order) -> None:
    """Ends an order."""
    os.remove(order.path)
'''

BILLING = '''"""Money."""

import os


def charge(amount: int) -> bool:
    """Takes the money."""
    return amount > 0 and "CARD" in os.environ
'''


@pytest.fixture
def parts(database: Database, tmp_path: Path) -> TestParts:
    """A database of its own and a data home."""
    home = tmp_path / "kb-home"
    home.mkdir()
    return TestParts(database, home)


@pytest.fixture
def shop(tmp_path: Path) -> GitRepo:
    """Two modules, a package file, a readme; one commit."""
    repo = GitRepo(tmp_path / "shop-repo")
    repo.write("shop/__init__.py").write("shop/orders.py", ORDERS).write("shop/billing.py", BILLING)
    return repo.write("README.md", "# Shop\n").commit("first")
