"""A group of commands of which each is imported only when it is called or listed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by section and name, each the `command` of the module that the table names."""

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.modules = {name: module for section in sections.values() for name, module in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table, which is the order of the help page."""
        return [*self.modules, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None where there is none of that name."""
        module = self.modules.get(cmd_name)
        if module is None:
            return super().get_command(ctx, cmd_name)
        command: click.Command = import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As Click does, with near matches among the commands that are not imported yet."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            names = self.list_commands(ctx)
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=names, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands with their first help line, section by section."""
        width = formatter.width - 6 - max(map(len, self.modules))
        for title, section in self.sections.items():
            commands = {name: self.get_command(ctx, name) for name in section}
            rows = [
                (name, command.get_short_help_str(width)) for name, command in commands.items() if command
            ]
            with formatter.section(title):
                formatter.write_dl(rows)
