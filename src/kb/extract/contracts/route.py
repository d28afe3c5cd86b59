"""One route as the framework modules hand it over, and the artifact that it becomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kb.extract.api import FileView
from kb.extract.contracts.place import APPROXIMATE, DYNAMIC, EXACT, UNKNOWN, Text, worst
from kb.model.artifacts import ArtifactDraft, Grounding, Link

KIND = "contract"

_CONFIDENCE = {EXACT: 100, APPROXIMATE: 80, DYNAMIC: 60}
_CONDITIONAL = 90
_UNMOUNTED = 50
_NOTHING: tuple[Any, ...] = (None, [], {}, "", False)


@dataclass(frozen=True)
class Root:
    """The application (or the router without one) at the top of a route's mounts."""

    label: str
    """Dotted name; "" for the one that a function is handed."""
    mounted: bool = True
    """It is an application, or the URL configuration that a settings module names."""
    path: str = ""
    """File that makes it."""


@dataclass
class Route:
    """One operation: a method at a path."""

    framework: str
    method: str
    """`GET`..., `WEBSOCKET`, `ANY` where every method is let through, `MOUNT` for a foreign application."""
    path: Text
    root: Root
    handler: str
    """Dotted name of what answers, or how it is written where it cannot be told."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further entries of the body; empty ones are left out."""
    groundings: list[Grounding] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    docstring: str | None = None
    conditional: bool = False
    unresolved: list[str] = field(default_factory=list)
    """What could not be told statically, in words."""

    def __post_init__(self) -> None:
        """What could not be told is shown as written."""
        self.path = Text(self.path.value.replace(UNKNOWN, ""), self.path.how)

    def stand_on(self, grounding: Grounding | None) -> None:
        """Add a grounding, where there is one."""
        if grounding is not None and grounding not in self.groundings:
            self.groundings.append(grounding)


def key_of(route: Route, primary: str, file: FileView) -> str:
    """Logical key without a counter: `api:GET /orders`, with `@<application>` for any but the primary one.

    A path that cannot be told says nothing by itself: its key names the module too (`#<module>`).
    """
    other = f"@{route.root.label}" if route.root.label and route.root.label != primary else ""
    key = f"api:{route.method} {route.path.value}{other}"
    if route.path.how != DYNAMIC:
        return key
    return f"{key}#{file.key_prefix}{file.module_name}" if file.module_name else f"{key}#{file.path}"


def draft(route: Route, key: str) -> ArtifactDraft:
    """The artifact of one route."""
    resolution = worst(route.path.how, APPROXIMATE if route.unresolved else EXACT)
    confidence = _CONFIDENCE[resolution]
    if route.conditional:
        confidence = min(confidence, _CONDITIONAL)
    if not route.root.mounted:
        confidence = min(confidence, _UNMOUNTED)
    body: dict[str, Any] = {
        "framework": route.framework,
        "methods": [route.method],
        "path": route.path.value if route.path.value or resolution != DYNAMIC else "dynamic",
        "handler": route.handler,
        "application": route.root.label,
        "mounted": route.root.mounted,
        "resolution": resolution,
        **{name: _shown(value) for name, value in route.details.items() if value not in _NOTHING},
    }
    if route.conditional:
        body["conditional"] = True
    if route.unresolved:
        body["unresolved"] = list(dict.fromkeys(route.unresolved))
    title = f"{route.method} {route.path.value}"
    return ArtifactDraft(
        KIND,
        key,
        title,
        body,
        "\n".join(_lines(route, title, body)),
        tuple(dict.fromkeys(route.groundings)),
        tuple(dict.fromkeys(route.links)),
        confidence,
    )


def _shown(value: Any) -> Any:
    return value.replace(UNKNOWN, "") if isinstance(value, str) else value


def _lines(route: Route, title: str, body: dict[str, Any]) -> Iterable[str]:
    yield title
    summary = body.get("summary") or body.get("description") or _first_paragraph(route.docstring)
    if summary:
        yield str(summary)
    yield f"Handled by {route.handler} ({route.framework})."
    parameters = body.get("parameters")
    if parameters:
        yield "Parameters: " + "; ".join(map(_parameter, parameters)) + "."
    request = body.get("request_body")
    if request:
        fields = request.get("fields")
        inner = ", ".join(_field(entry) for entry in fields) if fields else request.get("type", "")
        yield f"Request body ({request['media_type']}): {inner}."
    responses = body.get("responses")
    if responses:
        said = (f"{code} {entry['type']}" if entry.get("type") else code for code, entry in responses.items())
        yield "Responses: " + ", ".join(said) + "."
    for name, label in (("tags", "Tags"), ("dependencies", "Depends on"), ("security", "Security")):
        values = body.get(name)
        if values:
            yield f"{label}: " + ", ".join(v["scheme"] if isinstance(v, dict) else v for v in values) + "."
    if body.get("deprecated"):
        yield "Deprecated."
    if not route.root.mounted:
        yield "Not mounted by any application that could be found."
    if route.unresolved:
        yield "Not told statically: " + "; ".join(dict.fromkeys(route.unresolved)) + "."


def _parameter(entry: dict[str, Any]) -> str:
    parts = [entry["in"], entry.get("type", "")]
    may_be_absent = entry["in"] == "path" and "default" not in entry
    left_out = "may be left out" if may_be_absent else f"default {entry.get('default', 'none')}"
    parts.append("required" if entry["required"] else left_out)
    return f"{entry['name']} ({', '.join(part for part in parts if part)})"


def _field(entry: dict[str, Any]) -> str:
    return f"{entry['name']}: {entry['type']}" if entry.get("type") else str(entry["name"])


def _first_paragraph(docstring: str | None) -> str:
    return " ".join((docstring or "").split("\n\n")[0].split())
