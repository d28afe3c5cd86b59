"""The use cases `kb repo list`, `rename` and `remove`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kb.errors import NotFoundError, RepositoryError, UsageError
from kb.git.mirror import discard, left_behind, mirror_path
from kb.git.urls import looks_remote, parse_url
from kb.store import locks
from kb.store.catalog import RepositoryRow, find_repository, rename_repository, repositories
from kb.store.collect import remove_repository
from kb.store.database import Connection
from kb.store.parts import Parts


def list_all(parts: Parts) -> list[RepositoryRow]:
    """Every indexed repository, by name."""
    with parts.database.reader() as connection:
        return repositories(connection)


def rename(parts: Parts, old: str, new: str) -> None:
    """Gives a repository another name; see `store.catalog.rename_repository` for its errors."""
    with parts.database.writer() as connection:
        rename_repository(connection, old, new)


def remove(parts: Parts, name: str) -> RepositoryRow:
    """Erases a repository's knowledge, and kb's mirror of it where it is a remote one.

    Waits for index runs that are under way. The git repository itself is never touched.

    Raises:
        NotFoundError: no repository has that name.
    """
    with parts.database.writer() as connection:
        connection.autocommit = True
        with locks.collecting(connection), connection.transaction():
            row = find_repository(connection, name=name)
            if row is None:
                raise NotFoundError(f"no repository is named {name!r}", hint="see: kb repo list")
            remove_repository(connection, row.repository_id)
    if row.is_remote:
        shutil.rmtree(mirror_path(parts.home, parse_url(row.location)), ignore_errors=True)
    return row


@contextmanager
def no_stray_mirror(parts: Parts, where: str) -> Iterator[None]:
    """Takes the mirror of a URL away again where the block fails before the repository is registered.

    Nothing would list it. A mirror that another process may be about to register stays; what a killed
    process leaves is swept by `kb gc`.
    """
    try:
        yield
    except (NotFoundError, RepositoryError, UsageError):
        if looks_remote(where):
            _discard_mirror(parts, where)
        raise


def _discard_mirror(parts: Parts, where: str) -> None:
    with suppress(UsageError):  # raised where it is no URL that kb would have fetched
        mirror = mirror_path(parts.home, parse_url(where))
        if mirror.is_dir():
            with parts.database.writer() as connection:
                connection.autocommit = True
                with locks.alone(connection) as alone:
                    if alone and mirror in stray_mirrors(parts, connection):
                        discard(mirror)


def stray_mirrors(parts: Parts, connection: Connection) -> list[Path]:
    """What runs that ended before they had registered a repository left of its mirror."""
    remotes = [row.location for row in repositories(connection) if row.is_remote]
    return left_behind(parts.home, remotes)
