"""Advisory locks: many writers or one collector, and one sealer per lineage at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

_COLLECT = 0x6B62_0001
_LINEAGE = 0x6B62_0002
_OWNER = 0x6B62_0003


@contextmanager
def writing(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Holds the writers' shared lock for the block, so that no collector runs between insert and seal.

    The connection is in autocommit mode: the lock is the session's, not a transaction's.
    """
    connection.execute("SELECT pg_advisory_lock_shared(%s)", (_COLLECT,))
    try:
        yield
    finally:
        if _usable(connection):
            connection.execute("SELECT pg_advisory_unlock_shared(%s)", (_COLLECT,))


@contextmanager
def collecting(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Holds the collector's exclusive lock for the block: waits for every writer and keeps new ones out.

    The connection is in autocommit mode.
    """
    connection.execute("SELECT pg_advisory_lock(%s)", (_COLLECT,))
    try:
        yield
    finally:
        if _usable(connection):
            connection.execute("SELECT pg_advisory_unlock(%s)", (_COLLECT,))


@contextmanager
def alone(connection: psycopg.Connection[Any]) -> Iterator[bool]:
    """Holds the collector's lock for the block if nobody else writes or collects now; whether it does.

    Waits for nobody. The connection is in autocommit mode, and may hold the writers' lock itself.
    """
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_COLLECT,)).fetchone()
    got = row is not None and bool(row[0])
    try:
        yield got
    finally:
        if got and _usable(connection):
            connection.execute("SELECT pg_advisory_unlock(%s)", (_COLLECT,))


def _usable(connection: psycopg.Connection[Any]) -> bool:
    """Whether a statement can still be sent; where not, the server frees the session's locks itself."""
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE


def lock_lineage(connection: psycopg.Connection[Any], repository_id: int, recipe_id: int) -> None:
    """Takes the right to extend a repository's lineage under a recipe, until the transaction ends."""
    connection.execute(
        "SELECT pg_advisory_xact_lock(%s, hashint8((%s::int8 << 32) | %s::int8))",
        (_LINEAGE, repository_id, recipe_id),
    )


def own_lineage(connection: psycopg.Connection[Any], lineage_id: int) -> None:
    """Marks a new lineage as being filled by this connection's session."""
    connection.execute("SELECT pg_advisory_lock(%s, %s)", (_OWNER, lineage_id))


def disown_lineage(connection: psycopg.Connection[Any], lineage_id: int) -> None:
    """Ends what `own_lineage` began."""
    connection.execute("SELECT pg_advisory_unlock(%s, %s)", (_OWNER, lineage_id))


def is_orphaned(connection: psycopg.Connection[Any], lineage_id: int) -> bool:
    """Whether no session fills that lineage any more; if so it is locked until the transaction ends."""
    row = connection.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", (_OWNER, lineage_id)).fetchone()
    return row is not None and bool(row[0])
