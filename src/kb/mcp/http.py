"""Serving over streamable HTTP: stateless, guarded, observable, and drained before it ends."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio.to_thread
import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.errors import UsageError
from kb.mcp.guard import Address, Guard, Rules
from kb.mcp.metrics import Metrics
from kb.mcp.stdio import log_to_stderr

LARGEST_BODY = 1024 * 1024
MOST_CONNECTIONS = 500
DRAIN_SECONDS = 30
"""How long a request that is being answered at SIGTERM may take."""


class Readiness:
    """Whether requests should come here: the database answers, and the server is not ending."""

    def __init__(self, probe: Callable[[], None]) -> None:
        self._probe = probe
        self.draining = False

    async def reason(self) -> str | None:
        """Why not; None where it is ready."""
        if self.draining:
            return "draining"
        try:
            await anyio.to_thread.run_sync(self._probe)
        except Exception as error:  # noqa: BLE001 - whatever it is, requests should go elsewhere
            return f"{type(error).__name__}: the database does not answer"
        return None


def http_application(server: MCPServer[Any], rules: Rules, metrics: Metrics, readiness: Readiness) -> ASGIApp:
    """The ASGI application: `/mcp`, `/healthz`, `/readyz`, `/metrics`, behind the guard."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        reason = await readiness.reason()
        return PlainTextResponse(f"{reason or 'ready'}\n", status_code=503 if reason else 200)

    async def prometheus(_: Request) -> Response:
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    application = server.streamable_http_app(
        # Nothing is kept between requests, so any of several processes may answer, and memory stays flat.
        stateless_http=True,
        json_response=True,
        max_request_body_size=LARGEST_BODY,
        # The guard has checked Host and Origin, with names of its own.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    for path, endpoint in (("/healthz", healthz), ("/readyz", readyz), ("/metrics", prometheus)):
        application.router.routes.append(Route(path, endpoint, methods=["GET"]))
    return Guard(_PostAlone(application), rules, metrics)


class _PostAlone:
    """Answers 405 to whatever else than POST is sent to `/mcp`, as the protocol has it for a server without streams.

    The SDK would open a stream for a GET, also where nothing is kept between requests and none is ever said there:
    it held one of the connections until the client let go.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http" and scope["path"] == "/mcp" and scope["method"] != "POST":
            said = PlainTextResponse(
                "messages are sent by POST; there are no streams here\n", 405, headers={"Allow": "POST"}
            )
            await said(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Draining(uvicorn.Server):
    """Ends with exit code 0 after the requests that are being answered; says so to `/readyz` meanwhile."""

    def __init__(self, config: uvicorn.Config, readiness: Readiness) -> None:
        super().__init__(config)
        self._readiness = readiness

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT drain; a second one ends at once."""
        kept = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begins to drain."""
        self._readiness.draining = True
        super().handle_exit(sig, frame)


def serve_http(
    application: ASGIApp, address: Address, readiness: Readiness, announce: Callable[[str], None]
) -> None:
    """Answers at the address until SIGTERM or SIGINT, then what is in flight, then returns.

    Raises:
        UsageError: the address cannot be listened at.
    """
    log_to_stderr()
    config = uvicorn.Config(
        application,
        host=address.host,
        port=address.port,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=30,
    )
    host = f"[{address.host}]" if ":" in address.host else address.host
    listener = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(config.backlog)  # who reads the announcement may connect at once
    except (OSError, UnicodeError) as error:  # the latter of a name that is none
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "it is no name of a host"
        raise UsageError(
            f"{host}:{address.port} cannot be listened at: {reason}",
            hint="name another address or port; with port 0 the system chooses a free one",
        ) from None
    announce(f"http://{host}:{listener.getsockname()[1]}/mcp")
    anyio.run(lambda: _Draining(config, readiness).serve(sockets=[listener]))
