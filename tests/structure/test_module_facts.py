from __future__ import annotations

import pytest

from kb.structure.facts import Expr, ModuleFacts, decode_payload, decode_span_table
from kb.structure.reader import read_blob


def _facts(source: str, dialect: str = "python") -> ModuleFacts:
    blob = read_blob("oid", source.encode(), dialect, ())
    return decode_payload(blob.facts[0].payload, ModuleFacts)


def _name(value: str) -> Expr:
    return Expr("name", value)


def test_references_lead_to_the_spans_that_they_mean():
    source = "import os\n\n@d\ndef f():\n    pass\nx = 1\n"
    blob = read_blob("oid", source.encode(), "python", ())
    facts = decode_payload(blob.facts[0].payload, ModuleFacts)
    table = decode_span_table(blob.facts[0].spans)
    spans = {(item.span.span_id, item.n): item for item in blob.occurrences}

    def place(ref: int) -> tuple[str, int, int]:
        item = spans[table[ref]]
        return item.span.kind, item.start_line, item.end_line

    assert place(facts.module_span) == ("module", 1, 6)
    assert place(facts.imports[0].span) == ("import", 1, 1)
    assert place(facts.definitions[0].span) == ("function", 3, 5)
    assert place(facts.definitions[0].header) == ("function_header", 3, 4)
    assert place(facts.assignments[0].span) == ("assignment", 6, 6)


def test_imports_are_read_name_by_name_in_the_words_of_the_statement():
    source = (
        "import a.b, c as d\nfrom m.n import x, y as z\nfrom . import (s,)\nfrom ..p import *\n"
        "from __future__ import annotations\ndef f():\n    import lazy\n"
    )
    read = [(i.module, i.name, i.alias, i.level, i.scope) for i in _facts(source).imports]
    assert read == [
        ("a.b", None, None, 0, ""),
        ("c", None, "d", 0, ""),
        ("m.n", "x", None, 0, ""),
        ("m.n", "y", "z", 0, ""),
        ("", "s", None, 1, ""),
        ("p", "*", None, 2, ""),
        ("__future__", "annotations", None, 0, ""),
        ("lazy", None, None, 0, "f"),
    ]


def test_conditions_say_under_what_a_statement_runs():
    source = """\
import plain
if TYPE_CHECKING:
    import checked
    if sys.version_info > (3, 12):
        import checked_too
elif x:
    import sometimes
else:
    import otherwise
if typing.TYPE_CHECKING:
    import checked_dotted
try:
    import tried
except (ImportError, KeyError):
    import fallback
except KeyError:
    import other_error
except:
    import any_error
else:
    import after
finally:
    import always
with suppress():
    import within
if x:
    def f():
        import inner
"""
    assert {i.module: i.condition for i in _facts(source).imports} == {
        "plain": "",
        "checked": "type_checking",
        "checked_too": "type_checking",
        "sometimes": "if",
        "otherwise": "else",
        "checked_dotted": "type_checking",
        "tried": "try",
        "fallback": "except_import_error",
        "other_error": "if",
        "any_error": "except_import_error",
        "after": "else",
        "always": "",
        "within": "",
        "inner": "",
    }
    assert _facts(source).definitions[0].condition == "if"


def test_ordinals_follow_the_order_of_statements():
    facts = _facts("import a\nx = 1\ndef f(): pass\nimport b\ny = 2\n")
    ordered = [*facts.imports, *facts.assignments, *facts.definitions]
    by_ordinal = sorted(ordered, key=lambda fact: fact.ordinal)
    assert [getattr(f, "name", None) or f.module for f in by_ordinal] == ["a", "x", "f", "b", "y"]


def test_a_function_is_read_with_its_signature():
    source = (
        "@app.get('/x', tags=[\"a\"])\n@cached\n"
        "async def f[T](a, /, b: int = 1, *args: str, c: 'X | None' = None, **kw) -> dict[str, T]:\n"
        '    """Say.\n\n    Args:\n        More.\n    """\n    yield a\n'
    )
    (function,) = _facts(source).definitions
    assert (function.kind, function.name, function.is_async, function.is_generator) == (
        "function",
        "f",
        True,
        True,
    )
    assert [(p.name, p.kind) for p in function.params] == [
        ("a", "positional_only"),
        ("b", "positional"),
        ("args", "vararg"),
        ("c", "keyword_only"),
        ("kw", "kwarg"),
    ]
    assert function.params[1].annotation == _name("int")
    assert function.params[1].default == Expr("num", "1")
    assert function.params[3].annotation == Expr("str", "X | None")
    assert function.returns == Expr("subscript", "", (_name("dict"), _name("str"), _name("T")))
    assert function.type_params == "T"
    assert function.docstring == "Say.\n\nArgs:\n    More."
    assert [d.source for d in function.decorators] == ['app.get("/x", tags=["a"])', "cached"]
    assert function.decorators[0].expr.value == "app.get"


def test_a_class_is_read_with_bases_members_and_the_attributes_its_methods_set():
    source = """\
class Order(Base, abc.ABC, metaclass=Meta):
    total: int = 0
    from m import helper as imported
    x, y = 1, 2
    def __init__(self, a):
        self.a, self.b = a
        self.a = 1
        other.c = 2
        def inner():
            self.d: int = 3
    @property
    def total(self): return self.e == 1
    class Nested: pass
    short = lambda self: 1
"""
    facts = _facts(source)
    order = facts.definitions[0]
    assert order.bases == (_name("Base"), _name("abc.ABC"), Expr("kwarg", "metaclass", (_name("Meta"),)))
    assert order.members == ("total", "imported", "x", "y", "__init__", "Nested", "short")
    assert order.self_attributes == ("a", "b", "d")
    parents = [(d.symbol_path, d.kind, d.parent) for d in facts.definitions]
    assert parents == [
        ("Order", "class", -1),
        ("Order.__init__", "method", 0),
        ("Order.__init__.<locals>.inner", "function", 1),
        ("Order.total", "method", 0),
        ("Order.Nested", "class", 0),
        ("Order.short", "lambda", 0),
    ]


def test_a_yield_in_a_lambda_or_a_nested_function_makes_no_generator():
    source = "def f():\n    g = lambda: (yield)\n    def h():\n        yield\n    return 1\n"
    assert {d.name: d.is_generator for d in _facts(source).definitions} == {"f": False, "g": False, "h": True}


def test_assignments_are_read_target_by_target():
    source = "a = b.c = 1\nx, (y, *z) = t\nn: int\nm: str = 'v'\ncount += 2\ntype Alias = int\ndef f():\n    no = 1\n"
    read = [(a.name, a.operator, a.target, a.annotation, a.value) for a in _facts(source).assignments]
    assert read == [
        ("a", "", None, None, Expr("num", "1")),
        ("", "", _name("b.c"), None, Expr("num", "1")),
        ("x", "", None, None, _name("t")),
        ("y", "", None, None, _name("t")),
        ("z", "", None, None, _name("t")),
        ("n", "", None, _name("int"), None),
        ("m", "", None, _name("str"), Expr("str", "v")),
        ("count", "+=", None, None, Expr("num", "2")),
        ("Alias", "", None, None, _name("int")),
    ]


@pytest.mark.parametrize(
    ("source", "names", "dynamic"),
    [
        ("x = 1", None, False),
        ("__all__ = ['a', \"b\"]", ("a", "b"), False),
        ("__all__: list[str] = ('a',) + ('b',)", ("a", "b"), False),
        (
            "__all__ = ['a']\n__all__ += ['b']\n__all__.extend(['c'])\n__all__.append('d')",
            ("a", "b", "c", "d"),
            False,
        ),
        ("__all__ = ['a', 'b']\n__all__.remove('a')", ("b",), False),
        ("__all__ = ['a'] + other.__all__", (), True),
        ("__all__ = ['a']\n__all__ += names()", ("a",), True),
        ("__all__ = ['old']\n__all__ = ['new']", ("new",), False),
        ("def f():\n    __all__ = ['a']", None, False),
    ],
)
def test_dunder_all_is_read_as_far_as_it_is_static(source, names, dynamic):
    facts = _facts(source)
    assert (facts.dunder_all, facts.dunder_all_dynamic) == (names, dynamic)
    assert bool(facts.dunder_all_spans) == (names is not None)


def test_dynamic_imports_are_read_with_argument_package_and_scope():
    source = (
        "import importlib\nm = importlib.import_module('.x', package=__name__)\n"
        "def f(name):\n    return __import__(name, globals())\n"
    )
    read = [(d.function, d.argument, d.package, d.scope) for d in _facts(source).dynamic_imports]
    assert read == [
        ("importlib.import_module", Expr("str", ".x"), _name("__name__"), ""),
        ("__import__", _name("name"), None, "f"),
    ]


def test_a_main_guard_and_a_module_getattr_are_seen():
    facts = _facts("'''Doc.'''\ndef __getattr__(name): ...\nif '__main__' == __name__:\n    f()\n")
    assert (facts.docstring, facts.has_getattr, facts.has_main_guard) == ("Doc.", True, True)
    assert _facts("class A:\n    def __getattr__(self, n): ...\n").has_getattr is False
    assert _facts("x = '__main__'").has_main_guard is False


def test_a_value_too_large_to_read_is_said_to_be_unread():
    (assignment,) = _facts("x = [" + "1, " * 1000 + "]").assignments
    assert assignment.value == Expr("other", "…")


EXPRESSIONS = [
    ("a.b.c", _name("a.b.c")),
    ("f(x).y", Expr("attr", "y", (Expr("call", "f", (_name("f"), _name("x"))),))),
    ("f(*a, k=1, **b)", Expr("call", "f", (_name("f"), Expr("star", "", (_name("a"),)),
        Expr("kwarg", "k", (Expr("num", "1"),)), Expr("dstar", "", (_name("b"),))))),
    ("f(x for x in y)", Expr("call", "f", (_name("f"), Expr("other", "(x for x in y)")))),
    ("'a' \"b\"", Expr("str", "ab")),
    ("b'\\xff'", Expr("bytes", "ÿ")),
    ("f'a{x}b'", Expr("fstr", "", (Expr("str", "a"), _name("x"), Expr("str", "b")))),
    ("{'k': 1, **d}", Expr("dict", "", (Expr("str", "k"), Expr("num", "1"), Expr("dstar", "", (_name("d"),))))),
    ("[1, None], (x,), {...}", Expr("tuple", "", (Expr("list", "", (Expr("num", "1"), Expr("const", "None"))),
        Expr("tuple", "", (_name("x"),)), Expr("set", "", (Expr("const", "..."),))))),
    ("a[b, c]", Expr("subscript", "", (_name("a"), _name("b"), _name("c")))),
    ("a[(b, c)]", Expr("subscript", "", (_name("a"), _name("b"), _name("c")))),
    ("a[b,]", Expr("subscript", "", (_name("a"), Expr("tuple", "", (_name("b"),))))),
    ("a[1:2]", Expr("subscript", "", (_name("a"), Expr("other", "1:2")))),
    ("a | None", Expr("binop", "|", (_name("a"), Expr("const", "None")))),
    ("a and (b or c)", Expr("binop", "and", (_name("a"), Expr("binop", "or", (_name("b"), _name("c")))))),
    ("-0XFF", Expr("unary", "-", (Expr("num", "0xff"),))),
    ("(a\n  if b else c)", Expr("other", "a if b else c")),
    ("lambda a, *b: (a, 'x')", Expr("other", 'lambda a, *b: (a, "x")')),
    ("a<b  in c", Expr("other", "a < b in c")),
    ("[i for i in (x) if (not y)]", Expr("other", "[i for i in x if not y]")),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), EXPRESSIONS)
def test_expressions_are_read_as_data(source, expected):
    (assignment,) = _facts(f"x = {source}\n").assignments
    assert assignment.value == expected


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("(a + b) * c", "(a + b) * c"),
        ("a + (b * c)", "a + b * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(-a) ** (-b)", "(-a) ** -b"),
        ("not (a and b)", "not (a and b)"),
        ("(a, b)[0]", "(a, b)[0]"),
        ("(yield_ if a else b).c", "(yield_ if a else b).c"),
        ("f ( 'it\\'s' , k = [ 1 , ] ) # c", 'f("it\'s", k=[1])'),
        ("f'{x!r:>{w}} {{'", 'f"{x!r:>{w}} {{"'),
        ("{1 : 2, ** a}", "{1: 2, **a}"),
        ("x[1:, ::2, (a, b)]", "x[1:, ::2, (a, b)]"),
        ("await (f)(x)", "await f(x)"),
    ],
)
def test_a_decorator_is_shown_as_one_canonical_line(source, shown):
    (function,) = _facts(f"@({source}\n)\ndef f(): pass\n").definitions
    assert function.decorators[0].source == shown


def test_a_stub_has_the_facts_of_its_source():
    source = "class A:\n    @overload\n    def f(self, a: int = ...) -> int: ...\nX: Final = 1\n"
    assert _facts(source) == _facts(source, "python-stub")
