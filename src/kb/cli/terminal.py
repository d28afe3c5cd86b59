"""What the terminal can show, and text from repositories made safe to show on it."""

from __future__ import annotations

import os
import re
import sys
from typing import IO, Any

import click

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def wants_color(stream: IO[Any] | None) -> bool:
    """True for a terminal, unless NO_COLOR is set to anything or TERM says it cannot."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)


def is_terminal(stream: IO[Any] | None) -> bool:
    """Whether the stream is a terminal; one that the caller closed (`2>&-`) is None, and none."""
    return stream is not None and stream.isatty()


def is_interactive() -> bool:
    """Whether a question can be asked: both ends are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def printable(text: str) -> str:
    """The text with control and direction-changing characters written as escapes.

    Names, paths and docstrings come out of repositories: they must not move the cursor, recolour or
    reorder what kb says. Tabs and line feeds stay.
    """
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode("ascii"), text)


def one_line(text: str) -> str:
    """`printable`, with every run of whitespace folded to one blank."""
    return printable(" ".join(text.split()))


def dim(text: str) -> str:
    """Secondary text."""
    return click.style(text, dim=True)


def strong(text: str) -> str:
    """What the eye should find first."""
    return click.style(text, bold=True)


def warning(text: str) -> str:
    """What a reader should not overlook."""
    return click.style(text, fg="yellow")
