"""A real history, commit by commit: time against a full index, equality with clean rebuilds, storage.

    python -m evals.bench.history [REPOSITORY] [--commits 200] [--tip HEAD] [--rebuilds 10] [--search]

REPOSITORY is a path or a URL; without it a public one is fetched. Times drift between runs and machines;
the ratios are what counts. Space is that of all tables with their indexes, the search index apart; an empty
database has 0.9 MB of them, which is part of both numbers, and the ratio without it stands beside.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from evals.bench.index_django import cpu_seconds, raw_parse
from evals.bench.servers import BenchParts, bench_parts
from kb.errors import RepositoryError
from kb.git.repository import Repository
from kb.model.commits import CommitInfo
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexReport, IndexRequest
from tests.indexing import state_of

PUBLIC = "https://github.com/pallets/flask"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("repository", nargs="?", help="a path or a URL")
    arguments.add_argument("--commits", type=int, default=200)
    arguments.add_argument("--tip", default="HEAD")
    arguments.add_argument(
        "--rebuilds", type=int, default=10, help="commits that are compared with a clean index"
    )
    arguments.add_argument("--first-parent", action="store_true", help="the branch's own line only")
    arguments.add_argument("--jobs", type=int, default=0)
    arguments.add_argument("--search", action="store_true", help="the search index too, as `kb index` does")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        where = options.repository or PUBLIC
        with bench_parts(Path(scratch)) as parts, bench_parts(Path(scratch) / "clean") as clean:
            try:
                repository = Repository.open(where, parts.home)
            except RepositoryError as error:
                if options.repository:
                    raise
                print(f"not measured: no path was given, and {PUBLIC} cannot be fetched ({error})")
                sys.exit(0)
            tip = repository.resolve(options.tip)
            past = list(repository.log(tip.sha, first_parent=options.first_parent))
            commits = past[-(options.commits + 1) :]
            Bench(parts, clean, where, commits, options).run(options.rebuilds)


class Bench:
    """One run over consecutive commits, oldest first."""

    def __init__(
        self,
        parts: BenchParts,
        clean: BenchParts,
        where: str,
        commits: list[CommitInfo],
        options: argparse.Namespace,
    ) -> None:
        self.parts = parts
        self.clean = clean
        self.where = where
        self.commits = commits
        self.jobs: int = options.jobs
        self.search: bool = options.search

    def run(self, rebuilds: int) -> None:
        first, *rest = self.commits
        merges = sum(len(commit.parents) > 1 for commit in rest)
        print(f"{self.where}: {len(rest)} commits after {first.sha[:12]}, {merges} of them merges")
        empty = self.sizes()
        report, full = self.index(self.parts, first)
        counts = f"{report.files} files, {report.spans} spans, {report.artifacts} artifacts"
        print(f"full index of the first: {full:.2f} s ({counts})")
        one = self.sizes()
        cpu = cpu_seconds()
        seconds = self.history(rest)
        cpu = cpu_seconds() - cpu
        print(f"kb's own CPU: {cpu / len(rest):.3f} s per commit on average, the database's aside")
        last, again = self.index(self.clean, rest[-1], full=True)
        print(f"full index of the last: {again:.2f} s ({last.artifacts} artifacts)")
        median, p95 = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
        print(
            f"per commit: median {median:.3f} s = {median / again:.3f}x full, p95 {p95:.3f} s = {p95 / again:.3f}x full"
        )
        self.against_raw_parse(median)
        self.tell_storage(empty, one, self.sizes())
        self.compare(rebuilds)

    def index(
        self, parts: BenchParts, commit: CommitInfo, *, full: bool = False
    ) -> tuple[IndexReport, float]:
        started = time.perf_counter()
        request = IndexRequest(
            self.where,
            commit.sha,
            full=full,
            jobs=self.jobs,
            fetch=parts is self.clean,
            search=self.search,
            report_dirty=False,
        )
        report = index_repository(parts, request)
        return report, time.perf_counter() - started

    def history(self, commits: list[CommitInfo]) -> list[float]:
        """Seconds of each commit; tells the dearest, and the lineages that were begun."""
        rows: list[tuple[float, IndexReport, CommitInfo]] = []
        for commit in commits:
            report, seconds = self.index(self.parts, commit)
            rows.append((seconds, report, commit))
        begun = sum(not report.incremental for _, report, _ in rows)
        print(f"lineages begun anew: {begun}; (file, extractor) linked: {self.linked(rows)}")
        for seconds, report, commit in sorted(rows, key=lambda row: -row[0])[:5]:
            print(
                f"    {seconds:6.3f} s {commit.sha[:12]} {report.parsed_blobs} blobs, "
                f"{report.linked_files} files, {report.linked_homes} homes: {commit.subject[:50]}"
            )
        return [seconds for seconds, _, _ in rows]

    @staticmethod
    def linked(rows: list[tuple[float, IndexReport, CommitInfo]]) -> str:
        homes = Counter(min(report.linked_homes, 1000) // 10 * 10 for _, report, _ in rows)
        middle = statistics.median(report.linked_homes for _, report, _ in rows)
        return f"median {middle:.0f}; below ten in {homes[0]} commits"

    def against_raw_parse(self, median: float) -> None:
        if Path(self.where).exists():
            parse, blobs, _ = raw_parse(Path(self.where))
            print(
                f"raw parse of HEAD: {parse:.2f} s ({blobs} blobs); a commit in the middle {median / parse:.3f}x"
            )

    def tell_storage(self, empty: dict[str, float], one: dict[str, float], after: dict[str, float]) -> None:
        """What the history takes against one snapshot, and the tables that grew most."""
        known = [name for name in after if not name.startswith("search_")]
        nothing, first, last = (sum(sizes[name] for name in known) for sizes in (empty, one, after))
        print(
            f"storage: one {first:.1f} MB, {len(self.commits)} commits {last:.1f} MB = {last / first:.2f}x (to reach 2x); "
            f"without the empty database's {nothing:.1f} MB {(last - nothing) / (first - nothing):.2f}x"
        )
        for name in sorted(known, key=lambda name: one[name] - after[name])[:8]:
            print(f"    {name:24} {one[name]:6.2f} MB, then {after[name]:6.2f} MB")
        if self.search:
            found = [sum(sizes[name] for name in after if name not in known) for sizes in (one, after)]
            print(f"search index: one {found[0]:.1f} MB, then {found[1]:.1f} MB")

    def sizes(self) -> dict[str, float]:
        """Megabytes of each table with its indexes, after what updates left has been cleared away."""
        with self.parts.database.owner() as connection:
            connection.autocommit = True
            connection.execute("VACUUM FULL")
            rows = connection.execute(
                """SELECT c.relname, pg_total_relation_size(c.oid) / 1e6 FROM pg_class c
                   WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"""
            ).fetchall()
        return {str(name): float(size) for name, size in rows}

    def compare(self, rebuilds: int) -> None:
        """Ends the run with an error where a snapshot is not the one that a clean index makes."""
        step = max(len(self.commits) // rebuilds, 1)
        chosen = self.commits[::-1][::step][:rebuilds]
        for commit in chosen:
            self.index(self.clean, commit, full=True)
            mine, theirs = (
                state_of(self.parts.database, commit.sha),
                state_of(self.clean.database, commit.sha),
            )
            if mine != theirs:
                sys.exit(f"{commit.sha} differs from a clean index: {len(mine ^ theirs)} artifacts")
        print(f"equal to a clean index, artifact by artifact and place by place: {len(chosen)} commits")


if __name__ == "__main__":
    main()
