from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters

from tests.mcp.running import COMMAND, environment, http_server

TOKEN = "5f1d7c0a9be24836a1c4e0d2b3f69788"
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "list_contracts", "arguments": {"method": "POST"}},
}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2025-11-25",
}


def parameters(indexed):
    return StdioServerParameters(command=COMMAND[0], args=list(COMMAND[1:]), env=environment(indexed))


def test_over_stdio_a_client_gets_the_same_answers(indexed, asked, capfd):
    async def talk():
        async with Client(parameters(indexed)) as client:
            tools = (await client.list_tools()).tools
            answer = await client.call_tool("list_contracts", {})
            wrong = await client.call_tool("get_knowledge", {"target": "nope.nope"})
            return tools, answer, wrong

    tools, answer, wrong = anyio.run(talk)
    assert len(tools) == 14
    assert answer.structured_content == asked.answer("list_contracts")
    assert wrong.is_error
    assert "unknown target" in wrong.content[0].text


def initialise(process):
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    process.stdin.write(json.dumps(hello) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def started(indexed):
    return subprocess.Popen(
        COMMAND,
        env=environment(indexed),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_only_messages_go_to_stdout_and_the_server_ends_with_its_input(indexed):
    with started(indexed) as process:
        assert initialise(process)["result"]["serverInfo"]["name"] == "kb"
        process.stdin.write("this is no message\n")
        process.stdin.flush()
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())


def test_the_server_ends_when_its_parent_is_killed_though_the_pipe_stays_open(indexed, tmp_path):
    """The parent starts the server with a pipe that a third process holds open, and is killed."""
    reading, writing = os.pipe()
    script = f"import subprocess, sys\np = subprocess.Popen({list(COMMAND)!r}, stdin={reading})\nprint(p.pid, flush=True)\np.wait()"
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment(indexed),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        pass_fds=[reading],
    )
    try:
        child = int(parent.stdout.readline())
        os.write(writing, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        assert parent.stdout.readline()  # the server is up: it has answered
        parent.kill()
        parent.wait()
        assert parent.stdout.read() == ""  # the end of its output: nobody holds it any more
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
            os.waitpid(child, 0)
    except ChildProcessError:
        pass  # it was never ours, and it is gone or going: its output has ended
    finally:
        parent.stdout.close()
        os.close(reading)
        os.close(writing)


def test_sigterm_ends_the_stdio_server(indexed):
    with started(indexed) as process:
        initialise(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_over_http_a_client_gets_the_same_answers_and_the_rules_hold(indexed, asked):
    with http_server(indexed) as (url, process):

        async def talk():
            async with Client(url) as client:
                return await client.call_tool("list_contracts", {})

        assert anyio.run(talk).structured_content == asked.answer("list_contracts")
        base = url.removesuffix("/mcp")
        told = httpx.post(url, json=CALL, headers=HEADERS)
        assert told.json()["result"]["structuredContent"]["units"][0]["key"] == "api:POST /orders"
        assert httpx.get(f"{base}/healthz").text == "ok\n"
        assert httpx.get(f"{base}/readyz").status_code == 200
        assert 'kb_mcp_calls_total{tool="list_contracts",outcome="ok"}' in httpx.get(f"{base}/metrics").text
        assert httpx.post(url, json=CALL, headers={**HEADERS, "Host": "evil.example"}).status_code == 421
        assert (
            httpx.post(url, json=CALL, headers={**HEADERS, "Origin": "http://evil.example"}).status_code
            == 403
        )
        assert httpx.post(url, content=b"x" * 1_100_000, headers=HEADERS).status_code == 413
        assert httpx.post(url, content=b"{", headers=HEADERS).status_code == 400
        for method in ("GET", "DELETE", "HEAD"):  # no stream is opened that would hold a connection
            told = httpx.request(method, url, headers={**HEADERS, "Accept": "text/event-stream"}, timeout=30)
            assert (told.status_code, told.headers["Allow"]) == (405, "POST")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_over_http_with_a_token_nobody_is_answered_without_it(indexed):
    with http_server(indexed, "--rate", "4", KB_AUTH_TOKEN=TOKEN) as (url, _):
        bearer = {**HEADERS, "Authorization": f"Bearer {TOKEN}"}
        refused = httpx.post(url, json=CALL, headers=HEADERS)
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, 'Bearer realm="kb"')
        assert httpx.get(url.replace("/mcp", "/metrics"), headers=HEADERS).status_code == 401
        answers = [httpx.post(url, json=CALL, headers=bearer) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 429]
        assert int(answers[-1].headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("variables", "said"),
    [({}, "KB_AUTH_TOKEN is not set"), ({"KB_AUTH_TOKEN": "a" * 40}, "too easy to guess")],
)
def test_an_address_that_others_can_reach_is_refused_without_a_good_token(indexed, variables, said):
    done = subprocess.run(
        [*COMMAND, "--http", "0.0.0.0:0"],
        env=environment(indexed, **variables),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "a" * 40 not in done.stderr


def said_by_serve(indexed, *options):
    done = subprocess.run(
        [*COMMAND, *options],
        env=environment(indexed),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr.splitlines()


def test_an_address_that_cannot_be_listened_at_is_told_with_the_reason_in_one_line(indexed):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error, hint = said_by_serve(indexed, "--http", f"127.0.0.1:{port}")
    assert error == f"kb: error: 127.0.0.1:{port} cannot be listened at: {os.strerror(errno.EADDRINUSE)}"
    assert hint.startswith("hint: name another address or port")


def test_options_of_http_are_refused_over_stdio(indexed):
    for option in (("--allow-host", "kb.example.com"), ("--rate", "1200")):
        error, hint = said_by_serve(indexed, *option)
        assert error == f"kb: error: {option[0]} means something over HTTP alone"
        assert hint == "hint: give --http HOST:PORT too"


DRAIN = textwrap.dedent("""
    import anyio, sys
    from kb.mcp.guard import Address
    from kb.mcp.http import Readiness, serve_http

    readiness = Readiness(lambda: None)

    async def slow(scope, receive, send):
        if scope["type"] != "http":
            return
        print("in flight", flush=True)
        while not readiness.draining:
            await anyio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})

    serve_http(slow, Address("127.0.0.1", 0), readiness, lambda url: print(url, flush=True))
    """)


def test_at_sigterm_what_is_in_flight_is_answered_before_the_end():
    process = subprocess.Popen([sys.executable, "-c", DRAIN], stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline().strip().removesuffix("/mcp").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert process.stdout.readline() == "in flight\n"
            process.send_signal(signal.SIGTERM)
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"done")
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
