"""Full and incremental index of Django 5.2 against the raw parse of the same blobs, in one run.

    python -m evals.bench.index_django [--folder DJANGO] [--jobs N]

Without `--folder` the source distribution is fetched from the package registry. Times drift between
runs and machines; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

import pygit2
import tree_sitter
import tree_sitter_python

from evals.bench.servers import bench_parts
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest

VERSION = "5.2"


def fetch(into: Path) -> Path:
    """Django's source distribution, unpacked."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
            "--no-build-isolation",
            f"django=={VERSION}",
            "-d",
            str(into),
        ],
        check=True,
    )
    with tarfile.open(next(into.glob("*.tar.gz"))) as archive:
        archive.extractall(into, filter="data")
    return next(path for path in into.iterdir() if path.is_dir())


def commit_all(source: Path, folder: Path) -> None:
    """The sources as a repository of one commit."""
    shutil.copytree(source, folder)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "Django")


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def raw_parse(folder: Path) -> tuple[float, int, int]:
    """Seconds that one core takes to parse every Python blob; blobs and bytes."""
    repository = pygit2.Repository(str(folder))
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    blobs = []

    def collect(tree: pygit2.Tree) -> None:
        for entry in tree:
            if isinstance(entry, pygit2.Tree):
                collect(entry)
            elif isinstance(entry, pygit2.Blob) and (entry.name or "").endswith(".py"):
                blobs.append(entry.data)

    collect(repository.revparse_single("HEAD").tree)
    started = time.perf_counter()
    for blob in blobs:
        parser.parse(blob)
    return time.perf_counter() - started, len(blobs), sum(map(len, blobs))


class PeakMemory:
    """Peak of the proportional set size of this process and its children, kb's own (servers aside)."""

    def __init__(self) -> None:
        self.peak_mb = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.peak_mb = max(self.peak_mb, sum(map(_pss_mb, _tree(os.getpid()))))


def _tree(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            try:
                name = Path(f"/proc/{child}/comm").read_text().strip()
            except OSError:
                continue
            if name not in {"postgres", "setpriv"}:
                found += _tree(int(child))
    return found


def _pss_mb(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def cpu_seconds() -> float:
    """CPU of this process and of those children that have ended."""
    mine = resource.getrusage(resource.RUSAGE_SELF)
    theirs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def leaf_edits(parts: object, folder: Path, edits: int) -> list[float]:
    """Seconds of each incremental index after a one-line change of a leaf file."""
    times = []
    leaf = folder / "django/utils/lorem_ipsum.py"
    for number in range(edits):
        text = leaf.read_text()
        leaf.write_text(
            text.replace("COMMON_P = (", f"COMMON_P = (  # {number}\n", 1) + f"\n\nEDIT_{number} = {number}\n"
        )
        git(folder, "commit", "-q", "-a", "-m", f"edit {number}")
        started = time.perf_counter()
        report = index_repository(parts, IndexRequest(repo=str(folder)))  # type: ignore[arg-type]
        times.append(time.perf_counter() - started)
        assert report.incremental, report
        print(
            f"    edit {number}: {times[-1]:.3f} s, {report.linked_files} files, {report.linked_homes} homes linked"
        )
    return times


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--jobs", type=int, default=0)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        folder = Path(scratch) / "django"
        commit_all(options.folder or fetch(Path(scratch)), folder)
        with bench_parts(Path(scratch)) as parts:
            measure(parts, folder, options.jobs)


def measure(parts: object, folder: Path, jobs: int) -> None:
    parse, blobs, size = raw_parse(folder)
    print(f"raw tree-sitter parse, one core: {parse:.2f} s  ({blobs} blobs, {size / 1e6:.1f} MB)")
    with PeakMemory() as memory:
        cpu, started = cpu_seconds(), time.perf_counter()
        report = index_repository(parts, IndexRequest(repo=str(folder), jobs=jobs))  # type: ignore[arg-type]
        wall, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    print(
        f"full index: wall {wall:.2f} s = {wall / parse:.2f}x raw parse; kb's CPU {cpu:.2f} s = {cpu / parse:.2f}x"
    )
    print(
        f"    {report.files} files, {report.spans} spans, {report.artifacts} artifacts, {report.gap_count} gaps"
    )
    print(f"peak memory of kb's processes: {memory.peak_mb:.0f} MB (limit 600)")
    with parts.database.reader() as connection:  # type: ignore[attr-defined]
        size_mb = connection.execute("SELECT pg_database_size(current_database()) / 1e6").fetchone()[0]
        print(f"database: {size_mb:.0f} MB (limit 120)")
        for name, rows, table_mb, index_mb in connection.execute(
            """SELECT relname, n_live_tup, pg_table_size(relid) / 1e6, pg_indexes_size(relid) / 1e6
               FROM pg_stat_user_tables ORDER BY pg_total_relation_size(relid) DESC LIMIT 16"""
        ).fetchall():
            print(f"    {name:24} {rows:>9,} rows {table_mb:7.1f} MB + {index_mb:6.1f} MB indexes")
    started = time.perf_counter()
    index_repository(parts, IndexRequest(repo=str(folder), jobs=jobs))  # type: ignore[arg-type]
    print(f"index of a sealed commit: {time.perf_counter() - started:.3f} s (limit 0.3)")
    times = leaf_edits(parts, folder, 8)
    median = statistics.median(times)
    print(f"leaf edit: median {median:.3f} s = {median / parse:.3f}x raw parse (to reach 0.075x)")


if __name__ == "__main__":
    main()
