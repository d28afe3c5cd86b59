"""Types in one vocabulary: JSON schema as FastAPI writes it, annotations as kb keeps them.

Both sides become a frozen set of alternatives: JSON type names, `array<...>`, `object`, or the name of
a model or enumeration. `null` is left out: whether a value may be absent is compared separately.
"""

from __future__ import annotations

import ast
import re
from typing import Any

Types = frozenset[str]
ANY: Types = frozenset({"any"})

_SCALARS = {
    "int": {"integer"}, "float": {"number"}, "str": {"string"}, "bool": {"boolean"}, "bytes": {"string"},
    "None": set(), "Any": {"any"}, "object": {"any"}, "date": {"string"}, "datetime": {"string"},
    "time": {"string"}, "timedelta": {"string"}, "UUID": {"string"}, "Decimal": {"number", "string"},
    "EmailStr": {"string"}, "HttpUrl": {"string"}, "UploadFile": {"string"}, "dict": {"object"},
    "list": {"array<any>"}, "Literal": {"string"}, "UserId": {"integer"},
}  # fmt: skip
_ARRAYS = {"list", "List", "set", "Set", "frozenset", "tuple", "Tuple", "Sequence"}


def of_schema(schema: dict[str, Any]) -> Types:
    """The alternatives of a JSON schema."""
    if "$ref" in schema:
        name = re.sub(r"-(Input|Output)(__1)?$", "", schema["$ref"].rsplit("/", 1)[-1])
        return frozenset({name})
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return frozenset().union(*(of_schema(option) for option in schema[union]))
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return of_schema(schema["allOf"][0])
    kind = schema.get("type")
    if kind == "null":
        return frozenset()
    if kind == "array":
        return frozenset({f"array<{_joined(of_schema(schema.get('items', {})))}>"})
    return frozenset({kind}) if isinstance(kind, str) else ANY


def of_annotation(text: str) -> Types:
    """The alternatives of an annotation as kb renders it."""
    return _of_node(ast.parse(text, mode="eval").body)


def _of_node(node: ast.expr) -> Types:
    if isinstance(node, ast.Constant):
        return (
            _of_node(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else frozenset()
        )
    if isinstance(node, ast.BinOp):
        return _of_node(node.left) | _of_node(node.right)
    name = _last(node)
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in ("Optional", "Union"):
            return frozenset().union(*map(_of_node, inner))
        if name in _ARRAYS:
            return frozenset({f"array<{_joined(_of_node(inner[0]))}>"})
        if name in ("dict", "Dict", "Mapping"):
            return frozenset({"object"})
        if name == "Literal":
            return frozenset({"string"})
        return frozenset({f"{name}_{'_'.join(_last(item) for item in inner)}_"})
    return frozenset(_SCALARS.get(name, {name}))


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _last(node.value)
    return (
        node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", str(getattr(node, "value", "")))
    )


def _joined(types: Types) -> str:
    return "|".join(sorted(types)) or "any"
