from __future__ import annotations

import pytest

from kb.retrieve.differences import differences
from kb.retrieve.standing import stands_in


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": True}, {"a": 2, "b": True}, [("a", "1", "2")]),
        ({}, {"a": None}, [("a", None, "null")]),
        ({"a": ""}, {}, [("a", "''", None)]),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, [("a.b.c", "1", "2")]),
        ({"members": ["a", "b"]}, {"members": ["a", "c", "d"]}, [("members", "b", "c, d")]),
        ({"members": ["a"]}, {"members": ["a", "b"]}, [("members", None, "b")]),
        ({"members": ["a", "b"]}, {"members": ["b", "a"]}, [("members", "a, b", "b, a (another order)")]),
        ({"bases": ["A"]}, {"bases": ["B"]}, [("bases", "A", "B")]),
        (
            {"fields": [{"name": "id", "type": "int"}, {"name": "x", "type": "str"}]},
            {"fields": [{"name": "id", "type": "str"}, {"name": "y", "type": "str"}]},
            [("fields[id].type", "int", "str"), ("fields[x]", "x", None), ("fields[y]", None, "y")],
        ),
        ({"a": ["x", "x"]}, {"a": ["x"]}, [("a", "x", None)]),
    ],
)
def test_each_entry_that_differs_is_told_as_deep_inside_as_it_can_be(old, new, told):
    assert [(one.field, one.before, one.after) for one in differences(old, new)] == told


def test_of_long_texts_the_part_where_they_begin_to_differ_is_shown():
    (one,) = differences({"doc": "same " * 40 + "old end"}, {"doc": "same " * 40 + "new end"})
    assert one.before == "…same same same same old end"
    assert one.after == "…same same same same new end"


def test_no_value_is_longer_than_a_line():
    (one,) = differences({"a": "x" * 500}, {"a": "\n".join("y" * 500)})
    assert max(len(one.before), len(one.after)) <= 60
    assert "\n" not in one.after


@pytest.mark.parametrize(
    ("paths", "where"),
    [
        ([], None),
        (["shop/app.py"], None),
        (["shop/latest/app.py", "shop/contest.py"], None),
        (["tests/test_app.py", "shop/app.py"], None),
        (["tests/helpers.py"], "tests"),
        (["shop/app_test.py"], "tests"),
        (["docs_src/first.py"], "examples"),
        (["examples/a.py", "tests/b.py"], "tests"),
    ],
)
def test_only_what_stands_in_nothing_but_tests_and_examples_stands_there(paths, where):
    assert stands_in(paths) == where
