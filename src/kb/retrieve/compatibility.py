"""Whether a change of a contract or an entity breaks those who rely on it, and why.

Judged by the bodies that the extractors wrote, so it knows what they know: not what a handler does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from kb.retrieve.standing import StandsIn

Body = Mapping[str, Any]
Compatibility = Literal["breaking", "compatible"]

JUDGED = ("contract", "entity")
"""Kinds that others rely on by shape."""


class Reason(NamedTuple):
    """One difference, and whether it breaks anybody."""

    breaking: bool
    words: str


class Judgement(NamedTuple):
    """The verdict on a change with its reasons, the breaking ones first."""

    compatibility: Compatibility | None
    """None for kinds that are not judged."""
    reasons: tuple[str, ...]


def judge(kind: str, before: Body | None, after: Body | None) -> Judgement:
    """The verdict on an artifact that was added (no `before`), removed (no `after`) or changed."""
    if kind not in JUDGED:
        return Judgement(None, ())
    what = "route" if kind == "contract" else "entity"
    if before is None or after is None:
        breaking = after is None
        return _judged([Reason(breaking, f"{what} {'removed' if breaking else 'added'}")])
    return _judged(list(_contract(before, after) if kind == "contract" else _entity(before, after)))


def judge_standing(
    kind: str, before: Body | None, after: Body | None, *, was_in: StandsIn | None, is_in: StandsIn | None
) -> Judgement:
    """The verdict by what the repository offers: what stands in tests or examples only counts as absent.

    So a change among tests is not judged, and a route that is left in tests only has been removed.
    """
    offered, offers = None if was_in else before, None if is_in else after
    if kind not in JUDGED or (offered is None and offers is None):
        return Judgement(None, ())
    verdict = judge(kind, offered, offers)
    if offers is None and after is not None:
        return verdict._replace(reasons=(*verdict.reasons, f"stands in {is_in} only now"))
    if offered is None and before is not None:
        return verdict._replace(reasons=(*verdict.reasons, f"stood in {was_in} only"))
    return verdict


def _judged(reasons: Sequence[Reason]) -> Judgement:
    ordered = sorted(reasons, key=lambda reason: not reason.breaking)
    verdict: Compatibility = "breaking" if any(reason.breaking for reason in reasons) else "compatible"
    return Judgement(verdict, tuple(dict.fromkeys(reason.words for reason in ordered)))


# Contracts


def _contract(before: Body, after: Body) -> Iterator[Reason]:
    yield from _parameters(
        _by(before.get("parameters"), "in", "name"), _by(after.get("parameters"), "in", "name")
    )
    yield from _request(before.get("request_body"), after.get("request_body"))
    yield from _responses(before.get("responses"), after.get("responses"))
    for field, label in (("status_code", "status"), ("response_model", "response model")):
        yield from _changed(label, before.get(field), after.get(field))
    yield from _security(before.get("security"), after.get("security"))
    if after.get("deprecated") and not before.get("deprecated"):
        yield Reason(False, "now deprecated")
    if before.get("mounted") is not after.get("mounted"):
        gone = bool(before.get("mounted"))
        yield Reason(gone, "no longer mounted" if gone else "now mounted")
    for field in ("handler", "application", "framework"):
        if before.get(field) != after.get(field):
            yield Reason(False, f"{field} {before.get(field)} -> {after.get(field)}")
    if before.get("resolution") != after.get("resolution"):
        yield Reason(False, f"read {after.get('resolution')}, before {before.get('resolution')}")


def _parameters(before: dict[str, Body], after: dict[str, Body], what: str = "parameter") -> Iterator[Reason]:
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            yield Reason(True, f"{what} {name} removed")
            continue
        if old.get("type") != new.get("type"):
            yield Reason(True, f"{what} {name}: type {old.get('type')} -> {new.get('type')}")
        if bool(old.get("required")) != bool(new.get("required")):
            tighter = bool(new.get("required"))
            yield Reason(tighter, f"{what} {name} is {'required now' if tighter else 'optional now'}")
        if old.get("default") != new.get("default"):
            yield Reason(False, f"{what} {name}: default {old.get('default')} -> {new.get('default')}")
    for name, new in after.items():
        if name not in before:
            required = bool(new.get("required"))
            yield Reason(required, f"new {'required' if required else 'optional'} {what} {name}")


def _request(before: Body | None, after: Body | None) -> Iterator[Reason]:
    if not before and not after:
        return
    if not before or not after:
        if not after:
            yield Reason(True, "request body removed")
        else:
            required = bool((after or {}).get("required"))
            yield Reason(required, f"new {'required' if required else 'optional'} request body")
        return
    for field in ("media_type", "type"):
        yield from _changed(f"request body: {field}", before.get(field), after.get(field))
    if bool(before.get("required")) != bool(after.get("required")):
        tighter = bool(after.get("required"))
        yield Reason(tighter, f"request body is {'required now' if tighter else 'optional now'}")
    yield from _parameters(_by(before.get("fields"), "name"), _by(after.get("fields"), "name"), "body field")


def _responses(before: Body | None, after: Body | None) -> Iterator[Reason]:
    old, new = dict(before or {}), dict(after or {})
    for code, response in old.items():
        if code not in new:
            yield Reason(True, f"response {code} removed")
        elif isinstance(response, Mapping) and isinstance(new[code], Mapping):
            yield from _changed(f"response {code}", response.get("type"), new[code].get("type"))
    for code in new:
        if code not in old:
            yield Reason(False, f"response {code} added")


def _security(before: Any, after: Any) -> Iterator[Reason]:
    old = {
        entry["scheme"]: set(entry.get("scopes") or ())
        for entry in before or ()
        if isinstance(entry, Mapping)
    }
    new = {
        entry["scheme"]: set(entry.get("scopes") or ()) for entry in after or () if isinstance(entry, Mapping)
    }
    for scheme, scopes in new.items():
        if scheme not in old:
            yield Reason(True, f"now needs {scheme}")
        elif scopes - old[scheme]:
            yield Reason(True, f"{scheme} now needs {', '.join(sorted(scopes - old[scheme]))}")
    for scheme in old:
        if scheme not in new:
            yield Reason(False, f"no longer needs {scheme}")


def _changed(label: str, old: Any, new: Any) -> Iterator[Reason]:
    if old != new:
        yield Reason(True, f"{label} {_said(old)} -> {_said(new)}")


def _said(value: Any) -> str:
    return "none" if value is None else str(value)


# Entities


def _entity(before: Body, after: Body) -> Iterator[Reason]:
    enum = after.get("framework") == "enum"
    old = {**_by(before.get("inherited"), "name"), **_by(before.get("fields"), "name")}
    new = {**_by(after.get("inherited"), "name"), **_by(after.get("fields"), "name")}
    what = "member" if enum else "field"
    for name, field in old.items():
        if name not in new:
            yield Reason(True, f"{what} {name} removed")
        else:
            yield from _field(name, field, new[name], enum=enum)
    for name, field in new.items():
        if name not in old:
            needed = not enum and needs_value(field)
            yield Reason(needed, f"new {what} {name}" + (" without a default" if needed else ""))
    for label in ("table", "framework", "form"):
        yield from _changed(label, before.get(label), after.get(label))
    if before.get("primary_key") != after.get("primary_key"):
        yield Reason(True, f"primary key {_names(before)} -> {_names(after)}")
    yield from _relations(_by(before.get("relations"), "name"), _by(after.get("relations"), "name"))


def _names(body: Body) -> str:
    return ", ".join(map(str, body.get("primary_key") or ())) or "none"


def needs_value(field: Body) -> bool:
    """Whether whoever makes the entity has to give the field a value."""
    if field.get("required") is not None:
        return bool(field["required"])
    return "default" not in field and not field.get("nullable")


def _field(name: str, old: Body, new: Body, *, enum: bool) -> Iterator[Reason]:
    if enum:
        yield from _changed(f"member {name}:", old.get("default"), new.get("default"))
        return
    for label, entry in (("type", "type"), ("alias", "alias"), ("foreign key", "foreign_key")):
        yield from _changed(f"field {name}: {label}", old.get(entry), new.get(entry))
    if needs_value(old) != needs_value(new):
        tighter = needs_value(new)
        yield Reason(tighter, f"field {name} is {'required now' if tighter else 'optional now'}")
    if bool(old.get("nullable")) != bool(new.get("nullable")):
        loose = bool(new.get("nullable"))
        yield Reason(not loose, f"field {name} is {'nullable now' if loose else 'no longer nullable'}")
    was, now = old.get("constraints") or {}, new.get("constraints") or {}
    for rule in sorted({*was, *now}):
        if was.get(rule) != now.get(rule):
            gone = rule not in now
            yield Reason(not gone, f"field {name}: {rule} {_said(was.get(rule))} -> {_said(now.get(rule))}")
    if old.get("default") != new.get("default") and needs_value(old) == needs_value(new):
        yield Reason(
            False, f"field {name}: default {_said(old.get('default'))} -> {_said(new.get('default'))}"
        )


def _relations(old: dict[str, Body], new: dict[str, Body]) -> Iterator[Reason]:
    for name, relation in old.items():
        if name not in new:
            yield Reason(True, f"relation {name} removed")
            continue
        for entry in ("target", "cardinality"):
            yield from _changed(f"relation {name}: {entry}", relation.get(entry), new[name].get(entry))
    for name in new:
        if name not in old:
            yield Reason(False, f"new relation {name}")


def _by(entries: Any, *fields: str) -> dict[str, Body]:
    """Entries of a list by the words that name them; what is no entry is left out."""
    found: dict[str, Body] = {}
    for entry in entries or ():
        if isinstance(entry, Mapping) and all(field in entry for field in fields):
            found[" ".join(str(entry[field]) for field in fields)] = entry
    return found
