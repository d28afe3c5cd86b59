"""How the statements of a search are planned: once for a connection, by keys, and through the vector index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg.pq import TransactionStatus

_BREADTH = 220
"""How broad a scan of the vector index is: recall@10 stays above .95 at a million vectors, and one scan finds all
candidates of a search (docs/measurements/search.md)."""

# Every statement knows which rows it wants, by key or by the order of an index; nothing tells the planner
# how many they are. The vector scan goes on until enough of what it finds passes the filter.
_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "max_parallel_workers_per_gather": "0",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "enable_sort": "off",
    "jit": "off",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": str(_BREADTH),
}
_SET = "; ".join(f"SET LOCAL {name} TO {value}" for name, value in _SETTINGS.items())
_SAME = frozenset({"plan_cache_mode", "jit"})
"""Set alike for every connection of the pool: DEFAULT would take that back for the rest of the transaction."""
_RESET = "; ".join(f"SET LOCAL {name} TO DEFAULT" for name in _SETTINGS if name not in _SAME)

_steered: WeakSet[psycopg.Connection[Any]] = WeakSet()


@contextmanager
def steered(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Runs the block's searching statements as they should be, in the open transaction or in one of its own.

    May be nested: a search sets everything once, a single leg sets it for itself.
    """
    if connection in _steered:
        yield
        return
    with ExitStack() as stack:
        if connection.info.transaction_status == TransactionStatus.IDLE:
            stack.enter_context(connection.transaction())
        connection.execute(_SET, prepare=False)
        _steered.add(connection)
        try:
            yield
        finally:
            _steered.discard(connection)
        # A block that fails ends its transaction, and the settings with it.
        connection.execute(_RESET, prepare=False)
