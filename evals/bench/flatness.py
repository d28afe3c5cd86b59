"""A leaf edit in a repository, and in one of many times its size: what grows with the repository?

    python -m evals.bench.flatness [--folder DJANGO] [--only django/db django/utils] [--copies 10]

Each copy is a package of its own (`django3`), with its imports renamed, so that no blob is shared. To reach
(DESIGN 10): ten times the repository, at most 1.5 times the time. CPU seconds are kb's and the server's together,
per edit; where other work shares the machine they alone say something. The look at the working tree for what is
not committed grows with its files and is measured by itself.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from evals.bench.index_django import cpu_seconds, fetch, git, keep_extractors, server_cpu_seconds
from evals.bench.servers import BenchParts, bench_parts
from kb.git.repository import Repository
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest

PACKAGE = "django"
LEAF = "utils/lorem_ipsum.py"


class Cost(NamedTuple):
    """Medians over some edits, in seconds."""

    files: int
    wall: float
    cpu: float
    status: float
    """CPU of the look at the working tree, which is not part of the others."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--only", nargs="*", default=[PACKAGE], help="folders of the sources to take")
    arguments.add_argument("--copies", type=int, default=10)
    arguments.add_argument("--edits", type=int, default=10)
    arguments.add_argument("--extractors", help="ids, separated by commas: only these are run")
    options = arguments.parse_args()
    if options.extractors:
        keep_extractors(options.extractors.split(","))
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        source = options.folder or fetch(Path(scratch))
        costs = []
        for copies in (1, options.copies):
            folder = Path(scratch) / f"copies{copies}"
            make(source, options.only, copies, folder)
            with bench_parts(Path(scratch) / f"kb{copies}") as parts:
                costs.append(measure(parts, folder, options.edits))
            print(
                "{} files: a leaf edit {:.3f} s, CPU {:.3f} s; the look at the work tree, CPU {:.3f} s".format(
                    *costs[-1]
                )
            )
        one, many = costs
        print(
            f"{many.files / one.files:.1f}x the files: CPU {many.cpu / one.cpu:.2f}x, wall {many.wall / one.wall:.2f}x "
            "(to reach 1.5x)"
        )


def make(source: Path, only: list[str], copies: int, folder: Path) -> None:
    """A repository with copies of some folders of the sources, committed."""
    for number in range(copies):
        package = f"{PACKAGE}{number}"
        for part in [*only, f"{PACKAGE}/__init__.py", f"{PACKAGE}/{LEAF}"]:
            target = folder / part.replace(PACKAGE, package, 1)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (source / part).is_dir():
                shutil.copytree(source / part, target, dirs_exist_ok=True)
            else:
                shutil.copy(source / part, target)
        for file in (folder / package).rglob("*.py"):
            data = file.read_bytes()
            file.write_bytes(re.sub(rb"\bdjango\b", package.encode(), data))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "copies")


def measure(parts: BenchParts, folder: Path, edits: int) -> Cost:
    report = index_repository(parts, IndexRequest(str(folder), report_dirty=False))
    leaf = folder / f"{PACKAGE}0" / LEAF
    walls, cpus = [], []
    for number in range(edits):
        leaf.write_text(f"{leaf.read_text()}\n\nEDIT_{number} = {number}\n")
        git(folder, "commit", "-q", "-a", "-m", f"edit {number}")
        before, started = cpu_seconds() + server_cpu_seconds(parts), time.perf_counter()
        edit = index_repository(parts, IndexRequest(str(folder), report_dirty=False, jobs=1))
        walls.append(time.perf_counter() - started)
        cpus.append(cpu_seconds() + server_cpu_seconds(parts) - before)
        assert edit.incremental, edit
    looks = []
    for _ in range(3):
        before = cpu_seconds()
        Repository.open(folder, parts.home).dirty()
        looks.append(cpu_seconds() - before)
    files = report.files + report.excluded
    return Cost(files, statistics.median(walls), statistics.median(cpus), statistics.median(looks))


if __name__ == "__main__":
    main()
