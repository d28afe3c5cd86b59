"""A snapshot from nothing: a lineage of its own, filled in private and visible when it is sealed."""

from __future__ import annotations

from kb.snapshot import faults
from kb.snapshot.run import Run
from kb.snapshot.workers import Crew, chunked
from kb.store import collisions, locks, manifest, sealing
from kb.store.catalog import SnapshotRow
from kb.store.manifest import FileRow
from kb.store.staging import refresh_statistics
from kb.structure.dialects import PARSER_VERSION

_LINK_BYTES = 600_000
_LINK_FILES = 96
_MANY_FILES = 50
"""From how many files on it pays to let the planner know how large the tables have become."""


def build(run: Run, *, replacing: bool) -> SnapshotRow:
    """Parses what is new, links every file, and seals the first snapshot of a new lineage.

    With `replacing`, a snapshot that exists of the same commit and recipe makes room for the new one at
    the seal; without it, one that another process has sealed meanwhile stands.
    """
    files = run.plan(run.repository.files(run.commit))
    run.cover(files)
    with run.crew() as workers:
        run.parse_missing(files, workers)
        lineage_id = manifest.new_lineage(run.connection, run.row.repository_id, run.recipe_id)
        faults.point("lineage_made")
        try:
            _fill(run, files, workers, lineage_id)
            sealed = _seal(run, lineage_id, replacing=replacing)
        except BaseException:
            workers.close(abruptly=True)
            manifest.drop_lineage(run.connection, lineage_id)
            raise
        finally:
            locks.disown_lineage(run.connection, lineage_id)
    if not sealed:
        manifest.drop_lineage(run.connection, lineage_id)
    found = run.sealed()
    assert found is not None
    return found


def _fill(run: Run, files: list[FileRow], workers: Crew, lineage_id: int) -> None:
    manifest.put_paths(run.connection, (file.path for file in files))
    with run.connection.transaction():
        manifest.put_files(
            run.connection, files, parser_version=PARSER_VERSION, lineage_id=lineage_id, ordinal=0
        )
    faults.point("files_stored")
    parsed = [(file.path, file.size) for file in files if file.dialect is not None]
    if len(parsed) >= _MANY_FILES:
        refresh_statistics(run.connection)  # linking asks for files and for keys of facts
    batches = chunked(parsed, _LINK_BYTES, _LINK_FILES)
    linked = 0

    def report(index: int, _: int) -> None:
        nonlocal linked
        linked += len(batches[index])
        faults.point("links_stored")
        run.progress("link", linked, len(parsed))

    run.progress("link", 0, len(parsed))
    workers.run("link", [(lineage_id, 0, batch) for batch in batches], report)
    run.linked_files = len(parsed)
    run.linked_homes = sum(
        file.dialect in extractor.dialects for file in files for extractor in run.recipe.extractors
    )
    faults.point("linked")


def _seal(run: Run, lineage_id: int, *, replacing: bool) -> bool:
    run.progress("seal", 0, 1)
    if run.linked_files >= _MANY_FILES:
        refresh_statistics(run.connection)
    with run.connection.transaction():
        collisions.settle_all(run.connection, lineage_id, 0)
        counts = sealing.count_all(run.connection, lineage_id, 0)
        sealing.check_all(run.connection, lineage_id, 0)
        faults.point("checked")
        commit_id = run.commit_id()
        if replacing and commit_id is not None:
            sealing.unseal(run.connection, commit_id, run.recipe_id)
        faults.point("before_seal")
        sealed = sealing.seal(
            run.connection,
            repository_id=run.row.repository_id,
            recipe_id=run.recipe_id,
            lineage_id=lineage_id,
            ordinal=0,
            commit_id=commit_id,
            tree=run.commit.tree,
            counts=counts,
        )
        faults.point("before_commit")
    faults.point("sealed")
    run.progress("seal", 1, 1)
    return sealed
