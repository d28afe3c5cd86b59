"""Fusion, diversity and caps against values worked out by hand."""

import numpy as np
import pytest

from kb.retrieve.search_calibration import dense_share, source_of
from kb.retrieve.search_evidence import FILE_NAMED, NAMED, NAMED_PLAIN, Mentions, own_name
from kb.retrieve.search_fusion import capped, convex, diversified, min_max, ranked, reciprocal_rank
from kb.retrieve.search_priors import PathPriors
from kb.store.search.reading import Document


def document(key, path, doc=1):
    return Document(doc, doc, b"", "passage", key, "", path)


def test_min_max_keeps_magnitudes():
    assert min_max({1: 2.0, 2: 4.0, 3: 3.0}) == {1: 0.0, 2: 1.0, 3: 0.5}
    assert min_max({1: 2.0, 2: 4.0}, floor=0.0) == {1: 0.5, 2: 1.0}
    assert min_max({1: 3.0, 2: 3.0}) == {1: 1.0, 2: 1.0}
    assert min_max({}) == {}


def test_convex_weighs_the_legs():
    assert convex({1: 1.0, 2: 0.5}, {2: 1.0}, {1: 0.25, 2: 0.25}) == {1: 0.75, 2: 0.625}


def test_reciprocal_rank_forgets_magnitudes():
    fused = reciprocal_rank({1: 9.0, 2: 1.0}, {2: 0.9})
    assert fused == {1: pytest.approx(1 / 61), 2: pytest.approx(1 / 62 + 1 / 61)}


def test_equal_scores_are_ordered_by_number():
    assert ranked({3: 1.0, 1: 1.0, 2: 2.0}) == [(2, 2.0), (1, 1.0), (3, 1.0)]


def test_diversity_takes_the_unlike_one_second():
    vectors = {
        doc: np.array(value, dtype=np.float32) for doc, value in {1: [1, 0], 2: [1, 0], 3: [0, 1]}.items()
    }
    order = [(1, 1.0), (2, 0.9), (3, 0.5)]
    assert [doc for doc, _ in diversified(order, vectors, 0.5, 3)] == [1, 3, 2]
    assert [doc for doc, _ in diversified(order, vectors, 0.0, 2)] == [1, 2]


def test_a_cap_keeps_the_first_of_each_group():
    assert capped([(1, 3.0), (2, 2.0), (3, 1.0)], {1: "a", 2: "a", 3: "b"}, 1) == [(1, 3.0), (3, 1.0)]


@pytest.mark.parametrize(
    ("query", "key", "path", "expected"),
    [
        ("why does get_user fail", "passage:shop.users.get_user", "shop/users.py", NAMED),
        ("call `total` twice", "symbol:shop.orders.Order.total", "shop/orders.py", NAMED),
        ("the total is wrong", "symbol:shop.orders.Order.total", "shop/orders.py", NAMED_PLAIN),
        ("the orders are wrong", "symbol:shop.orders.Order.total", "shop/orders.py", FILE_NAMED),
        ("nothing of it", "symbol:shop.orders.Order.total", "shop/orders.py", 0.0),
        ("see Refunds", "passage:README.md#Refunds", "README.md", 0.0),
    ],
)
def test_a_query_that_names_a_definition_or_its_file(query, key, path, expected):
    assert Mentions(query).evidence(document(key, path)) == pytest.approx(expected)


def test_the_own_name_of_a_definition():
    assert own_name(*("symbol:shop.orders.Order.total~2", "shop/orders.py")) == "total"
    assert own_name(*("module:shop.orders", "shop/orders.py")) == ""
    assert own_name(*("api:GET /orders", "shop/orders.py")) == ""


@pytest.mark.parametrize(
    ("path", "query", "within", "expected"),
    [
        ("src/shop/orders.py", "how are orders paid", None, 1.0),
        ("src/contest.py", "how are orders paid", None, 1.0),
        ("tests/test_a.py", "how are orders paid", None, 0.5),
        ("tests/test_a.py", "which tests pay orders", None, 1.0),
        ("tests/test_a.py", "how are orders paid", "tests", 1.0),
        ("tests/test_a.py", "orders are paid twice\n\nI tested it with the example", None, 0.5),
        ("docs_src/a.py", "how are orders paid", None, 0.5),
        ("docs_src/a.py", "an example of paying", None, 1.0),
        ("docs/orders.md", "how are orders paid", None, 0.5),
        ("docs/orders.md", "why are orders paid twice", None, 1.0),
        ("docs/orders.md", "how are orders paid", "*.md", 1.0),
        ("CHANGELOG.md", "how are orders paid", None, 0.25),
        ("CHANGES.rst", "since which version are orders paid", None, 0.5),
        ("docs/changelog/3.1.rst", "how are orders paid", None, 0.25),
        ("shop/changes.py", "how are orders paid", None, 1.0),
        ("CHANGES", "how are orders paid", None, 0.5),
        ("docs/de/orders.md", "how are orders paid", None, 0.25),
        ("docs/en/orders.md", "how are orders paid", None, 0.5),
        ("docs/de/orders.md", "wie werden Aufträge bezahlt", None, 0.5),
        ("docs/zh-hant/docs/orders.md", "why are orders paid twice", None, 0.5),
        ("docs/db/orders.md", "why are orders paid twice", None, 1.0),
    ],
)
def test_what_repeats_counts_less_unless_it_is_asked_for(path, query, within, expected):
    assert PathPriors(query, within).of(path) == expected


def test_the_dense_share_is_the_models_and_the_sources():
    assert dense_share("onnx:all-MiniLM-L6-v2-int8@0123abcd", "document") > dense_share(
        "static:anything", "document"
    )
    assert source_of("docs/a.MD") == "document"
    assert source_of("a.py") == "code"
