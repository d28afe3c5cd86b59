"""Planner settings for one statement, gone with its transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg


@contextmanager
def steered(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> Iterator[None]:
    """Runs the block in a transaction with these settings, set in one round trip."""
    with connection.transaction():
        connection.execute(
            "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS s (name, value)",
            (list(settings), list(settings.values())),
        )
        yield
