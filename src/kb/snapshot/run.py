"""One run of the index: the commit, the recipe and the rows it works on."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from kb.git.repository import Repository
from kb.model.commits import CommitInfo
from kb.model.files import TreeFile
from kb.snapshot import faults
from kb.snapshot.plan import plan_files
from kb.snapshot.recipe import Recipe
from kb.snapshot.requests import Progress, silent
from kb.snapshot.workers import Crew, WorkSpec, chunked, crew
from kb.store.blobs import coverage_id, missing_parses
from kb.store.catalog import RepositoryRow, SnapshotRow, put_commit, snapshots, worktree_snapshot
from kb.store.database import Connection, Database
from kb.store.manifest import FileRow
from kb.structure.dialects import PARSER_VERSION

_BATCH_BYTES = 400_000
_BATCH_FILES = 64


@dataclass
class Run:
    """What the steps of one index run share."""

    database: Database
    connection: Connection
    repository: Repository
    row: RepositoryRow
    commit: CommitInfo
    recipe: Recipe
    recipe_id: int
    jobs: int
    progress: Progress = silent
    worktree: bool = False
    """The commit's tree is that of the work tree, not of a commit."""
    parsed_blobs: int = 0
    linked_files: int = 0
    linked_homes: int = 0
    coverage: dict[str, int] = field(default_factory=dict)

    def crew(self) -> AbstractContextManager[Crew]:
        """Workers for this run; a task that is too small for processes is done here, on its connection."""
        spec = WorkSpec(
            database=self.database,
            repository=self.repository,
            coverage=self.coverage,
            fact_versions=self.recipe.fact_versions,
            extractor_ids=tuple(extractor.id for extractor in self.recipe.extractors),
            roots=self.recipe.roots,
            max_blob_bytes=self.recipe.max_blob_bytes,
        )
        return crew(spec, self.jobs, (self.connection, self.recipe.extractors))

    def plan(self, files: Iterable[TreeFile]) -> list[FileRow]:
        """Tree entries as rows of the manifest."""
        rows = list(plan_files(files, self.recipe.scope, self.repository.read, self.recipe.max_blob_bytes))
        faults.point("planned")
        return rows

    def cover(self, files: Iterable[FileRow]) -> None:
        """Makes sure that every dialect among the files has its coverage id."""
        for dialect in {file.dialect for file in files if file.dialect is not None}:
            if dialect not in self.coverage:
                self.coverage[dialect] = coverage_id(self.connection, self.recipe.sources_for(dialect))

    def parse_missing(self, files: Iterable[FileRow], crew: Crew) -> None:
        """Parses and stores those blobs among the files that nobody has parsed so far."""
        sizes = {(file.oid, file.dialect): file.size for file in files if file.dialect and file.oid}
        dialects = {dialect for _, dialect in sizes}
        wanted = {dialect: self.recipe.sources_for(dialect) for dialect in dialects}
        missing = missing_parses(self.connection, sizes, PARSER_VERSION, wanted)
        batches = chunked([(key, sizes[key]) for key in sizes if key in missing], _BATCH_BYTES, _BATCH_FILES)
        done = 0

        def report(_: int, count: int) -> None:
            nonlocal done
            done += count
            faults.point("parse_stored")
            self.progress("parse", done, len(missing))

        self.progress("parse", 0, len(missing))
        self.parsed_blobs += crew.run("parse", [(batch,) for batch in batches], report)
        faults.point("parsed")

    def sealed(self) -> SnapshotRow | None:
        """The snapshot that exists of what this run is to index."""
        if self.worktree:
            return worktree_snapshot(
                self.connection, self.row.repository_id, self.recipe_id, self.commit.tree
            )
        found = snapshots(
            self.connection, self.row.repository_id, sha=self.commit.sha, recipe_id=self.recipe_id
        )
        return found[0] if found else None

    def commit_id(self) -> int | None:
        """The commit's row, in the current transaction; None for a work tree."""
        if self.worktree:
            return None
        return put_commit(self.connection, self.row.repository_id, self.commit)
