"""The normal form of literals: by value, implicit concatenation folded."""

from __future__ import annotations

from collections.abc import Iterable

from kb.structure.python import grammar as g
from kb.structure.python.literals import (
    Spelling,
    content_value,
    number_spelling,
    simple_value,
    spelling,
    string_value,
)
from kb.structure.python.walk import CLOSE, Handler, Node, Walk, bytes_item, str_item, text_item

_QUOTE_BYTES = frozenset(b"'\"")
_EQUALS = g.token("=")
_FIELDS = frozenset({g.INTERPOLATION, g.FORMAT_EXPRESSION})
_SPEC = Spelling(raw=False, is_bytes=False, formatted=False, template=False, begin=0, quotes=0)


def _string(walk: Walk, node: Node, depth: int) -> None:
    text = walk.source[node.start_byte : node.end_byte]
    simple = simple_value(text)
    if simple is not None:
        walk.out.append(str_item(simple))
        return
    how = spelling(text)
    if not how.quotes:  # Python 2's `x`
        walk.out += (b"(repr", text_item(text), CLOSE)
        return
    if how.formatted or how.template:
        _formatted(walk, (node,), depth)
        return
    value, is_bytes = string_value(text)
    walk.out.append(bytes_item(value) if is_bytes else str_item(value))


def _concatenated(walk: Walk, node: Node, depth: int) -> None:
    parts = [child for child in node.children if child.kind_id == g.STRING]
    hows = [spelling(walk.text(part)) for part in parts]
    if any(how.formatted or how.template for how in hows):
        _formatted(walk, parts, depth)
        return
    value = plain_value(walk.source, node)
    walk.out.append(bytes_item(value) if any(how.is_bytes for how in hows) else str_item(value))


def plain_value(source: bytes, node: Node) -> bytes:
    """The value of a literal without interpolations, or of several side by side."""
    strings = (node,) if node.kind_id == g.STRING else node.children
    return b"".join(
        string_value(source[string.start_byte : string.end_byte])[0]
        for string in strings
        if string.kind_id == g.STRING
    )


def _formatted(walk: Walk, strings: Iterable[Node], depth: int) -> None:
    """Formatted literals side by side as one: literal text by value, adjacent pieces merged."""
    out = walk.out
    mark = len(out)
    template = interpolated = False
    out.append(b"(fstring")
    literal = b""
    for string in strings:
        text = walk.text(string)
        how = spelling(text)
        template = template or how.template
        if not (how.formatted or how.template):
            literal += string_value(text)[0]
            continue
        at = string.start_byte + how.begin
        for child in string.children:
            if child.kind_id == g.INTERPOLATION:
                interpolated = True
                literal += content_value(walk.source[at : child.start_byte], how)
                if literal:
                    out.append(str_item(literal))
                literal = b""
                _interpolation(walk, child, depth + 1, how.raw)
                at = child.end_byte
        literal += content_value(walk.source[at : string.end_byte - how.quotes], how)
    if literal:
        out.append(str_item(literal))
    if not interpolated and not template:
        # Nothing to format: the value of a plain string, and ruff may join it with plain ones.
        out[mark:] = [str_item(literal)]
        return
    if template:
        out[mark] = b"(tstring"
    out.append(CLOSE)


def _interpolation(walk: Walk, node: Node, depth: int, raw: bool) -> None:
    out = walk.out
    out.append(b"(interpolation")
    for child in node.children:
        kind = child.kind_id
        if kind == _EQUALS:
            # `{x = }` shows the source text itself, so the text is the value.
            shown = walk.source[node.start_byte + 1 : child.end_byte]
            end = child.end_byte
            while walk.source[end : end + 1].isspace():
                end += 1
            shown += walk.source[child.end_byte : end]
            out.append(b"=shown")
            out.append(str_item(shown.replace(b"\r\n", b"\n")))
        elif kind == g.FORMAT_SPECIFIER:
            _format_specifier(walk, child, depth, raw)
        elif kind == g.TYPE_CONVERSION:
            out.append(walk.text(child).replace(b" ", b""))
        else:
            walk.emit((child,), depth)
    out.append(CLOSE)


def _format_specifier(walk: Walk, node: Node, depth: int, raw: bool) -> None:
    """The text outside nested fields by value, and the fields."""
    how = _SPEC._replace(raw=raw)
    walk.out.append(b"(format")
    at = node.start_byte + 1  # behind the colon
    for child in node.children:
        if child.kind_id in _FIELDS:
            _spec_text(walk, at, child.start_byte, how)
            _interpolation(walk, child, depth + 1, raw)
            at = child.end_byte
    _spec_text(walk, at, node.end_byte, how)
    walk.out.append(CLOSE)


def _spec_text(walk: Walk, start: int, end: int, how: Spelling) -> None:
    if start < end:
        walk.out.append(str_item(content_value(walk.source[start:end], how)))


def _number(walk: Walk, node: Node, depth: int) -> None:
    text = walk.text(node)
    walk.out.append(text if text.isdigit() else number_spelling(text))


def _is_plain_string(source: bytes, node: Node) -> bool:
    """A string literal, implicitly concatenated or not, that is neither bytes nor formatted."""
    if node.kind_id == g.STRING:
        if source[node.start_byte] in _QUOTE_BYTES:
            return True
        how = spelling(source[node.start_byte : node.end_byte])
        return how.quotes > 0 and not (how.is_bytes or how.formatted or how.template)
    if node.kind_id == g.CONCATENATED_STRING:
        return all(_is_plain_string(source, part) for part in node.children if part.kind_id not in g.EXTRAS)
    return False


def plain_string_of(source: bytes, statement: Node) -> Node | None:
    """The string of a statement that is nothing but a plain string, parenthesised or not."""
    if statement.kind_id != g.EXPRESSION_STATEMENT:
        return None
    held = statement.children
    while len(held) == 1 and held[0].kind_id == g.PARENTHESIZED:
        held = [child for child in held[0].named_children if child.kind_id not in g.EXTRAS]
    return held[0] if len(held) == 1 and _is_plain_string(source, held[0]) else None


FORMS: dict[str, Handler] = {
    "string": _string,
    "concatenated_string": _concatenated,
    "integer": _number,
    "float": _number,
}
