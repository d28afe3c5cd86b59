"""`kb introspect`: an application's own contract, heard from the application in a sandbox."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from kb.cli.options import json_option
from kb.cli.output import print_document, print_lines
from kb.errors import UsageError


@click.command("introspect", short_help="Ask an app for its own contract, in a sandbox.")
@click.argument("target")
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Folder that the application is imported from (and its `src`). Default: the current one.",
)
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Interpreter that has the application's dependencies. Default: kb's own.",
)
@click.option("--factory", is_flag=True, help="TARGET is a function that returns the application.")
@click.option(
    "--env", "variables", multiple=True, metavar="NAME=VALUE", help="A variable to set; repeatable."
)
@click.option("--seconds", type=click.IntRange(1, 600), default=30, show_default=True, help="Time limit.")
@click.option(
    "--memory", type=click.IntRange(64, 65536), default=2048, show_default=True, help="Memory limit in MiB."
)
@json_option
def command(
    *,
    target: str,
    repo: Path,
    python: Path | None,
    factory: bool,
    variables: tuple[str, ...],
    seconds: int,
    memory: int,
    as_json: bool,
) -> None:
    """Run TARGET (package.module:attribute) in a sandbox and print its openapi() or its routes.

    For evaluation only: an index never runs the code that it reads. The sandbox has no network, sees
    the file system read-only, can start no process, and is ended at its limits; where that cannot be
    had, nothing is run. A Django application is named by its settings module or by its WSGI object.
    """
    from kb.introspect.run import Limits, Request, introspect

    request = Request(
        target,
        repo,
        factory=factory,
        environment=dict(_variable(text) for text in variables),
        limits=Limits(seconds=seconds, memory=memory << 20),
        python=python or Path(sys.executable),
    )
    answer = introspect(request)
    if as_json:
        print_document("introspect", answer)
        return
    click.echo(f"sandbox: {', '.join(f'{what}: {how}' for what, how in answer.protection.items())}", err=True)
    spoken = answer.routes if answer.openapi is None else answer.openapi
    print_lines([json.dumps(spoken, indent=2, ensure_ascii=False)])


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--env {text!r} is not NAME=VALUE")
    return name, value
