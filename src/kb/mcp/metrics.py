"""What the server counts, in the text format of Prometheus."""

from __future__ import annotations

import resource
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator

BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds in seconds; 0.02 and 0.05 are the latencies that kb promises (DESIGN 10)."""


class Metrics:
    """Counters of calls and of requests. Usable from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)
        self._slots: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._requests: Counter[int] = Counter()
        self._in_flight = 0

    def call(self, tool: str, outcome: str, seconds: float, /) -> None:
        """One call of a tool has ended."""
        slot = next((n for n, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        with self._lock:
            self._calls[tool, outcome] += 1
            self._seconds[tool] += seconds
            self._slots[tool][slot] += 1

    def begun(self) -> None:
        """A request came in."""
        with self._lock:
            self._in_flight += 1

    def ended(self, code: int) -> None:
        """A request was answered; 0 where nobody waited for the answer any more."""
        with self._lock:
            self._in_flight -= 1
            self._requests[code] += 1

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# HELP kb_mcp_calls_total Calls of tools by outcome: ok, or the class of the error."
        yield "# TYPE kb_mcp_calls_total counter"
        for (tool, outcome), count in sorted(self._calls.items()):
            yield f'kb_mcp_calls_total{{tool="{tool}",outcome="{outcome}"}} {count}'
        yield "# HELP kb_mcp_call_seconds Time from the parsed arguments to the rendered answer."
        yield "# TYPE kb_mcp_call_seconds histogram"
        for tool, slots in sorted(self._slots.items()):
            reached = 0
            for bound, count in zip((*BUCKETS, "+Inf"), slots, strict=True):
                reached += count
                yield f'kb_mcp_call_seconds_bucket{{tool="{tool}",le="{bound}"}} {reached}'
            yield f'kb_mcp_call_seconds_sum{{tool="{tool}"}} {self._seconds[tool]:.6f}'
            yield f'kb_mcp_call_seconds_count{{tool="{tool}"}} {reached}'
        yield "# HELP kb_http_requests_total Answered HTTP requests by status code."
        yield "# TYPE kb_http_requests_total counter"
        for code, count in sorted(self._requests.items()):
            yield f'kb_http_requests_total{{code="{code}"}} {count}'
        yield "# HELP kb_http_in_flight Requests that are being answered."
        yield "# TYPE kb_http_in_flight gauge"
        yield f"kb_http_in_flight {self._in_flight}"
        yield "# HELP kb_max_resident_bytes Most memory that the process has held."
        yield "# TYPE kb_max_resident_bytes gauge"
        yield f"kb_max_resident_bytes {most_resident()}"


def most_resident() -> int:
    """Most memory that this process has held, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
