"""The one family of errors that kb raises on purpose.

Every class says when it happens, carries its data as attributes, has the exit code that the command
line ends with, and may carry a hint: one sentence that tells the user what to do next.
"""

from __future__ import annotations


class KbError(Exception):
    """Something kb was asked to do failed; the base of all errors that reach a user."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None, **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def __str__(self) -> str:
        return self.message


class UsageError(KbError):
    """The request itself is wrong: an argument, a setting, or a combination of them."""

    exit_code = 2


class NotFoundError(KbError):
    """The request was fine, but what it names does not exist (file, key, span, snapshot...)."""

    exit_code = 3


class DatabaseError(KbError):
    """The database cannot be reached, is at another schema version, or refused a statement."""

    exit_code = 4


class RepositoryError(KbError):
    """The git repository cannot be read: absent, not a repository, unsafe, unborn, ambiguous..."""

    exit_code = 5


class IntegrityError(KbError):
    """An invariant of the stored knowledge does not hold; nothing was sealed."""

    exit_code = 6


class GroundingError(IntegrityError):
    """A unit of knowledge was about to be made or kept without a span that it stands on."""
