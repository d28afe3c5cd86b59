"""Bulk rows on their way in: COPY into a temporary table, then one sorted, idempotent INSERT.

Writers that insert content-addressed rows in one global order (table by table, sorted by key inside a
table) cannot deadlock with each other; every statement that inserts such rows goes through here or
sorts by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import sql

OPEN = 2147483647
"""`to_ord` of a membership row that still holds at the lineage's tip."""


class StageTable:
    """A temporary table that empties itself at COMMIT; made once per connection on first use."""

    def __init__(self, name: LiteralString, columns: Sequence[tuple[LiteralString, LiteralString]]) -> None:
        self.name = name
        self._types = [type_name for _, type_name in columns]
        body = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(type_name))
            for column, type_name in columns
        )
        self._create = sql.SQL("CREATE TEMP TABLE IF NOT EXISTS {} ({}) ON COMMIT DELETE ROWS").format(
            sql.Identifier(name), body
        )
        self._copy = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(sql.Identifier(name))

    def fill(self, connection: psycopg.Connection[Any], rows: Iterable[Sequence[Any]]) -> int:
        """Rows copied in; the number of them. Runs inside the caller's transaction."""
        count = 0
        with connection.cursor() as cursor:
            cursor.execute(self._create)
            with cursor.copy(self._copy) as copy:
                copy.set_types(self._types)
                for row in rows:
                    copy.write_row(row)
                    count += 1
        return count
