"""A small web shop with a history, for everything that is served about it."""

from __future__ import annotations

from tests.gitrepo import GitRepo

MODELS = '''"""What the shop sells."""

from dataclasses import dataclass
from enum import Enum

from pydantic import BaseModel


class Status(Enum):
    OPEN = "open"
    PAID = "paid"


class Item(BaseModel):
    """One thing in the shop."""

    name: str
    price: int
    note: str = ""


class Order(BaseModel):
    """What a customer wants."""

    items: list[Item]
    status: Status = Status.OPEN

    def total(self) -> int:
        """Sum of the prices."""
        return sum(item.price for item in self.items)


@dataclass
class Receipt:
    order: Order
    paid: bool = False
'''

APP = '''"""The shop's HTTP interface."""

import os

from fastapi import FastAPI

from shop.billing import charge
from shop.models import Item, Order

app = FastAPI()
CURRENCY = os.environ.get("SHOP_CURRENCY", "EUR")


@app.get("/items", response_model=list[Item])
def list_items(limit: int = 10) -> list[Item]:
    """Everything that can be bought."""
    return []


@app.post("/orders", status_code=201)
def create_order(order: Order) -> Order:
    """Takes an order and charges for it."""
    charge(order.total())
    return order


@app.get("/orders/{order_id}")
def read_order(order_id: int) -> Order:
    return Order(items=[])
'''

BILLING = '''"""Money."""

import os


def charge(amount: int) -> bool:
    """Takes the money."""
    return amount > 0 and "CARD" in os.environ


def refund(amount: int) -> bool:
    """Gives the money back."""
    return charge(-amount)
'''

WIDE = '"""A table that grew."""\n\nfrom pydantic import BaseModel\n\n\nclass Wide(BaseModel):\n' + "".join(
    f"    column_{number:03}: int = {number}\n" for number in range(120)
)

README = """# Shop

A shop that sells things.

## Paying

Orders are charged at once.
"""


def shop(folder) -> GitRepo:
    """The shop at its first commit."""
    repo = GitRepo(folder)
    repo.write("shop/__init__.py").write("shop/models.py", MODELS).write("shop/app.py", APP)
    repo.write("shop/billing.py", BILLING).write("shop/wide.py", WIDE).write("README.md", README).write(
        "logo.png", b"\x89PNG\x00\x00"
    )
    return repo.commit("The shop opens")


def change(repo: GitRepo) -> GitRepo:
    """The second commit: breaking and compatible changes, a moved module, comments only."""
    repo.write(
        "shop/models.py",
        MODELS.replace('    note: str = ""\n', '    note: str = ""\n    weight: int\n'),
    )
    app = APP.replace("def list_items(limit: int = 10)", "def list_items(category: str, limit: int = 10)")
    app = app.replace(
        '@app.get("/orders/{order_id}")\ndef read_order(order_id: int) -> Order:\n    return Order(items=[])\n',
        '@app.get("/health")\ndef health() -> bool:\n    return True\n',
    )
    repo.write("shop/app.py", app.replace("shop.billing", "shop.money"))
    repo.delete("shop/billing.py").write("shop/money.py", "# money, money\n" + BILLING)
    return repo.commit("Categories; orders are not read any more")
