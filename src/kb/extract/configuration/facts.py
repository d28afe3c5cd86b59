"""What one blob says about configuration, as structs, with the keys that it is found by."""

from __future__ import annotations

import msgspec

from kb.structure.facts import Expr, SpanRef

SOURCE = "configuration"


class Read(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One place that reads or writes a variable or a setting."""

    family: str
    """`env` | `django` | `flask`."""
    name: str
    """Literal name, a pattern with `*`, or "" where it is made at run time."""
    span: SpanRef
    scope: str = ""
    role: str = "read"
    """`read` | `write` | `delete`."""
    via: str = ""
    default: str | None = None
    required: bool = False
    cast: str = ""
    reader: str = ""
    """An imported name that reads, if it is what linking finds it to be (`config` of `from app.conf import config`)."""


class Option(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One option or positional argument of a command line."""

    names: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    """`default`, `type`, `required`, `help`... as written."""
    span: SpanRef = -1
    dynamic: bool = False


class Parser(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One argparse parser or subparser."""

    span: SpanRef
    scope: str
    name: str = ""
    """The subcommand's name, or a literal `prog`."""
    parent: int = -1
    """Index of the parser that it is a subcommand of."""
    given: bool = False
    """The function was handed the parser (`def add_arguments(self, parser)`)."""
    purpose: str = ""
    options: tuple[Option, ...] = ()
    function: str = ""
    """Dotted name given to `set_defaults(func=...)`."""
    dynamic: bool = False


class Mounted(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A command or Typer application that a call adds to another."""

    parent: str
    child: str
    name: str
    span: SpanRef
    scope: str = ""


class Made(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A group or application of commands that a function makes and keeps in a variable."""

    name: str
    maker: str
    scope: str


class Shared(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """An option of click that a function gives to the commands that it decorates."""

    scope: str
    expr: Expr


class ConfigurationFacts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Everything of one blob."""

    reads: tuple[Read, ...] = ()
    parsers: tuple[Parser, ...] = ()
    mounted: tuple[Mounted, ...] = ()
    is_settings: bool = False
    """The module looks like a Django settings module by the names that it assigns."""
    made: tuple[Made, ...] = ()
    sources: tuple[str, ...] = ()
    """What `app.config.from_object(...)` is given: a dotted name, as text or as written."""
    shared: tuple[Shared, ...] = ()
