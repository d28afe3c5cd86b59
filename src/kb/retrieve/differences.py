"""What differs between two bodies, field by field, short enough to read in a list of changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

_SHOWN = 60
"""Characters of a value."""
_DEEP = 4
_NAMED_BY = ("in", "name", "key", "path", "target")
"""What tells the entries of a list apart, where they have it."""
_ABSENT = object()


class FieldChange(BaseModel):
    """An entry of a body that differs, with what it was and what it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    field: Annotated[str, Field(description="Path into the body: signature, fields[id].type...")]
    before: Annotated[str | None, Field(description="Shortened; None where the body had no such entry.")]
    after: Annotated[str | None, Field(description="Shortened; None where it has none any more.")]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    """Every entry that differs, as deep inside as it can be told; entries by name."""
    return tuple(_entries("", old, new, _DEEP))


def _entries(at: str, old: Mapping[str, Any], new: Mapping[str, Any], deep: int) -> Iterator[FieldChange]:
    for name in sorted({*old, *new}):
        inside = f"{at}.{name}" if at else str(name)
        yield from _value(inside, old.get(name, _ABSENT), new.get(name, _ABSENT), deep)


def _value(at: str, old: Any, new: Any, deep: int) -> Iterator[FieldChange]:
    if old == new:
        return
    if deep and isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _entries(at, old, new, deep - 1)
    elif deep and isinstance(old, list) and isinstance(new, list):
        yield from _items(at, old, new, deep - 1)
    else:
        before, after = _pair(old, new)
        yield FieldChange(field=at, before=before, after=after)


def _items(at: str, old: Sequence[Any], new: Sequence[Any], deep: int) -> Iterator[FieldChange]:
    was, now = _named(old), _named(new)
    if was is not None and now is not None and {*was} & {*now}:
        changed = [
            change
            for name in dict.fromkeys([*was, *now])
            for change in _value(f"{at}[{name}]", was.get(name, _ABSENT), now.get(name, _ABSENT), deep)
        ]
        if changed:
            yield from changed
            return
    gone, come = _only_in(old, new), _only_in(new, old)
    if not gone and not come:
        yield FieldChange(field=at, before=_shown(old), after=f"{_shown(new)} (another order)")
    elif len(gone) == 1 and len(come) == 1:
        yield from _value(f"{at}[]" if len(old) > 1 or len(new) > 1 else at, gone[0], come[0], deep)
    else:
        yield FieldChange(field=at, before=_listed(gone), after=_listed(come))


def _named(items: Sequence[Any]) -> dict[str, Any] | None:
    """The entries by what names them; None where something is not named, or two are alike."""
    found: dict[str, Any] = {}
    for item in items:
        name = (
            " ".join(str(item[part]) for part in _NAMED_BY if isinstance(item.get(part), str))
            if isinstance(item, Mapping)
            else ""
        )
        if not name or name in found:
            return None
        found[name] = item
    return found


def _only_in(items: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    left = Counter(map(_compact, others))
    found = []
    for item in items:
        if left[_compact(item)]:
            left[_compact(item)] -= 1
        else:
            found.append(item)
    return found


def _listed(items: Sequence[Any]) -> str | None:
    """Entries of a list that the other list has not; None for none of them."""
    return _cut(", ".join(_shown(item) for item in items)) if items else None


def _compact(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _shown(value: Any) -> str:
    if isinstance(value, list) and not any(isinstance(item, (list, Mapping)) for item in value):
        return _cut(", ".join(map(_compact, value)) or "[]")
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return _cut(value["name"])
    return _cut(_compact(value) or "''")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _pair(old: Any, new: Any) -> tuple[str | None, str | None]:
    """Both values; of two long texts the part from a little before where they begin to differ."""
    if isinstance(old, str) and isinstance(new, str) and max(len(old), len(new)) > _SHOWN:
        old, new = " ".join(old.split()), " ".join(new.split())
        same = next(
            (n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
        )
        start = max(0, same - 20)
        if start:
            return _cut(f"…{old[start:]}"), _cut(f"…{new[start:]}")
    return (None if old is _ABSENT else _shown(old)), (None if new is _ABSENT else _shown(new))
