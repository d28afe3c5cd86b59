"""What goes to stdout: lines for a person, or exactly one JSON document."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import click

VERSION = 1
"""Of every command's document; raised when a field changes its meaning or goes away."""


class ReaderGoneError(Exception):
    """Whoever read stdout closed it (`kb show ... | head`); not a failure."""


def print_lines(lines: Iterable[str]) -> None:
    """Each line on stdout, without colours where it is no terminal that wants them."""
    try:
        for line in lines:
            click.echo(line)
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def print_document(command: str, payload: object) -> None:
    """The command's one JSON document: `{"schema": "kb.<command>/<version>", ...fields of the payload}`.

    Raises:
        ValueError: the payload has a field called `schema`, which is the envelope's.
    """
    body = jsonable(payload)
    fields = body if isinstance(body, dict) else {"items": body}
    if "schema" in fields:
        raise ValueError(f"the document of {command} has a field of its own called `schema`")
    print_lines([json.dumps({"schema": f"kb.{command}/{VERSION}", **fields}, indent=2, ensure_ascii=False)])


def jsonable(value: object) -> Any:
    """Records, models, mappings and sequences as JSON knows them; ids in hex, the rest as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return jsonable(value._asdict())
    if isinstance(value, Iterable) and not isinstance(value, PurePath):
        return [jsonable(item) for item in value]
    return str(value)


def flush() -> None:
    """Writes what stdout still holds, so that a closed pipe or a full disk is noticed here and not at exit."""
    if sys.stdout is None:  # the caller closed it
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def silence_stdout() -> None:
    """Points stdout at nothing, so that the interpreter's last flush does not complain."""
    if sys.stdout is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
