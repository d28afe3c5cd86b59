"""`kb repo`: the repositories that kb knows."""

from __future__ import annotations

import click

from kb.cli.confirm import confirm
from kb.cli.options import db_url_option, json_option, yes_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.words import columns
from kb.cli.terminal import one_line


@click.group("repo")
def command() -> None:
    """List, rename or remove indexed repositories."""


@command.command("list")
@db_url_option
@json_option
def list_repositories(*, db_url: str | None, as_json: bool) -> None:
    """List the indexed repositories by name."""
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.snapshot.repositories import list_all

    with open_app(load_settings(db_url=db_url)) as app:
        rows = list_all(app)
    if as_json:
        # Surrogate keys stay inside: a repository is known by its name and its location.
        listed = [{"name": row.name, "location": row.location, "is_remote": row.is_remote} for row in rows]
        print_document("repo.list", {"repositories": listed})
    elif rows:
        print_lines(columns([(one_line(row.name), one_line(row.location)) for row in rows], indent=""))
    else:
        print_lines(["nothing is indexed yet: kb index <path or URL>"])


@command.command("rename")
@click.argument("old", metavar="NAME")
@click.argument("new", metavar="NEW-NAME")
@db_url_option
def rename_repository(*, old: str, new: str, db_url: str | None) -> None:
    """Give a repository another name in kb."""
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.snapshot.repositories import rename

    with open_app(load_settings(db_url=db_url)) as app:
        rename(app, old, new)
    print_lines([f"{one_line(old)} is now {one_line(new)}"])


@command.command("remove")
@click.argument("name", metavar="NAME")
@yes_option
@db_url_option
def remove_repository(*, name: str, yes: bool, db_url: str | None) -> None:
    """Erase everything that kb stores of a repository.

    The git repository itself is never touched; kb's own mirror of a remote one goes too.
    """
    from kb.bootstrap import open_app
    from kb.config import load_settings
    from kb.snapshot.repositories import remove

    with open_app(load_settings(db_url=db_url)) as app:
        confirm(f"erase what kb stores of {name}?", yes=yes)
        removed = remove(app, name)
    print_lines([f"removed {one_line(removed.name)} ({one_line(removed.location)})"])
