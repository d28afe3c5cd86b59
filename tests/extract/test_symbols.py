from tests.extract.snapshots import Snapshot

ORDERS = '''
    """Orders and what they cost."""
    from decimal import Decimal

    from shop.base import Model as Base

    LIMIT: int = 10
    CURRENCY = "EUR"
    counter = 0


    class Order(Base, frozen=True):
        """What somebody bought.

        More about it.
        """

        lines: list[str] = []
        _seen = False

        def __init__(self, name: str, *, tax: Decimal = Decimal("0.2")) -> None:
            self.name = name

        @property
        @cached(timeout=5)
        async def total(self) -> Decimal:
            """The sum."""
            def helper(x, /, y, *rest, **more):
                yield x
            return helper

        class Meta:
            ordering = ["name"]


    double = lambda value: value * 2


    def _private(a=1): ...
    '''
BASE = "class Model:\n    pass\n"


def shop(orders=ORDERS):
    return Snapshot({"shop/__init__.py": "", "shop/base.py": BASE, "shop/orders.py": orders}, ids=["symbols"])


def test_every_definition_has_an_artifact_with_its_qualified_name():
    found = {key for key in shop().artifacts() if "orders" in key}
    assert found == {
        "module:shop.orders",
        "symbol:shop.orders.LIMIT",
        "symbol:shop.orders.CURRENCY",
        "symbol:shop.orders.Order",
        "symbol:shop.orders.Order.__init__",
        "symbol:shop.orders.Order.total",
        "symbol:shop.orders.Order.total.<locals>.helper",
        "symbol:shop.orders.Order.Meta",
        "symbol:shop.orders.double",
        "symbol:shop.orders._private",
    }


def test_a_method_says_its_signature_decorators_docstring_and_visibility():
    assert shop().body("symbol:shop.orders.Order.total") == {
        "name": "shop.orders.Order.total",
        "kind": "method",
        "signature": "async def total(self) -> Decimal",
        "module": "shop.orders",
        "visibility": "public",
        "decorators": ["property", "cached(timeout=5)"],
        "docstring": "The sum.",
        "async": True,
    }


def test_signatures_are_normalised():
    shown = shop()
    assert shown.body("symbol:shop.orders.Order.__init__")["signature"] == (
        'def __init__(self, name: str, *, tax: Decimal = Decimal("0.2")) -> None'
    )
    helper = shown.body("symbol:shop.orders.Order.total.<locals>.helper")
    assert helper["signature"] == "def helper(x, /, y, *rest, **more)"
    assert helper["visibility"] == "local"
    assert helper["generator"] is True
    assert shown.body("symbol:shop.orders.double")["signature"] == "double = lambda value"
    assert shown.body("symbol:shop.orders._private")["signature"] == "def _private(a=1)"


def test_a_class_says_its_bases_resolved_and_its_members():
    body = shop().body("symbol:shop.orders.Order")
    assert body["signature"] == "class Order(Base, frozen=True)"
    assert body["bases"] == [
        {"written": "Base", "target": "internal", "resolution": "exact", "name": "shop.base.Model"}
    ]
    assert body["members"] == ["lines", "_seen", "__init__", "total", "Meta"]
    assert body["attributes"] == ["name"]
    assert body["docstring"] == "What somebody bought.\n\nMore about it."


def test_links_say_membership_and_inheritance():
    links = {
        (link.relation, link.target_key)
        for link in shop().artifacts()["symbol:shop.orders.Order"].draft.links
    }
    assert links == {("member_of", "module:shop.orders"), ("inherits", "symbol:shop.base.Model")}


def test_a_class_stands_on_its_header_docstring_and_members_headers():
    shown = shop()
    key = "symbol:shop.orders.Order"
    assert shown.lines(key, "signature") == [("shop/orders.py", 11, 11)]
    assert shown.lines(key, "docstring") == [("shop/orders.py", 12, 15)]
    assert shown.lines(key, "member") == [
        ("shop/orders.py", 17, 17),
        ("shop/orders.py", 18, 18),
        ("shop/orders.py", 20, 20),
        ("shop/orders.py", 23, 25),
        ("shop/orders.py", 31, 31),
    ]


def test_a_function_stands_on_its_whole_definition():
    assert shop().lines("symbol:shop.orders.Order.total") == [("shop/orders.py", 23, 29)]


def test_a_comment_at_the_top_renews_no_artifact():
    before, after = shop(), shop("# a licence\n\n" + "\n".join(line[4:] for line in ORDERS.splitlines()))
    assert before.ids_of() == after.ids_of()


def test_an_edit_inside_one_method_renews_only_that_method():
    before, after = shop(), shop(ORDERS.replace("self.name = name", "self.name = name.strip()"))
    changed = {
        key
        for key, artifact in after.artifacts().items()
        if artifact.artifact_id != before.artifacts()[key].artifact_id
    }
    assert changed == {"symbol:shop.orders.Order.__init__"}


def test_a_text_reads_as_a_person_would_want_it():
    assert shop().artifacts()["symbol:shop.orders.Order.total"].draft.text == (
        "@property\n@cached(timeout=5)\nasync def total(self) -> Decimal\n\nThe sum.\n\n"
        "Method of shop.orders.Order."
    )


def test_definitions_that_share_a_key_are_numbered_in_source_order():
    shown = Snapshot(
        {
            "m.py": """
            from typing import overload
            @overload
            def f(a: int) -> int: ...
            @overload
            def f(a: str) -> str: ...
            def f(a): return a
            """
        },
        ids=["symbols"],
    )
    assert [
        (key, artifact.draft.body["signature"]) for key, artifact in shown.artifacts(kind="symbol").items()
    ] == [
        ("symbol:m.f", "def f(a: int) -> int"),
        ("symbol:m.f~2", "def f(a: str) -> str"),
        ("symbol:m.f~3", "def f(a)"),
    ]


def test_what_a_static_all_leaves_out_is_unlisted():
    shown = Snapshot({"m.py": "__all__ = ['a']\ndef a(): ...\ndef b(): ...\n"}, ids=["symbols"])
    assert shown.body("symbol:m.a")["visibility"] == "public"
    assert shown.body("symbol:m.b")["visibility"] == "unlisted"
