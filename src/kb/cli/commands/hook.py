"""`kb hook`: let git call kb after each commit."""

from __future__ import annotations

import click

from kb.cli.options import json_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.history import hook_lines

HOOKS = ("post-commit", "post-merge", "post-receive")
"""As `kb.snapshot.hooks.HOOKS`, which is not imported to show help; a test compares."""


@click.group("hook")
def command() -> None:
    """Have git call kb after commits, merges and pushes.

    The hooks say nothing, run in the background, and never delay or fail what git does.
    """


@command.command("install")
@click.argument("repo", metavar="[REPO]", default=".", required=False)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(HOOKS),
    help="Install this hook and not the others; may be repeated.",
)
def install(*, repo: str, only: tuple[str, ...]) -> None:
    """Put kb's lines into the repository's hooks, or renew them.

    A hook that is there keeps all it does. Honours core.hooksPath.
    """
    from kb.bootstrap import own_program
    from kb.snapshot.hooks import install_hooks

    print_lines(hook_lines(install_hooks(repo, own_program(), only)))


@command.command("remove")
@click.argument("repo", metavar="[REPO]", default=".", required=False)
def remove(*, repo: str) -> None:
    """Take kb's lines out of the repository's hooks again."""
    from kb.snapshot.hooks import remove_hooks

    print_lines(hook_lines(remove_hooks(repo)))


@command.command("status")
@click.argument("repo", metavar="[REPO]", default=".", required=False)
@json_option
def status(*, repo: str, as_json: bool) -> None:
    """Say which hooks call kb."""
    from kb.snapshot.hooks import hook_status

    report = hook_status(repo)
    if as_json:
        print_document("hook.status", report)
    else:
        print_lines(hook_lines(report))
