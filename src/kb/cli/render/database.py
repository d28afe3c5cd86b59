"""The state of the database, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kb.cli.render.words import columns
from kb.cli.terminal import one_line

_SCHEMA = {
    "current": "current",
    "empty": "none yet: the first command that needs it makes it",
    "behind": "behind: run `kb db migrate`",
    "ahead": "ahead of this kb: upgrade kb",
    "foreign": "the database holds tables that are not kb's",
}


def database_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """One line a property; those that do not apply are left out."""
    rows = [("database", "embedded server" if found["kind"] == "embedded" else "server of the settings")]
    if found["kind"] == "embedded":
        rows.append(("state", f"running, pid {found['pid']}" if found["running"] else "stopped"))
    rows.append(("url", one_line(str(found["url"]))))
    rows += [(name, one_line(str(found[name]))) for name in ("data", "log") if found[name] is not None]
    schema = found["schema_state"]
    if schema is not None:
        revision = f"{schema['found']}, " if schema["found"] else ""
        rows.append(("schema", revision + _SCHEMA[schema["relation"]]))
    yield from columns(rows, indent="")
