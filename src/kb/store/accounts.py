"""Which user the server runs as when kb runs as root."""

from __future__ import annotations

import pwd
import shutil
import subprocess
from dataclasses import dataclass

from kb.errors import DatabaseError
from kb.store.binaries import PROGRAM_ENVIRONMENT

_CANDIDATES = ("postgres", "nobody")
"""Existing users without rights: kb creates none."""


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """A user that programs are run as."""

    name: str
    uid: int
    gid: int

    def prefix(self) -> list[str]:
        """What to put before a command so that it runs as this user, without root's groups."""
        setpriv = shutil.which("setpriv", path=PROGRAM_ENVIRONMENT["PATH"])
        if setpriv is None:
            raise DatabaseError(
                "as root, the embedded PostgreSQL needs the program `setpriv` (util-linux)",
                hint="Install it, run kb as another user, or set KB_DB_URL to a running server.",
            )
        return [setpriv, f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]

    def require_readable(self, program: str) -> None:
        """Returns if this user can reach and run the program.

        Asked of `test`, run as the user: the program itself would start even below a folder that is
        closed to the user (setpriv still has root's rights at that moment) and then miss its libraries.

        Raises:
            DatabaseError: it cannot, for instance because a folder above is closed to it.
        """
        command = [*self.prefix(), "test", "-r", program, "-a", "-x", program]
        if subprocess.run(command, check=False, cwd="/", env=PROGRAM_ENVIRONMENT).returncode != 0:
            raise DatabaseError(
                f"user {self.name} cannot run {program}",
                hint="As root, KB_PG_BINDIR and the folders above it have to be open to every user.",
            )


def account_for_root(owner: int | None) -> ServerAccount:
    """The user that owns the data already, else the first one there is of `postgres` and `nobody`.

    Raises:
        DatabaseError: the data is root's own, or there is no such user.
    """
    if owner is not None:
        try:
            return _account(pwd.getpwuid(owner))
        except KeyError:
            raise DatabaseError(f"the embedded server's data belongs to an unknown user ({owner})") from None
    for name in _CANDIDATES:
        try:
            return _account(pwd.getpwnam(name))
        except KeyError:
            continue
    raise DatabaseError("as root, the embedded PostgreSQL needs a user `postgres` or `nobody` to run as")


def _account(entry: pwd.struct_passwd) -> ServerAccount:
    if entry.pw_uid == 0:
        raise DatabaseError("the embedded server's data belongs to root, which PostgreSQL refuses")
    return ServerAccount(entry.pw_name, entry.pw_uid, entry.pw_gid)
