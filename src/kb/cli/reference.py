"""The command-line reference, written from the commands themselves: `python -m kb.cli.reference [FILE]`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kb.cli.main import kb

_PREFACE = """\
# Command line

Written from the commands by `make docs`; a test compares. Exit codes and JSON are described in
[exit-codes.md](exit-codes.md) and [json.md](json.md), variables in [configuration.md](configuration.md).
"""


def reference() -> str:
    """The whole reference as Markdown: each command with its usage, help, arguments and options."""
    return _PREFACE + "".join(f"\n{section}" for section in _sections(kb, "kb", None))


def _sections(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, parent=parent, info_name=path.rpartition(" ")[2], terminal_width=100)
    yield _section(command, path, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _sections(child, f"{path} {name}", context)


def _section(command: click.Command, path: str, context: click.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## {path}", f"```text\n{path} {usage}\n```", _help(command)]
    records = (parameter.get_help_record(context) for parameter in command.params)
    rows = [record for record in records if record and record[1]]
    if rows:
        parts.append("\n".join(["| option | |", "|---|---|", *(_row(names, text) for names, text in rows)]))
    if command.epilog:
        parts.append(_epilog(command.epilog))
    return "\n\n".join(part for part in parts if part) + "\n"


def _help(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "")


def _epilog(text: str) -> str:
    if text.startswith("\b\n"):
        return f"```text\n{text[2:].strip()}\n```"
    return inspect.cleandoc(text)


def _row(names: str, text: str) -> str:
    escaped, described = (" ".join(part.split()).replace("|", r"\|") for part in (names, text))
    return f"| `{escaped}` | {described} |"


def main(arguments: list[str]) -> int:
    """Writes the reference to the file that is named, or to stdout."""
    if arguments:
        Path(arguments[0]).write_text(reference(), encoding="utf-8")
    else:
        click.echo(reference(), nl=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
