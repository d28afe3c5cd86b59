"""`kb mcp-config`: configuration of MCP clients, ready to paste."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from kb.cli.options import json_option
from kb.cli.output import print_document, print_lines


@click.command("mcp-config")
@click.argument("client", metavar="[CLIENT]", required=False)
@click.option("--url", metavar="URL", help="Of a server that runs already: kb serve --http.")
@json_option
def command(*, client: str | None, url: str | None, as_json: bool) -> None:
    """Print the configuration that makes an MCP client use kb.

    CLIENT is claude-code, claude-desktop, cursor, vscode, zed, codex, gemini-cli or windsurf. Without one
    they are listed with the file that each reads.
    """
    from kb.mcp.clients import CLIENTS, client_named, configuration

    if client is None:
        if as_json:
            listed = [{"name": one.name, "title": one.title, "file": one.file} for one in CLIENTS.values()]
            print_document("mcp-config.list", {"clients": listed})
        else:
            print_lines(f"{one.name:<16}{one.title:<16}{one.file}" for one in CLIENTS.values())
        return
    chosen = client_named(client)
    text = configuration(chosen, _program(), url)
    if as_json:
        fields = {"client": chosen.name, "file": chosen.file, "text": text, "note": chosen.note or None}
        print_document("mcp-config", fields)
        return
    click.echo(f"put this into {chosen.file}" + (f" ({chosen.note})" if chosen.note else ""), err=True)
    print_lines([text])


def _program() -> str:
    """Full path of the `kb` that runs now: clients start it without a shell's PATH."""
    found = shutil.which(sys.argv[0]) or shutil.which("kb")
    # A client starts it from wherever it likes: a relative path would not be found.
    return str(Path(found).absolute()) if found else "kb"
