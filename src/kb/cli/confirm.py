"""Asking before something cannot be undone."""

from __future__ import annotations

import click

from kb.cli.terminal import is_interactive, printable
from kb.errors import KbError, UsageError


def confirm(question: str, *, yes: bool) -> None:
    """Returns when `--yes` was given or the user agreed.

    Raises:
        UsageError: nobody can be asked and `--yes` was not given.
        KbError: the user said no.
    """
    if yes:
        return
    if not is_interactive():
        raise UsageError(f"{question} needs an answer", hint="repeat the command with --yes")
    if not click.confirm(printable(question), err=True):
        raise KbError("nothing was changed: not confirmed")
