"""`make demo`: indexes this very repository at HEAD, shows one unit with its provenance, says what to try next."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from kb.cli.main import run
from kb.cli.terminal import dim, strong

ROOT = Path(__file__).parents[1]
NEXT = (
    ("show src/kb/errors.py:40 --source", "what is known about a line, with the very lines"),
    ("gaps", "what kb could not read, and why"),
    ("index <path or URL>", "a repository of yours"),
    ("db stop", "stop the embedded PostgreSQL; its data stays"),
    ("--help", "everything else"),
)


def step(*arguments: str) -> None:
    """Shows the command and runs it; the demo ends where a command fails."""
    shown = shlex.join("." if part == str(ROOT) else part for part in arguments)
    click.echo(strong(f"$ kb {shown}"))
    code = run(arguments)
    if code:
        sys.exit(code)
    click.echo()


def main() -> None:
    """Three commands and what to type next."""
    step("index", str(ROOT))
    step("status", "--repo", str(ROOT))
    step("show", "symbol:kb.errors.NotFoundError", "--repo", str(ROOT), "--source")
    click.echo(strong("What to type next"))
    width = max(len(arguments) for arguments, _ in NEXT)
    for arguments, purpose in NEXT:
        click.echo(f"  .venv/bin/kb {arguments.ljust(width)}  {dim(purpose)}")


if __name__ == "__main__":
    main()
