"""`kill -9` at real random moments of an index run in several processes; the state is checked after each.

python -m evals.bench.kills [--kills 60] [--seed N]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evals.bench.index_django import git
from evals.bench.servers import bench_parts
from tests.indexing import TestParts, index, state_of

_CHILD = """
import sys
from kb.store.database import Database, RoleUrls
from tests.indexing import TestParts, index
from pathlib import Path
index(TestParts(Database(RoleUrls(*sys.argv[2:5])), Path(sys.argv[5])), Path(sys.argv[1]), jobs=2, full=sys.argv[6] == "full")
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=60)
    arguments.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = arguments.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="kb-kills-") as scratch, bench_parts(Path(scratch)) as parts:
        run(TestParts(parts.database, parts.home), Path(scratch), options.kills, random.Random(options.seed))


def run(parts: TestParts, scratch: Path, kills: int, choice: random.Random) -> None:
    folder = scratch / "repo"
    project = Path(__file__).resolve().parents[2]
    subprocess.run(["git", "clone", "-q", str(project), str(folder)], check=True)
    length = timed(parts, folder)
    last, killed = None, 0
    number = 0
    while killed < kills:
        number += 1
        target = choice.choice(sorted((folder / "src/kb").rglob("*.py")))
        target.write_text(target.read_text() + f"\n\ndef edit_{number}() -> int:\n    return {number}\n")
        git(folder, "commit", "-q", "-a", "-m", f"edit {number}")
        for _ in range(6):
            killed += kill_one(parts, folder, choice.uniform(0.05, length), choice.choice(["full", "diff"]))
            if last is not None:
                assert state_of(parts.database, last[0]) == last[1], "the last sealed state changed"
        report = index(parts, folder, jobs=2)
        state = state_of(parts.database, report.sha)
        rebuilt = index(parts, folder, jobs=2, full=True)
        clean = state_of(parts.database, rebuilt.sha)
        assert clean == state, (
            f"{len(state - clean)} that a clean rebuild lacks, {len(clean - state)} it has more"
        )
        last = (report.sha, state)
        print(f"commit {number}: {killed} killed, {report.artifacts} artifacts stand")
    print(
        f"{killed} kills: every sealed state stood, every next run completed with the ids of a clean rebuild"
    )


def timed(parts: TestParts, folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(child(parts, folder, "full"), check=True)
    return time.perf_counter() - started


def kill_one(parts: TestParts, folder: Path, after: float, how: str) -> bool:
    """Whether the process was still running when it was killed, workers and all left to themselves."""
    process = subprocess.Popen(child(parts, folder, how))
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def child(parts: TestParts, folder: Path, how: str) -> list[str]:
    return [sys.executable, "-c", _CHILD, str(folder), *parts.database.urls, str(parts.home), how]


if __name__ == "__main__":
    main()
