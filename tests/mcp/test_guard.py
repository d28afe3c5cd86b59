from __future__ import annotations

import anyio
import httpx
import pytest

from kb.errors import UsageError
from kb.mcp.guard import (
    Address,
    Guard,
    Rate,
    Rules,
    entropy,
    host_name,
    parse_address,
    require_token,
    rules_for,
)
from kb.mcp.http import Readiness, http_application
from kb.mcp.metrics import Metrics

TOKEN = "5f1d7c0a9be24836a1c4e0d2b3f69788"


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("127.0.0.1:80", "127.0.0.1", 80, True),
        ("8765", "127.0.0.1", 8765, True),
        ("localhost:1", "localhost", 1, True),
        ("[::1]:80", "::1", 80, True),
        ("0.0.0.0:80", "0.0.0.0", 80, False),
        ("[::]:80", "::", 80, False),
        ("10.0.0.5:80", "10.0.0.5", 80, False),
        ("127.0.0.1.evil.example:80", "127.0.0.1.evil.example", 80, False),
        ("kb.example.com:80", "kb.example.com", 80, False),
    ],
)
def test_an_address_is_read_and_known_as_loopback_or_not(text, host, port, loopback):
    address = parse_address(text)
    assert (address.host, address.port, address.is_loopback) == (host, port, loopback)


@pytest.mark.parametrize("text", ["", ":", ":80", "host:", "host:x", "host:70000", "host:-1", "host:²"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError):
        parse_address(text)


def test_only_the_loopback_may_do_without_a_token():
    require_token(Address("127.0.0.1", 80), None)
    with pytest.raises(UsageError, match="KB_AUTH_TOKEN"):
        require_token(Address("0.0.0.0", 80), None)
    require_token(Address("0.0.0.0", 80), TOKEN)


@pytest.mark.parametrize("token", ["", "secret", "a" * 64, "ab" * 20, "password1234password1234"[:23]])
def test_a_token_that_is_easy_to_guess_is_refused(token):
    with pytest.raises(UsageError, match="guess"):
        require_token(Address("127.0.0.1", 80), token)


def test_entropy_is_that_of_shannon():
    assert entropy("aaaa") == 0
    assert entropy("abcd") == 8
    assert entropy("aabb") == 4


def test_a_client_may_ask_a_minutes_worth_at_once_and_then_as_it_refills():
    now = [0.0]
    rate = Rate(60, lambda: now[0])
    assert [rate.wait("a") for _ in range(60)] == [0.0] * 60
    assert rate.wait("a") == pytest.approx(1.0)
    assert rate.wait("b") == 0.0
    now[0] = 1.0
    assert rate.wait("a") == 0.0
    assert rate.wait("a") > 0
    assert Rate(0, lambda: 0.0).wait("a") == 0.0


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("a.b:80", "a.b"),
        ("[::1]:80", "::1"),
        ("LOCALHOST", "localhost"),
        ("", ""),
        ("[::1]", "::1"),
        ("a.b:", "a.b"),
        ("localhost:80@evil.example", ""),
        ("localhost:x", ""),
        ("[::1", ""),
        ("[::1]x", ""),
        ("localhost/", ""),
    ],
)
def test_the_name_of_a_host_header(host, name):
    assert host_name(host) == name


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def codes(guard, *requests):
    async def run():
        found = []
        transport = httpx.ASGITransport(app=guard)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
            for path, headers in requests:
                found.append((await client.get(path, headers=headers)).status_code)
        return found

    return anyio.run(run)


def test_a_foreign_host_or_origin_does_not_get_through():
    guard = Guard(hello, rules_for(Address("127.0.0.1", 8765), None, ["kb.example"], 0), Metrics())
    assert codes(
        guard,
        ("/mcp", {}),
        ("/mcp", {"Host": "localhost:8765"}),
        ("/mcp", {"Host": "kb.example"}),
        ("/mcp", {"Host": "evil.example"}),
        ("/mcp", {"Host": "127.0.0.1.evil.example"}),
        ("/mcp", {"Origin": "http://localhost:3000"}),
        ("/mcp", {"Origin": "http://evil.example"}),
        ("/mcp", {"Origin": "null"}),
        ("/mcp", {"Origin": "http://127.0.0.1@evil.example"}),
        ("/mcp", {"Origin": "file://localhost"}),
        ("/healthz", {"Host": "anything"}),
    ) == [200, 200, 200, 421, 421, 200, 403, 403, 403, 403, 200]


def test_the_token_is_asked_for_wherever_something_is_told():
    guard = Guard(hello, Rules(TOKEN, frozenset({"127.0.0.1"}), 0), Metrics())
    assert codes(
        guard,
        ("/mcp", {}),
        ("/mcp", {"Authorization": f"Bearer {TOKEN}"}),
        ("/mcp", {"Authorization": f"bearer {TOKEN}"}),
        ("/mcp", {"Authorization": f"Bearer {TOKEN}x"}),
        ("/mcp", {"Authorization": f"Basic {TOKEN}"}),
        ("/mcp", {"Authorization": "Bearer"}),
        ("/metrics", {}),
        ("/readyz", {}),
    ) == [401, 200, 200, 401, 401, 401, 401, 200]


def test_too_many_requests_are_told_when_to_come_back():
    guard = Guard(hello, Rules(None, frozenset({"127.0.0.1"}), 2), Metrics())
    assert codes(guard, *[("/mcp", {})] * 3) == [200, 200, 429]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 401),
        ({"Authorization": "Bearer guessed"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
    ],
)
def test_what_is_refused_is_limited_and_takes_nothing_from_those_with_the_token(headers, code):
    guard = Guard(hello, Rules(TOKEN, frozenset({"127.0.0.1"}), 2), Metrics())
    known = ("/mcp", {"Authorization": f"Bearer {TOKEN}"})
    stranger = ("/mcp", headers)
    assert codes(guard, *[stranger] * 4, known, stranger, known, known, stranger) == [
        code, code, 429, 429, 200, 429, 200, 429, 429,
    ]  # fmt: skip


def test_refusals_of_one_address_do_not_limit_those_of_another():
    now = [0.0]
    guard = Guard(hello, Rules(TOKEN, frozenset({"127.0.0.1"}), 1), Metrics(), lambda: now[0])

    def from_address(address):
        async def run():
            transport = httpx.ASGITransport(app=guard, client=(address, 1))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.get("/mcp")

        return anyio.run(run)

    first, again, other = (from_address(address) for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2"))
    assert [one.status_code for one in (first, again, other)] == [401, 429, 401]
    assert again.headers["Retry-After"] == "60"
    now[0] = 60.0
    assert from_address("10.0.0.1").status_code == 401


def test_what_is_counted_is_told_as_prometheus_reads_it():
    metrics = Metrics()
    metrics.call("status", "ok", 0.004)
    metrics.call("status", "NotFoundError", 0.03)
    guard = Guard(hello, Rules(None, frozenset({"127.0.0.1"}), 0), metrics)
    codes(guard, ("/mcp", {}))
    lines = metrics.text().splitlines()
    assert 'kb_mcp_calls_total{tool="status",outcome="NotFoundError"} 1' in lines
    assert 'kb_mcp_call_seconds_bucket{tool="status",le="0.005"} 1' in lines
    assert 'kb_mcp_call_seconds_bucket{tool="status",le="0.05"} 2' in lines
    assert 'kb_mcp_call_seconds_count{tool="status"} 2' in lines
    assert 'kb_http_requests_total{code="200"} 1' in lines
    assert "kb_http_in_flight 0" in lines


def test_it_is_ready_while_the_database_answers_and_it_is_not_draining(server):
    broken = []

    def probe():
        if broken:
            raise OSError("gone")

    readiness = Readiness(probe)
    rules = Rules(None, frozenset({"127.0.0.1"}), 0)
    application = http_application(server, rules, Metrics(), readiness)
    assert codes(application, ("/readyz", {}), ("/healthz", {}), ("/metrics", {})) == [200, 200, 200]
    broken.append(True)
    assert codes(application, ("/readyz", {}), ("/healthz", {})) == [503, 200]
    broken.clear()
    readiness.draining = True
    assert codes(application, ("/readyz", {}), ("/healthz", {})) == [503, 200]
