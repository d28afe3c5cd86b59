"""Driver errors become KbErrors here and nowhere else, chosen by constraint name and SQLSTATE.

Messages carry the server's primary message only: never DETAIL (it quotes rows), never a connection
string (it may hold a password).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from kb.errors import DatabaseError, GroundingError, IntegrityError, KbError, UsageError

GROUNDED = "artifact_grounded_check"

_USAGE = {
    "repository_name_key": "another repository already has this name",
    "repository_location_key": "this repository is already known under another name",
}

_HINTS: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.UndefinedTable, "The schema is not the one this kb expects: run `kb db migrate`."),
    (errors.UndefinedColumn, "The schema is not the one this kb expects: run `kb db migrate`."),
    (errors.UndefinedObject, "The schema is not the one this kb expects: run `kb db migrate`."),
    (errors.InsufficientPrivilege, "The database's user lacks a right: see docs/schema.md on roles."),
    (errors.ReadOnlySqlTransaction, "This connection only reads."),
    (errors.LockNotAvailable, "Another session uses the tables: end it and try again."),
    (errors.QueryCanceled, "The statement ran into its time limit."),
    (errors.DiskFull, "Free some space on the database's disk and run the command again."),
    (errors.InvalidPassword, "Check the user and the password of the database URL."),
    (errors.InvalidAuthorizationSpecification, "Check the user and the password of the database URL."),
    (errors.InvalidCatalogName, "Create the database first, or correct its name in the URL."),
)


def convert(error: psycopg.Error) -> KbError:
    """The KbError that says what the driver's error means to kb; its data has constraint and SQLSTATE."""
    diagnostic = error.diag
    constraint = diagnostic.constraint_name
    data: dict[str, Any] = {"constraint": constraint, "sqlstate": error.sqlstate}
    said = diagnostic.message_primary or _first_line(error)
    if constraint == GROUNDED:
        return GroundingError(said, **data)
    if constraint in _USAGE:
        return UsageError(_USAGE[constraint], **data)
    if constraint is not None or isinstance(error, psycopg.IntegrityError):
        return IntegrityError(f"the database refused a row: {said}", **data)
    hint = next((text for kind, text in _HINTS if isinstance(error, kind)), None)
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        hint = "Is the server running? `kb db status` says which database kb uses."
    return DatabaseError(f"the database refused: {said}", hint=hint, **data)


@contextmanager
def converted_errors() -> Iterator[None]:
    """Driver errors that leave the block leave it as KbErrors."""
    try:
        yield
    except psycopg.Error as error:
        raise convert(error) from error


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
