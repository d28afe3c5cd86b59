"""Who may ask over HTTP: Host and Origin, the bearer token, the rate; before any of it reaches the server."""

from __future__ import annotations

import hmac
import ipaddress
import math
import re
import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.errors import UsageError
from kb.mcp.metrics import Metrics

LEAST_TOKEN = 24
LEAST_ENTROPY = 80.0
"""Bits, estimated by the token's own characters: `openssl rand -hex 32` has some 240."""
_HINT = "make one: export KB_AUTH_TOKEN=$(openssl rand -hex 32)"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_OPEN = ("/healthz", "/readyz")
"""Answered to anybody: they say nothing but whether the server lives."""
_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:@/\s]*))(?::[0-9]*)?")
_MOST_CLIENTS = 10_000


@dataclass(frozen=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """`HOST:PORT`, `[::1]:PORT`, or `PORT` alone for the loopback.

    Raises:
        UsageError: it is none of them.
    """
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else "127.0.0.1"
    if not host or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise UsageError(f"{text!r} is no address", hint="write HOST:PORT, such as 127.0.0.1:8765")
    return Address(host, int(port))


def require_token(address: Address, token: str | None) -> None:
    """Returns where it is safe to listen at that address with that token, or without one.

    Raises:
        UsageError: other machines can reach the address and there is no token, or it can be guessed.
    """
    if token is None:
        if not address.is_loopback:
            raise UsageError(
                f"{address.host} can be reached from outside, and KB_AUTH_TOKEN is not set", hint=_HINT
            )
        return
    if len(token) < LEAST_TOKEN or entropy(token) < LEAST_ENTROPY:
        raise UsageError("KB_AUTH_TOKEN is too easy to guess", hint=_HINT)


def entropy(token: str) -> float:
    """Bits of a text, estimated by how evenly its characters are spread."""
    counts = Counter(token)
    return -sum(count * math.log2(count / len(token)) for count in counts.values())


@dataclass(frozen=True)
class Rules:
    """What the guard holds requests against."""

    token: str | None
    hosts: frozenset[str]
    """Names that a Host or an Origin may have, without port."""
    per_minute: int
    """Requests of one client, and as many of one address that are refused; 0 for no limit."""


def rules_for(address: Address, token: str | None, hosts: Sequence[str], per_minute: int) -> Rules:
    """The rules at an address: its own name, the loopback's and the machine's, and those that were named."""
    known = {*_LOOPBACK, address.host, socket.gethostname(), *hosts}
    return Rules(token, frozenset(name.strip("[]").lower() for name in known), per_minute)


class Guard:
    """Lets through what the rules allow; everything else is answered here, in one line of text."""

    def __init__(
        self,
        app: ASGIApp,
        rules: Rules,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._rules = rules
        self._metrics = metrics
        self._rate = Rate(rules.per_minute, clock)
        self._refused = Rate(rules.per_minute, clock)
        """Counted apart: who has no token takes nothing from those who share the address and have it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        code = 0

        async def watched(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        self._metrics.begun()
        try:
            refusal = self._refusal(scope)
            await (self._app if refusal is None else refusal)(scope, receive, watched)
        finally:
            self._metrics.ended(code)

    def _refusal(self, scope: Scope) -> Response | None:
        if scope["path"] in _OPEN:
            return None
        client = str((scope.get("client") or ("", 0))[0])
        refusal = self._against_the_rules(Headers(scope=scope))
        wait = (self._rate if refusal is None else self._refused).wait(client)
        if wait > 0:
            return _said(429, "too many requests", {"Retry-After": str(math.ceil(wait))})
        return refusal

    def _against_the_rules(self, headers: Headers) -> Response | None:
        if host_name(headers.get("host", "")) not in self._rules.hosts:
            return _said(421, "this Host is not served here; see --allow-host")
        origin = headers.get("origin")
        if origin is not None and not self._is_known(origin):
            return _said(403, "this Origin may not ask here; see --allow-host")
        if self._rules.token is not None and not _bears(headers.get("authorization", ""), self._rules.token):
            return _said(401, "a bearer token is needed", {"WWW-Authenticate": 'Bearer realm="kb"'})
        return None

    def _is_known(self, origin: str) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and (parts.hostname or "") in self._rules.hosts


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case; empty where it is no Host."""
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["six"] or found["name"]).lower()


def _bears(header: str, token: str) -> bool:
    scheme, _, given = header.partition(" ")
    # Compared in constant time, whatever was given.
    same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    return same and scheme.lower() == "bearer"


def _said(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(text + "\n", status_code=status, headers=headers, media_type="text/plain")


class Rate:
    """A bucket for each client that fills evenly: a minute's worth may come at once."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """0 where the client may ask now, and that is counted; else the seconds until it may."""
        if not self._per_minute:
            return 0.0
        now = self._clock()
        left, since = self._buckets.pop(client, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - since) * self._per_minute / 60)
        allowed = left >= 1
        self._buckets[client] = (left - 1 if allowed else left, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) * 60 / self._per_minute
