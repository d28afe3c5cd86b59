"""Ready-to-paste configuration of MCP clients, each in its own form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kb.errors import NotFoundError
from kb.mcp.rendering import Answers


class Launch(NamedTuple):
    """How a client reaches the server."""

    command: str
    arguments: tuple[str, ...]
    url: str | None = None
    """Of a server that runs already; None where the client starts its own."""


@dataclass(frozen=True)
class Client:
    """A client, and where its configuration lies."""

    name: str
    title: str
    file: str
    answers: Answers
    """What it hands to its model: structured content, or text alone."""
    render: Callable[[Launch], str]
    note: str = ""


def _stdio(launch: Launch) -> dict[str, Any]:
    return {"command": launch.command, "args": list(launch.arguments)}


def _json(body: Mapping[str, Any]) -> str:
    return json.dumps(body, indent=2)


def _mcp_servers(token: str, url_key: str = "url", **remote: str) -> Callable[[Launch], str]:
    """The form that most clients share: `mcpServers` with a command, or a URL with headers."""

    def render(launch: Launch) -> str:
        if launch.url is None:
            entry = _stdio(launch)
        else:
            entry = {**remote, url_key: launch.url, "headers": {"Authorization": f"Bearer {token}"}}
        return _json({"mcpServers": {"kb": entry}})

    return render


def _vscode(launch: Launch) -> str:
    if launch.url is None:
        return _json({"servers": {"kb": {"type": "stdio", **_stdio(launch)}}})
    token = {"type": "promptString", "id": "kb-token", "description": "KB_AUTH_TOKEN", "password": True}
    headers = {"Authorization": "Bearer ${input:kb-token}"}
    return _json(
        {"inputs": [token], "servers": {"kb": {"type": "http", "url": launch.url, "headers": headers}}}
    )


def _zed(launch: Launch) -> str:
    if launch.url is None:
        return _json({"context_servers": {"kb": {"source": "custom", **_stdio(launch), "env": {}}}})
    headers = {"Authorization": "Bearer <KB_AUTH_TOKEN>"}
    return _json({"context_servers": {"kb": {"url": launch.url, "headers": headers}}})


def _codex(launch: Launch) -> str:
    if launch.url is None:
        arguments = json.dumps(list(launch.arguments))
        return f"[mcp_servers.kb]\ncommand = {json.dumps(launch.command)}\nargs = {arguments}"
    return f'[mcp_servers.kb]\nurl = {json.dumps(launch.url)}\nbearer_token_env_var = "KB_AUTH_TOKEN"'


_PLACEHOLDER = "<KB_AUTH_TOKEN>"

CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            ".mcp.json in the project",
            "structured",
            _mcp_servers("${KB_AUTH_TOKEN}", type="http"),
            "or: claude mcp add kb -- kb serve",
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            "claude_desktop_config.json (Settings, Developer, Edit Config)",
            "text",
            _mcp_servers(_PLACEHOLDER, type="http"),
            "it does not have your shell's PATH: the command is a full path",
        ),
        Client(
            "cursor",
            "Cursor",
            ".cursor/mcp.json in the project, or ~/.cursor/mcp.json",
            "text",
            _mcp_servers("${env:KB_AUTH_TOKEN}"),
        ),
        Client("vscode", "VS Code", ".vscode/mcp.json in the project", "text", _vscode),
        Client("zed", "Zed", "settings.json (zed: open settings)", "text", _zed),
        Client("codex", "Codex CLI", "~/.codex/config.toml", "structured", _codex),
        Client(
            "gemini-cli",
            "Gemini CLI",
            ".gemini/settings.json in the project, or ~/.gemini/settings.json",
            "text",
            _mcp_servers("$KB_AUTH_TOKEN", "httpUrl"),
        ),
        Client(
            "windsurf",
            "Windsurf",
            "~/.codeium/windsurf/mcp_config.json",
            "text",
            _mcp_servers("${env:KB_AUTH_TOKEN}", "serverUrl"),
        ),
    )
}


def client_named(name: str) -> Client:
    """The client of that name.

    Raises:
        NotFoundError: kb has no form for it; lists those it has.
    """
    found = CLIENTS.get(name.lower())
    if found is None:
        raise NotFoundError(f"no client is called {name!r}", hint=f"there are: {', '.join(CLIENTS)}")
    return found


def configuration(client: Client, command: str, url: str | None = None) -> str:
    """What to put into the client's file; `command` starts kb where there is no URL."""
    arguments = ("serve",) if client.answers == "structured" else ("serve", "--answers", "text")
    return client.render(Launch(command, arguments, url))
