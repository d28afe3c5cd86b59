"""Expressions as text, and types written as strings."""

import pytest

from kb.extract.expressions import (
    names_in_type,
    parse_annotation,
    pattern_of,
    render,
    typed,
    without_none,
)
from kb.structure.facts import Expr


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("list[Order] | None", "list[Order] | None"),
        ("Dict[str, 'User']", "Dict[str, User]"),
        ("Callable[[int, str], None]", "Callable[[int, str], None]"),
        ("tuple[int, ...]", "tuple[int, ...]"),
        ("Literal['a', 1]", 'Literal["a", 1]'),
        ("x + 1", "x + 1"),
        ("a[", "a["),
        ("", ""),
    ],
)
def test_a_type_in_a_string_is_read_as_a_type(text, shown):
    assert render(typed(parse_annotation(text))) == shown


def test_none_is_taken_out_of_optional_union_and_bar():
    for text in ("Optional[int]", "Union[int, None]", "int | None", "None | int"):
        inner, found = without_none(parse_annotation(text))
        assert (render(inner), found) == ("int", True)
    assert without_none(parse_annotation("list[None]"))[1] is False


def test_names_in_a_type_know_whether_they_stand_in_a_collection():
    found = list(names_in_type(parse_annotation("dict[str, Order] | User")))
    assert ("Order", True) in found
    assert ("User", False) in found


def test_patterns_keep_what_is_literal():
    name = Expr("name", "x")
    prefix = Expr("str", "user:")
    assert pattern_of(Expr("fstr", "", (prefix, name))) == "user:*"
    assert pattern_of(Expr("binop", "%", (Expr("str", "user:%(id)s:%d"), name))) == "user:*:*"
    assert pattern_of(Expr("binop", "+", (prefix, name))) == "user:*"
    attribute = Expr("attr", "format", (Expr("str", "a:{}:{b}"),))
    assert pattern_of(Expr("call", "", (attribute, name))) == "a:*:*"
    assert pattern_of(name) is None
