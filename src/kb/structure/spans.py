"""Places into spans with identity: which span, and which of its occurrences in the blob."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kb.identity.spans import span_ids
from kb.model.spans import LocatedSpan, Span, SpanKey
from kb.structure.python.outline import Place


def by_place(located: LocatedSpan) -> tuple[int, int, str, bytes]:
    """The order of a blob's spans: by start, the longer first, then by kind and identity."""
    return located.start_byte, -located.end_byte, located.span.kind, located.span.span_id


def locate(language: str, places: Iterable[Place]) -> list[LocatedSpan]:
    """Every place as a located span, ordered by (start, -end); sets each place's key.

    Occurrences of one span are counted from 0 in that order.
    """
    identify = span_ids(language)
    counted: dict[bytes, int] = defaultdict(int)
    located = []
    for place in sorted(places, key=lambda place: (place.start_byte, -place.end_byte)):
        identity = identify(place.kind, place.symbol_path, place.fingerprint)
        n = counted[identity]
        counted[identity] = n + 1
        place.key = SpanKey(identity, n)
        span = Span(identity, language, place.kind, place.symbol_path, place.fingerprint)
        located.append(
            LocatedSpan(span, n, place.start_byte, place.end_byte, place.start_line, place.end_line)
        )
    return located


class SpanTable:
    """The span table of one fact row: each span once, referred to by its index."""

    def __init__(self) -> None:
        self.keys: list[SpanKey] = []
        self._index: dict[SpanKey, int] = {}

    def refer(self, key: SpanKey) -> int:
        """The key's index, added where it is not in the table yet."""
        found = self._index.setdefault(key, len(self.keys))
        if found == len(self.keys):
            self.keys.append(key)
        return found
