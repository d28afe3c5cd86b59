"""Request bodies: the parts that an operation takes, and what FastAPI joins them to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kb.extract.contracts.annotations import is_model
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import Found
from kb.extract.expressions import dotted, last
from kb.structure.facts import Expr

_UPLOAD = frozenset({"UploadFile"})


@dataclass(frozen=True)
class BodyField:
    """One part of a request body before FastAPI joins them."""

    name: str
    source: str
    """`body`, `form` or `file`."""
    type: str
    required: bool
    embed: bool = False
    media_type: str = ""
    models: tuple[Found, ...] = ()
    model: Found | None = None
    via: str = ""


def joined(linker: Linker, parts: list[BodyField]) -> dict[str, Any] | None:
    """The body as FastAPI joins its parts, None where nothing is read from it."""
    if not parts:
        return None
    form = any(part.source != "body" for part in parts)
    file = any(part.source == "file" for part in parts)
    media = (
        "multipart/form-data" if file else "application/x-www-form-urlencoded" if form else "application/json"
    )
    media = next((part.media_type for part in parts if part.media_type), media)
    single = parts[0] if len(parts) == 1 else None
    whole = (
        single is not None
        and not single.embed
        and (single.source == "body" or (single.source == "form" and _is_model(linker, single)))
    )
    body: dict[str, Any] = {"media_type": media, "required": any(part.required for part in parts)}
    if whole and single is not None:
        return {**body, "type": single.type, "name": single.name}
    body["fields"] = [
        {"name": part.name, "type": part.type, "required": part.required, "source": part.source}
        | ({"via": part.via} if part.via else {})
        for part in parts
    ]
    return body


def _is_model(linker: Linker, part: BodyField) -> bool:
    return part.model is not None and is_model(linker, part.model)


def mentions_upload(expr: Expr | None) -> bool:
    """Whether a type is, or holds, an uploaded file."""
    if expr is None:
        return False
    return last(dotted(expr)) in _UPLOAD or any(mentions_upload(item) for item in expr.items)
