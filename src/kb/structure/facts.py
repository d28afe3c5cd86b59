"""Facts: what was read from one blob alone, as typed structs, and their stored form.

A fact struct refers to spans by integers that index the span table of its own row. Facts never hold
the file's path or module name, and never a line or byte offset: those come by join.

The structs are invisible to the garbage collector (`gc=False`): they are trees without cycles, and there
are hundreds of thousands of them while a snapshot is linked.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from kb.model.spans import SpanKey

FactT = TypeVar("FactT", bound=msgspec.Struct)

SpanRef = int
"""Index into the span table of the fact row that holds it."""

_ENTRY = 36
_LEVEL = 1  # zlib level: facts are written once per blob and read often; speed before size


def encode_payload(fact: msgspec.Struct) -> bytes:
    """The struct as compressed msgpack."""
    return zlib.compress(msgspec.msgpack.encode(fact), _LEVEL)


def decode_payload(payload: bytes, kind: type[FactT]) -> FactT:
    """The struct that `encode_payload` was given."""
    return msgspec.msgpack.decode(zlib.decompress(payload), type=kind)


def encode_span_table(keys: Sequence[SpanKey]) -> bytes:
    """36 bytes an entry: span id, then n as big-endian uint32."""
    return b"".join(key.span_id + key.n.to_bytes(4, "big") for key in keys)


def decode_span_table(table: bytes) -> list[SpanKey]:
    """The keys that `encode_span_table` was given."""
    return [
        SpanKey(table[at : at + 32], int.from_bytes(table[at + 32 : at + _ENTRY], "big"))
        for at in range(0, len(table), _ENTRY)
    ]


class Expr(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A Python expression as far as static reading needs it; built by `structure.python.expressions`.

    kind / value / items by kind:
      name      value = dotted name as written (`app`, `routers.items.router`)
      str       value = the string's value           bytes  value = text of the value, latin-1
      num       value = normalised spelling          const  value = `None` | `True` | `False` | `...`
      fstr      items = parts: `str` parts and any other Expr for a replacement field
      list, tuple, set          items = elements
      dict      items = key, value, key, value...; a `**x` entry is a `dstar` item followed by nothing
      call      value = dotted name of the callee where it is one, else ""; items[0] = callee Expr, then
                arguments; keyword arguments are `kwarg` items
      kwarg     value = keyword, items = [value]
      star, dstar               items = [value]
      attr      value = attribute name, items = [object]  (only where the whole is not a dotted name)
      subscript items = [object, index...]  (a tuple index is spread: `Dict[str, int]` has 3 items)
      binop     value = operator, items = [left, right]    unary value = operator, items = [operand]
      lambda, await, comparison, conditional, comprehension...: kind `other`, value = normalised source
    Every other node is `other` too: value is its normalised one-line source text, comments dropped.
    """

    kind: str
    value: str = ""
    items: tuple[Expr, ...] = ()


class Param(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One parameter of a function, in order."""

    name: str
    kind: str
    """`positional_only`, `positional`, `vararg`, `keyword_only`, `kwarg`."""
    annotation: Expr | None = None
    default: Expr | None = None


class Import(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One name that an import statement binds, in the statement's own words."""

    span: SpanRef
    """The `import` span of the whole statement."""
    module: str
    """`a.b` of `import a.b` or of `from a.b import c`; "" for `from . import c`."""
    name: str | None = None
    """`c` of `from m import c`; `*` for a star; None for `import m`."""
    alias: str | None = None
    level: int = 0
    """Leading dots."""
    scope: str = ""
    """symbol_path of the enclosing definition; "" at module level."""
    condition: str = ""
    """"" | `type_checking` | `try` | `except_import_error` | `else` | `if` (innermost that applies)."""
    ordinal: int = 0
    """Place of the statement among the module's statements that bind names, for "last one wins"."""


class DynamicImport(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A call of `importlib.import_module` or `__import__`."""

    span: SpanRef
    """The cited call."""
    function: str
    argument: Expr | None = None
    package: Expr | None = None
    scope: str = ""


class Decorator(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One decorator of a definition, outermost first."""

    expr: Expr
    source: str
    """Normalised one-line source without `@`."""


class Assignment(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A module- or class-level assignment (plain, annotated or augmented), one per target name."""

    name: str
    """Simple target name; "" for a target that is not a name (attribute, subscript), see `target`."""
    span: SpanRef
    """The `assignment` span of the statement."""
    scope: str = ""
    """symbol_path of the class, "" at module level."""
    annotation: Expr | None = None
    value: Expr | None = None
    target: Expr | None = None
    operator: str = ""
    """`+=` and so on for an augmented one."""
    condition: str = ""
    ordinal: int = 0


class Definition(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A class, function, method or lambda-assigned name, in source order (start, -end)."""

    kind: str
    """`class`, `function`, `method`, `lambda`."""
    name: str
    symbol_path: str
    """`Order.total`, `outer.<locals>.inner`."""
    span: SpanRef
    """The whole definition, decorators included."""
    header: SpanRef
    """class_header or function_header; for a lambda the assignment."""
    parent: int = -1
    """Index of the enclosing definition in `ModuleFacts.definitions`; -1 at module level."""
    is_async: bool = False
    decorators: tuple[Decorator, ...] = ()
    params: tuple[Param, ...] = ()
    returns: Expr | None = None
    bases: tuple[Expr, ...] = ()
    """For a class: bases as written; keywords (`metaclass=`, `table=True`) as `kwarg` items."""
    type_params: str = ""
    """PEP 695 parameters, normalised source without brackets."""
    docstring: str | None = None
    """Cleaned as `inspect.cleandoc` does."""
    is_generator: bool = False
    condition: str = ""
    ordinal: int = 0
    members: tuple[str, ...] = ()
    """For a class: names bound in its body, source order, unique."""
    self_attributes: tuple[str, ...] = ()
    """For a class: names assigned through `self.` in its methods, source order, unique."""


class ModuleFacts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """What a Python file says by itself; fact source `module`, read by every extractor's `link`."""

    docstring: str | None = None
    module_span: SpanRef = -1
    """The `module` span; its header (docstring, imports, assignments) is not a span of its own."""
    definitions: tuple[Definition, ...] = ()
    imports: tuple[Import, ...] = ()
    dynamic_imports: tuple[DynamicImport, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    dunder_all: tuple[str, ...] | None = None
    """Names of a static `__all__` (`=`, `+=`, `.extend([...])`, `.append("x")`), None where absent."""
    dunder_all_dynamic: bool = False
    """`__all__` is also changed in a way that cannot be read statically."""
    dunder_all_spans: tuple[SpanRef, ...] = ()
    has_getattr: bool = False
    """A module-level `__getattr__` is defined."""
    has_main_guard: bool = False


MODULE_SOURCE = "module"

MODULE_VERSION = 2
"""Bumped by hand when the `module` facts of some file come out differently."""
