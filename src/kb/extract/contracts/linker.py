"""What expressions come to as far as it can be told statically: values, texts, status codes, runs of loops."""

from __future__ import annotations

import re
from dataclasses import replace

from kb.extract.contracts.facts import Site
from kb.extract.contracts.lookups import Lookups
from kb.extract.contracts.place import (
    APPROXIMATE,
    UNKNOWN,
    Found,
    Place,
    Text,
    scope_around,
    scopes_outward,
    untold,
    worst,
)
from kb.extract.expressions import argument, brief, keywords, last, pairs, positional
from kb.structure.facts import Expr

_DEEP = 12
_STATUS = re.compile(r"HTTP_(\d{3})(?:_|$)")
_STATUS_NAMES = {
    "OK": "200", "CREATED": "201", "ACCEPTED": "202", "NO_CONTENT": "204", "RESET_CONTENT": "205",
    "PARTIAL_CONTENT": "206", "MOVED_PERMANENTLY": "301", "FOUND": "302", "SEE_OTHER": "303",
    "NOT_MODIFIED": "304", "TEMPORARY_REDIRECT": "307", "PERMANENT_REDIRECT": "308", "BAD_REQUEST": "400",
    "UNAUTHORIZED": "401", "PAYMENT_REQUIRED": "402", "FORBIDDEN": "403", "NOT_FOUND": "404",
    "METHOD_NOT_ALLOWED": "405", "NOT_ACCEPTABLE": "406", "REQUEST_TIMEOUT": "408", "CONFLICT": "409",
    "GONE": "410", "PRECONDITION_FAILED": "412", "UNSUPPORTED_MEDIA_TYPE": "415", "IM_A_TEAPOT": "418",
    "UNPROCESSABLE_ENTITY": "422", "UNPROCESSABLE_CONTENT": "422", "LOCKED": "423", "TOO_MANY_REQUESTS": "429",
    "INTERNAL_SERVER_ERROR": "500", "NOT_IMPLEMENTED": "501", "BAD_GATEWAY": "502",
    "SERVICE_UNAVAILABLE": "503", "GATEWAY_TIMEOUT": "504",
}  # fmt: skip


class Linker(Lookups):
    """The look-ups of one file's link, and the values of expressions."""

    def bound(self, place: Place, expr: Expr) -> tuple[Expr, Place]:
        """The expression with a loop variable at its head replaced by what the loop gives it."""
        if expr.kind in ("name", "call") and expr.value and place.bindings:
            head, _, rest = expr.value.partition(".")
            if head in place.bindings:
                value, where = place.bindings[head]
                if not rest and expr.kind == "name":
                    return value, where
                if value.kind == "name" and expr.kind == "name":
                    return Expr("name", f"{value.value}.{rest}"), where
        return expr, place

    def value(self, place: Place, expr: Expr | None, depth: int = 0) -> tuple[Expr, Place] | None:
        """The expression that a name finally stands for (any other expression stands for itself)."""
        if expr is None or depth > _DEEP:
            return None
        expr, place = self.bound(place, expr)
        if expr.kind != "name":
            return expr, place
        local = self.local(place, expr.value)
        if local is not None:
            return self.value(local[1], local[0], depth + 1)
        found = self.find(place, expr.value)
        if found is not None and found.assignment is not None and found.assignment.value is not None:
            if found.assignment.value.kind == "name" and found.assignment.value.value == expr.value:
                return None
            return self.value(found.place, found.assignment.value, depth + 1)
        return None

    def local(self, place: Place, name: str) -> tuple[Expr, Place] | None:
        """The value of a function's own variable, or the default of its parameter."""
        facts = self.facts(place.path)
        if facts is None or "." in name or not place.scope:
            return None
        for scope in scopes_outward(place.scope):
            for local in facts[0].locals:
                if scope and local.scope == scope and local.name == name:
                    return local.value, place.at(scope)
            around = self.at(place.path, scope) if scope else None
            for param in (
                around.definition.params if around is not None and around.definition is not None else ()
            ):
                if param.name == name and param.default is not None:
                    return param.default, place.at(scope_around(scope))
        return None

    def text(self, place: Place, expr: Expr | None, depth: int = 0) -> Text:
        """A string expression's value; "" for no expression."""
        if expr is None or (expr.kind == "const" and expr.value == "None"):
            return Text("")
        expr, place = self.bound(place, expr)
        if expr.kind == "str":
            return Text(expr.value)
        if depth > _DEEP:
            return untold("…")
        if expr.kind == "fstr":
            total = Text("")
            for part in expr.items:
                total = total + self.text(place, part, depth + 1)
            return total
        if expr.kind == "binop" and expr.value == "+":
            return self.text(place, expr.items[0], depth + 1) + self.text(place, expr.items[1], depth + 1)
        if expr.kind == "call" and last(expr.value) in ("str", "_", "gettext_lazy", "_lazy", "gettext"):
            given = positional(expr)
            return self.text(place, given[0], depth + 1) if given else Text("")
        if expr.kind == "name":
            return self._named_text(place, expr.value, depth)
        if expr.kind == "attr" and expr.items[0].kind == "call":
            return self._attribute_text(place, expr, depth)
        return untold(brief(expr))

    def _named_text(self, place: Place, name: str, depth: int) -> Text:
        local = self.local(place, name)
        if local is not None:
            said = self.text(local[1], local[0], depth + 1)
            return Text(
                said.value, worst(said.how, APPROXIMATE)
            )  # a caller may pass, a branch may assign another
        found = self.find(place, name)
        if found is not None and found.assignment is not None:
            return self._assigned_text(found, depth)
        head, _, attribute = name.rpartition(".")
        if attribute == "value":  # of a member of an enumeration
            return self._named_text(place, head, depth + 1) if depth <= _DEEP else untold(name)
        owner = self.find(place, head) if head else None
        if owner is not None and owner.assignment is not None and owner.assignment.value is not None:
            made = owner.assignment.value
            if made.kind == "call":  # an attribute of an instance: what the class gives as its default
                hit = self._default(owner.place, made, attribute, depth)
                if hit is not None:
                    return hit
        if owner is not None and owner.kind == "class":
            member = self.member(owner, attribute)
            if member is not None and member.assignment is not None:
                return self._assigned_text(member, depth)
        return untold(name)

    def _assigned_text(self, found: Found, depth: int) -> Text:
        value = found.assignment.value if found.assignment is not None else None
        if value is None:
            return untold(last(found.qualified))
        if value.kind == "call" and last(value.value) == "Field":
            value = argument(value, "default", 0)
        return self.text(found.place, value, depth + 1)

    def _default(self, place: Place, made: Expr, attribute: str, depth: int) -> Text | None:
        maker = self.find(place, made.value) if made.value else None
        if maker is not None and maker.kind in ("function", "method") and maker.definition is not None:
            returns = maker.definition.returns
            maker = (
                self.find(maker.place, returns.value)
                if returns is not None and returns.kind == "name"
                else None
            )
        if maker is None or maker.kind != "class":
            return None
        member = self.member(maker, attribute)
        if member is None or member.assignment is None:
            return None
        said = self._assigned_text(member, depth)
        return Text(said.value, worst(said.how, APPROXIMATE))  # an instance may say otherwise at run time

    def _attribute_text(self, place: Place, expr: Expr, depth: int) -> Text:
        said = self._default(place, expr.items[0], expr.value, depth)
        return said if said is not None else untold(brief(expr))

    def status(self, place: Place, expr: Expr | None) -> str | None:
        """A status code as text (`404`, `4XX`, `default`), None where it cannot be told."""
        if expr is None:
            return None
        expr, place = self.bound(place, expr)
        if expr.kind in ("num", "str"):
            return expr.value.upper() if expr.value != "default" else "default"
        if expr.kind == "name":
            name = last(expr.value)
            match = _STATUS.search(name)
            if match:
                return match.group(1)
            if expr.value.rpartition(".")[0].endswith("HTTPStatus") and name in _STATUS_NAMES:
                return _STATUS_NAMES[name]
            if expr.value.endswith(".value"):
                return self.status(place, Expr("name", expr.value.removesuffix(".value")))
            value = self.value(place, expr)
            if value is not None and value[0].kind == "num":
                return value[0].value
        return None

    def texts(self, place: Place, expr: Expr | None) -> list[str] | None:
        """The strings of a list, tuple or set; None where it is no such literal."""
        found = self.value(place, expr)
        if found is None or found[0].kind not in ("list", "tuple", "set"):
            return None
        return [self.text(found[1], item).value.replace(UNKNOWN, "") for item in found[0].items]

    def runs(self, path: str, site: Site) -> list[Place]:
        """A place for each time that the loops around a site run it; one where there is no loop."""
        places = [Place(path, site.scope)]
        for loop in reversed(site.loops):
            places = [inner for place in places for inner in self._iterate(place, loop.target, loop.iterable)]
        return places

    def _iterate(self, place: Place, target: Expr, iterable: Expr) -> list[Place]:
        found = self.value(place, iterable)
        if found is None:
            return [place]
        literal, where = found
        if literal.kind == "call" and literal.items and literal.items[0].kind == "name":
            owner, _, method = literal.value.rpartition(".")
            if method in ("items", "values", "keys") and owner:
                inner = self.value(where, Expr("name", owner))
                if inner is None or inner[0].kind != "dict":
                    return [place]
                entries = [(key, value) for key, value in pairs(inner[0]) if value is not None]
                chosen = {
                    "items": [Expr("tuple", "", entry) for entry in entries],
                    "values": [value for _, value in entries],
                    "keys": [key for key, _ in entries],
                }[method]
                literal, where = Expr("list", "", tuple(chosen)), inner[1]
        if literal.kind not in ("list", "tuple", "set"):
            return [place]
        return [
            replace(place, bindings={**place.bindings, **_unpack(target, element, where)})
            for element in literal.items
        ]


def _unpack(target: Expr, element: Expr, where: Place) -> dict[str, tuple[Expr, Place]]:
    if target.kind == "name":
        return {target.value: (element, where)}
    if target.kind in ("tuple", "list") and element.kind in ("tuple", "list"):
        found: dict[str, tuple[Expr, Place]] = {}
        for inner, part in zip(target.items, element.items, strict=False):
            found.update(_unpack(inner, part, where))
        return found
    return {}


def keyword(call: Expr, name: str) -> Expr | None:
    """A keyword argument of a call."""
    return keywords(call).get(name)
