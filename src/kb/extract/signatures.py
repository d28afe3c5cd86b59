"""Definitions as one normalised line: `async def total(self, *, tax: Decimal = 0) -> Decimal`."""

from __future__ import annotations

from collections.abc import Sequence

from kb.extract.expressions import render
from kb.structure.facts import Definition, Param

_STARS = {"vararg": "*", "kwarg": "**"}


def signature(definition: Definition) -> str:
    """The definition's header as one line, without its decorators and colon."""
    generic = f"[{definition.type_params}]" if definition.type_params else ""
    if definition.kind == "class":
        bases = ", ".join(render(base) for base in definition.bases)
        return f"class {definition.name}{generic}" + (f"({bases})" if bases else "")
    if definition.kind == "lambda":
        return f"{definition.name} = lambda {parameters(definition.params)}".rstrip()
    keyword = "async def" if definition.is_async else "def"
    returns = f" -> {render(definition.returns)}" if definition.returns is not None else ""
    return f"{keyword} {definition.name}{generic}({parameters(definition.params)}){returns}"


def parameters(params: Sequence[Param]) -> str:
    """Parameters with annotations and defaults, `/` and `*` where they are needed."""
    parts: list[str] = []
    starred = False
    for at, param in enumerate(params):
        if param.kind == "keyword_only" and not starred:
            parts.append("*")
            starred = True
        starred = starred or param.kind == "vararg"
        parts.append(_parameter(param))
        last = at + 1 == len(params) or params[at + 1].kind != "positional_only"
        if param.kind == "positional_only" and last:
            parts.append("/")
    return ", ".join(parts)


def _parameter(param: Param) -> str:
    text = _STARS.get(param.kind, "") + param.name
    if param.annotation is not None:
        text += f": {render(param.annotation)}"
    if param.default is not None:
        equals = " = " if param.annotation is not None else "="
        text += equals + render(param.default)
    return text


def visibility(symbol_path: str, listed: Sequence[str] | None) -> str:
    """`public`, `private` (an underscore on the way), `special` (`__len__`), `local` (inside a function),
    or `unlisted` (its module's static `__all__`, given as `listed`, leaves it out)."""
    if "<locals>" in symbol_path:
        return "local"
    *outer, name = symbol_path.split(".")
    if any(part.startswith("_") for part in outer):
        return "private"
    if name.startswith("__") and name.endswith("__") and len(name) > 4:
        return "special"
    if name.startswith("_"):
        return "private"
    top = outer[0] if outer else name
    return "public" if listed is None or top in listed else "unlisted"
