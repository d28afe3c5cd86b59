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


_FEW = 1000


def plan_for(connection: psycopg.Connection[Any], rows: int) -> None:
    """Tells the planner, until the transaction ends, whether the statements to come touch few rows.

    A small difference must cost in proportion to itself, and the planner cannot know that it is one:
    staging tables have no statistics. Left alone it reads whole tables.
    """
    by_key = "off" if rows <= _FEW else "on"
    connection.execute(
        """SELECT set_config('enable_hashjoin', %(on)s, true), set_config('enable_mergejoin', %(on)s, true),
                  set_config('enable_seqscan', %(on)s, true)""",
        {"on": by_key},
    )


def refresh_statistics(connection: psycopg.Connection[Any]) -> None:
    """Lets the planner know at once how large the tables have become; for after a bulk run."""
    connection.execute("SELECT refresh_statistics()")
