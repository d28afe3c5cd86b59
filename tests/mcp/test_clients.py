from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from kb.cli.main import kb
from kb.errors import NotFoundError
from kb.mcp.clients import CLIENTS, client_named, configuration

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")


def parsed(name, text):
    return tomllib.loads(text) if name == "codex" else json.loads(text)


@pytest.mark.parametrize("name", CLIENTS)
def test_the_documentation_shows_each_client_as_the_command_prints_it(name):
    section = PAGE.split(f"### {CLIENTS[name].title}\n", 1)[1].split("\n### ", 1)[0]
    blocks = re.findall(r"^```(?:json|toml)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert blocks == [
        configuration(CLIENTS[name], "kb") + "\n",
        configuration(CLIENTS[name], "kb", "http://127.0.0.1:8765/mcp") + "\n",
    ]
    assert CLIENTS[name].file in section


@pytest.mark.parametrize("name", CLIENTS)
def test_each_form_starts_kb_serve_or_names_the_url(name):
    (servers,) = (
        value
        for key, value in parsed(name, configuration(CLIENTS[name], "/bin/kb")).items()
        if key in {"mcpServers", "servers", "context_servers", "mcp_servers"}
    )
    assert servers["kb"]["command"] == "/bin/kb"
    assert servers["kb"]["args"][0] == "serve"
    remote = configuration(CLIENTS[name], "/bin/kb", "http://kb.example/mcp")
    assert "http://kb.example/mcp" in remote
    assert "/bin/kb" not in remote
    parsed(name, remote)


def test_the_command_prints_what_can_be_pasted_and_lists_the_clients():
    printed = CliRunner().invoke(kb, ["mcp-config", "codex"])
    assert tomllib.loads(printed.stdout)["mcp_servers"]["kb"]["args"] == ["serve"]
    listed = CliRunner().invoke(kb, ["mcp-config"])
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(CLIENTS)


def test_an_unknown_client_is_told_the_known_ones():
    with pytest.raises(NotFoundError) as caught:
        client_named("emacs")
    assert "claude-code" in caught.value.hint


def test_every_tool_resource_and_prompt_is_documented(server):
    import anyio
    from mcp import Client

    async def listed():
        async with Client(server, mode="legacy") as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
            templates = (await client.list_resource_templates()).resource_templates
            return [*tools, *prompts, *(template.uri_template for template in templates)]

    assert [name for name in anyio.run(listed) if f"`{name}`" not in PAGE] == []
