"""What of a full index's cost is not kb's own work: the least that its rows and a look at every node take.

    python -m evals.bench.index_floor [--folder DJANGO]

Indexes Django, then (1) copies all its rows, as they are, into an empty database with the same tables, indexes
and guards, and (2) parses every Python blob and asks each node of its tree for its kind, once. No index that
keeps as many rows and reads trees in Python can be cheaper, whatever else it does.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from graphlib import TopologicalSorter
from pathlib import Path

import pygit2
import tree_sitter
import tree_sitter_python

from evals.bench.index_django import commit_all, cpu_seconds, fetch, raw_parse, server_cpu_seconds
from evals.bench.servers import BenchParts, bench_parts
from kb.snapshot.index import index_repository
from kb.snapshot.requests import IndexRequest

# References that triggers check, a set at a time (docs/decisions/0003).
_BY_SET = {
    "artifact_derived_from": ("artifact", "code_span"),
    "artifact_edge": ("artifact",),
    "grounding_location": ("artifact", "artifact_derived_from", "snapshot_file", "span_occurrence"),
    "snapshot_entry": ("artifact", "artifact_derived_from"),
    "span_occurrence": ("code_span", "parse"),
    "snapshot": ("snapshot_entry", "snapshot_file", "grounding_location"),
}


def tables(parts: BenchParts) -> list[str]:
    """The tables that hold rows, each after those that it refers to."""
    with parts.database.owner() as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT relname FROM pg_stat_user_tables WHERE relname <> 'kb_schema_version'"
            ).fetchall()
        ]
        references = connection.execute(
            "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
        ).fetchall()
    order = TopologicalSorter({name: set(_BY_SET.get(name, ())) for name in names})
    for name, other in references:
        if name != other:
            order.add(name, other)
    return list(order.static_order())


def rows_alone(parts: BenchParts, scratch: Path) -> tuple[float, int]:
    """CPU seconds of a server that takes the rows in, in one transaction; and how many bytes they are."""
    names = tables(parts)
    held = {}
    with parts.database.owner() as connection:
        for name in names:
            with connection.cursor().copy(f"COPY {name} TO STDOUT (FORMAT BINARY)") as copy:
                held[name] = b"".join(bytes(piece) for piece in copy)
    with bench_parts(scratch / "empty") as empty:
        before = server_cpu_seconds(empty)
        with empty.database.owner() as connection:
            for name in names:
                connection.execute(f"DELETE FROM {name}")  # what a new database holds already
            for name, data in held.items():
                with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT BINARY)") as copy:
                    copy.write(data)
            connection.commit()
        return server_cpu_seconds(empty) - before, sum(map(len, held.values()))


def every_node(folder: Path) -> tuple[float, int]:
    """CPU seconds of parsing every Python blob and of asking each node for its kind; and the nodes."""
    repository = pygit2.Repository(str(folder))
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    blobs = [
        repository[entry.id].data for entry in repository.index if entry.path.endswith(".py") and entry.id
    ]
    nodes = 0
    started = time.process_time()
    for blob in blobs:
        waiting = [parser.parse(blob).root_node]
        while waiting:
            node = waiting.pop()
            nodes += node.kind_id >= 0
            waiting += node.children
    return time.process_time() - started, nodes


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch:
        folder = Path(scratch) / "django"
        commit_all(options.folder or fetch(Path(scratch)), folder)
        parse = raw_parse(folder)[0]
        walk, nodes = every_node(folder)
        with bench_parts(Path(scratch)) as parts:
            cpu, server = cpu_seconds(), server_cpu_seconds(parts)
            index_repository(parts, IndexRequest(repo=str(folder), jobs=2))  # type: ignore[arg-type]
            cpu, server = cpu_seconds() - cpu, server_cpu_seconds(parts) - server
            rows, size = rows_alone(parts, Path(scratch))
        parse = (parse + raw_parse(folder)[0]) / 2
        print(f"raw parse {parse:.2f} s")
        print(f"full index, CPU: kb {cpu / parse:.2f}x, server {server / parse:.2f}x")
        print(f"rows alone ({size / 1e6:.0f} MB), CPU of the server: {rows / parse:.2f}x")
        print(f"parse and one look at each of {nodes:,} nodes, CPU: {walk / parse:.2f}x")
        print(f"both on two cores, wall: {(rows + walk) / parse / 2:.2f}x (limit of a full index: 3x)")


if __name__ == "__main__":
    main()
