"""What was read of sealed snapshots and never changes, kept for the next question; bounded, and read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sized
from typing import Any, TypeVar, cast

MOST_WEIGHT = 1_000_000
"""Entries of lists that are kept, of all of them together: some 150 MB at the very most."""
_LEAST = 10
"""What a value weighs beside its entries."""

Value = TypeVar("Value")


def weight(value: object) -> int:
    """How many entries a value has: that is what it takes to keep it, about."""
    return len(value) if isinstance(value, Sized) else 0


class _Place:
    """Where a value is made or kept; who comes while it is being made waits for it."""

    def __init__(self) -> None:
        self.making = threading.Lock()
        self.made = False
        self.value: Any = None
        self.weight = 0


class Kept:
    """Values by snapshot and question, the ones asked for longest ago given up first. For several threads."""

    def __init__(self, most: int = MOST_WEIGHT) -> None:
        self._most = most
        self._weight = 0
        self._places: OrderedDict[Hashable, _Place] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value], weigh: Callable[[Value], int] = weight) -> Value:
        """What `make` yields for the key; made once, also where several threads ask at the same time."""
        with self._lock:
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
        with place.making:
            if not place.made:
                place.value = self._make(key, make)
                place.made = True
                self._account(key, place, weigh(place.value))
        return cast("Value", place.value)

    def _make(self, key: Hashable, make: Callable[[], Value]) -> Value:
        try:
            return make()
        except BaseException:
            with self._lock:
                self._places.pop(key, None)
            raise

    def _account(self, key: Hashable, place: _Place, weight: int) -> None:
        """Counts a value in, and gives up old ones until all of them together are within the bound."""
        with self._lock:
            if self._places.get(key) is not place:
                return  # given up while it was made: who waited for it has it, and nobody else will
            place.weight = _LEAST + weight
            self._weight += place.weight
            while self._weight > self._most and len(self._places) > 1:
                _, oldest = self._places.popitem(last=False)
                self._weight -= oldest.weight
