"""An entity's body as a person would want to read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHOWN = {
    "sqlmodel": "SQLModel",
    "pydantic": "Pydantic",
    "sqlalchemy": "SQLAlchemy",
    "django": "Django",
    "attrs": "",
    "enum": "",
    "typeddict": "",
    "namedtuple": "",
    "dataclass": "",
}


def entity_text(body: Mapping[str, Any]) -> str:
    """Name, kind, purpose, then fields, inherited fields and relations, one a line."""
    framework = _SHOWN.get(body["framework"], body["framework"])
    head = f"{body['name']}: {framework} {body['form']}".replace(":  ", ": ")
    if body.get("table"):
        head += f", table {body['table']}"
    if body.get("abstract"):
        head += ", abstract"
    lines = [head]
    if body.get("bases"):
        lines.append(f"bases: {', '.join(body['bases'])}")
    if body.get("doc"):
        lines.append(body["doc"])
    if body.get("resolution") == "dynamic":
        lines.append("Some of it is made at run time and cannot be read from the source.")
    members = body["framework"] == "enum"
    lines.extend(_member(entry) if members else _field(entry) for entry in body["fields"])
    owners: dict[str, list[str]] = {}
    for entry in body.get("inherited", ()):
        owners.setdefault(entry["from"], []).append(entry["name"])
    lines.extend(f"inherited from {owner}: {', '.join(names)}" for owner, names in owners.items())
    if body.get("init_only"):
        lines.append(f"taken by __init__ only: {', '.join(body['init_only'])}")
    lines.extend(_relation(entry) for entry in body.get("relations", ()))
    for name, value in {**body.get("options", {}), **body.get("config", {}), **body.get("meta", {})}.items():
        lines.append(f"{name}: {value}")
    lines.extend(f"constraint {entry}" for entry in body.get("table_args", ()))
    return "\n".join(lines)


def _member(entry: Mapping[str, Any]) -> str:
    alias = entry.get("constraints", {}).get("alias_of")
    return f"- {entry['name']} = {entry.get('default', '')}" + (f" (alias of {alias})" if alias else "")


def _field(entry: Mapping[str, Any]) -> str:
    line = f"- {entry['name']}" + (f": {entry['type']}" if entry["type"] else "")
    if "default" in entry:
        line += f" = {entry['default']}"
    notes = []
    if entry.get("primary_key"):
        notes.append("primary key")
    if entry.get("required") is False and "default" not in entry and not entry.get("primary_key"):
        notes.append("optional")
    if entry.get("nullable"):
        notes.append("nullable")
    if entry.get("foreign_key"):
        notes.append(f"foreign key to {entry['foreign_key']}")
    if entry.get("alias"):
        notes.append(f"alias {entry['alias']}")
    notes.extend(f"{name} {value}" for name, value in entry.get("constraints", {}).items())
    if entry.get("resolution"):
        notes.append("declared by code")
    line += f" ({', '.join(notes)})" if notes else ""
    return line + (f": {entry['description']}" if entry.get("description") else "")


def _relation(entry: Mapping[str, Any]) -> str:
    line = f"{entry['name']} -> {entry['target']}: {entry['cardinality']}"
    if entry.get("through"):
        line += f", through {entry['through']}"
    if entry.get("back_populates"):
        line += f", back as {entry['back_populates']}"
    if entry["resolution"] not in ("exact", "external"):
        line += f" [{entry['resolution']}]"
    return line
