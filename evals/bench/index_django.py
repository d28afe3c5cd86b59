"""Full and incremental index of Django 5.2 against the raw parse of the same blobs, in one run.

    python -m evals.bench.index_django [--folder DJANGO] [--jobs N] [--extractors symbols]

Without `--folder` the source distribution is fetched from the package registry. Times drift between
runs and machines; the ratios are what counts. CPU seconds, kb's and the server's together, say what an
index costs where other work shares the machine, and wall time what it takes where none does.
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
from kb.extract import registry
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
    """CPU seconds that one core takes to parse every Python blob; blobs and bytes."""
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
    started = time.process_time()
    for blob in blobs:
        parser.parse(blob)
    return time.process_time() - started, len(blobs), sum(map(len, blobs))


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


def server_cpu_seconds(parts: object) -> float:
    """CPU of the server's processes, those that have ended included."""
    with parts.database.owner() as connection:  # type: ignore[attr-defined]
        data = connection.execute("SHOW data_directory").fetchone()[0]
    server = int((Path(data) / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return _ticks(server, ended=True) + sum(_ticks(int(child), ended=False) for child in children)


def _ticks(pid: int, *, ended: bool) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if ended else 13])) / os.sysconf("SC_CLK_TCK")


def leaf_edits(parts: object, folder: Path, numbers: range, *, look: bool) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds of each incremental index after a one-line change of a leaf file.

    Args:
        parts: what use cases are given.
        folder: the repository.
        numbers: one edit for each.
        look: whether to look at the work tree for what the commit does not have, as without `--sha`.
    """
    times, cpus = [], []
    leaf = folder / "django/utils/lorem_ipsum.py"
    for number in numbers:
        text = leaf.read_text()
        leaf.write_text(
            text.replace("COMMON_P = (", f"COMMON_P = (  # {number}\n", 1) + f"\n\nEDIT_{number} = {number}\n"
        )
        git(folder, "commit", "-q", "-a", "-m", f"edit {number}")
        cpu, started = cpu_seconds() + server_cpu_seconds(parts), time.perf_counter()
        report = index_repository(parts, IndexRequest(repo=str(folder), report_dirty=look))  # type: ignore[arg-type]
        times.append(time.perf_counter() - started)
        cpus.append(cpu_seconds() + server_cpu_seconds(parts) - cpu)
        assert report.incremental, report
        print(
            f"    edit {number}: {times[-1]:.3f} s, CPU {cpus[-1]:.3f} s, {report.linked_files} files, {report.linked_homes} homes linked"
        )
    return times, cpus


def keep_extractors(ids: list[str]) -> None:
    """Leaves only some of kb's extractors in this process and in those it starts."""
    registry.BUILTIN = tuple(
        reference
        for reference, extractor in zip(registry.BUILTIN, registry.builtin_extractors(), strict=True)
        if extractor.id in ids
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--jobs", type=int, default=0)
    arguments.add_argument("--extractors", help="ids, separated by commas: only these are run")
    options = arguments.parse_args()
    if options.extractors:
        keep_extractors(options.extractors.split(","))
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        folder = Path(scratch) / "django"
        commit_all(options.folder or fetch(Path(scratch)), folder)
        with bench_parts(Path(scratch)) as parts:
            measure(parts, folder, options.jobs)


def measure(parts: object, folder: Path, jobs: int) -> None:
    parse, blobs, size = raw_parse(folder)
    print(f"raw tree-sitter parse, one core: {parse:.2f} s  ({blobs} blobs, {size / 1e6:.1f} MB)")
    with PeakMemory() as memory:
        cpu, server, started = cpu_seconds(), server_cpu_seconds(parts), time.perf_counter()
        report = index_repository(parts, IndexRequest(repo=str(folder), jobs=jobs))  # type: ignore[arg-type]
        wall, cpu = time.perf_counter() - started, cpu_seconds() - cpu
        server = server_cpu_seconds(parts) - server
    parse = (parse + raw_parse(folder)[0]) / 2
    print(f"raw parse, mean of before and after: {parse:.2f} s")
    print(f"full index: wall {wall:.2f} s = {wall / parse:.2f}x raw parse")
    print(
        f"    CPU {cpu + server:.2f} s = {(cpu + server) / parse:.2f}x: "
        f"kb {cpu:.2f} s = {cpu / parse:.2f}x, server {server:.2f} s = {server / parse:.2f}x"
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
    for name, numbers, look in (
        ("leaf edit", range(8), False),
        ("leaf edit, with a look at the work tree", range(8, 16), True),
    ):
        times, cpus = leaf_edits(parts, folder, numbers, look=look)
        median, cpu = statistics.median(times), statistics.median(cpus)
        print(
            f"{name}: median {median:.3f} s = {median / parse:.3f}x raw parse (to reach 0.075x); CPU {cpu:.3f} s"
        )


if __name__ == "__main__":
    main()
