"""A snapshot from the difference to the lineage's tip: reads new blobs, re-links what the look-ups say."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from kb.errors import NotFoundError, RepositoryError
from kb.extract.invalidation import changed_answers, changed_homes
from kb.extract.layout import Layout
from kb.extract.linking import Linker
from kb.model.artifacts import LinkedFile
from kb.model.files import TreeFile
from kb.snapshot import faults
from kb.snapshot.facts import StoredFacts
from kb.snapshot.plan import storable
from kb.snapshot.run import Run
from kb.store import collisions, links, locks, manifest, sealing
from kb.store.catalog import SnapshotRow
from kb.store.facts import LineageFacts, homes_asking
from kb.store.manifest import FileRow, Tip
from kb.store.sealing import SealCounts
from kb.structure.dialects import PARSER_VERSION

_MOST = 0.25
"""A difference above this share of the tip's files is no longer worth storing as one."""

_QUESTIONS = 20
"""What linking a file asks the database, about: with so many files for one of the repository's, reading
all of the state at once costs less than asking."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a commit changes against the tip of a lineage."""

    tip: Tip
    files: list[FileRow]
    """Added or changed files, as the new snapshot accounts for them."""
    removed: list[str]

    @property
    def paths(self) -> list[str]:
        """Every path that was touched."""
        return sorted({*self.removed, *(file.path for file in self.files)})


def extend(run: Run) -> SnapshotRow | None:
    """Seals the run's commit as the difference from the lineage's tip.

    None where there is nothing to extend, or where the difference is too large to be worth it.
    """
    tip = manifest.tip(run.connection, run.row.repository_id, run.recipe_id)
    while tip is not None:
        difference = _difference(run, tip)
        if len(difference.paths) > max(tip.files * _MOST, 1):
            return None
        run.cover(difference.files)
        with run.crew() as workers:
            run.parse_missing(difference.files, workers)
        manifest.put_paths(run.connection, difference.paths)
        with run.connection.transaction():
            locks.lock_lineage(run.connection, run.row.repository_id, run.recipe_id)
            now = manifest.tip(run.connection, run.row.repository_id, run.recipe_id)
            if now == tip:
                _apply(run, difference)
                faults.point("before_commit")
        if now == tip:
            faults.point("sealed")
            break
        tip = now  # another process sealed meanwhile: the difference is to its snapshot now
    return run.sealed()


def _difference(run: Run, tip: Tip) -> Difference:
    changed, removed = _changes(run, tip)
    return Difference(tip, run.plan(changed), removed)


def _changes(run: Run, tip: Tip) -> tuple[list[TreeFile], list[str]]:
    """Files that the commit has otherwise than the tip, and paths that it no longer has."""
    try:
        changes = list(run.repository.diff(tip.tree, run.commit.tree))
    except (RepositoryError, NotFoundError):
        # The tip's tree is gone (force-push and git gc): the tip as the database has it will do.
        return _changes_from_rows(run, tip)
    return (
        [change.new for change in changes if change.new is not None],
        [storable(change.path) for change in changes if change.new is None],
    )


def _changes_from_rows(run: Run, tip: Tip) -> tuple[list[TreeFile], list[str]]:
    held = {
        file.path: (file.oid, file.mode)
        for file in LineageFacts(run.connection, tip.lineage_id, tip.ordinal, {}).files()
    }
    changed = []
    for file in run.repository.files(run.commit):
        known = held.pop(storable(file.path), None)
        # A submodule has no blob; it is always taken as changed, which costs a row and no work.
        if known is None or known != (file.oid, file.mode):
            changed.append(file)
    return changed, sorted(held)


def _apply(run: Run, difference: Difference) -> None:
    """Writes the difference and seals it, in the current transaction under the lineage's lock."""
    connection, lineage_id = run.connection, difference.tip.lineage_id
    ordinal = difference.tip.ordinal + 1
    versions = run.recipe.fact_versions
    before = StoredFacts(
        LineageFacts(connection, lineage_id, difference.tip.ordinal, versions), preload=False
    )
    reader = LineageFacts(connection, lineage_id, ordinal, versions)
    after = StoredFacts(reader, preload=False)
    before.prefetch_rows(difference.paths)
    parsed_before = {path for path in difference.paths if before.dialect(path) is not None}
    counts = sealing.counts_of(connection, lineage_id, difference.tip.ordinal).minus(
        sealing.count_files(connection, lineage_id, difference.tip.ordinal, difference.paths)
    )
    manifest.put_files(
        connection,
        difference.files,
        removed=difference.removed,
        parser_version=PARSER_VERSION,
        lineage_id=lineage_id,
        ordinal=ordinal,
    )
    counts = counts.plus(sealing.count_files(connection, lineage_id, ordinal, difference.paths))
    faults.point("files_stored")
    after.prefetch_rows(difference.paths)
    homes = _homes_to_link(run, difference, before, after)
    many = len(homes) * _QUESTIONS > difference.tip.files
    before_links = links.held(connection, _replaced(run, homes, parsed_before, before, after), lineage_id)
    state = StoredFacts(reader, preload=True) if many else after
    state.foresee(before_links.lookups)
    linked = _link(run, homes, state)
    run.linked_files = len({one.path for one in linked})
    run.linked_homes = len(linked)
    renamings = collisions.settle_linked(connection, linked, before_links)
    replaced = links.replace(connection, linked, before_links, ordinal)
    renamed = collisions.rename(connection, lineage_id, ordinal, renamings)
    counts = counts.plus(SealCounts(artifacts=replaced.grew))
    faults.point("linked")
    sealing.check_changed(connection, lineage_id, ordinal, difference.paths, [*replaced.touched, *renamed])
    faults.point("checked")
    sealing.seal(
        connection,
        repository_id=run.row.repository_id,
        recipe_id=run.recipe_id,
        lineage_id=lineage_id,
        ordinal=ordinal,
        commit_id=run.commit_id(),
        tree=run.commit.tree,
        counts=counts,
    )
    faults.point("before_seal")


def _homes_to_link(
    run: Run, difference: Difference, before: StoredFacts, after: StoredFacts
) -> dict[str, set[str]]:
    """Path -> the extractors to link there: those to which it says something else, and those that asked."""
    homes: dict[str, set[str]] = defaultdict(set)
    for path, extractor in changed_homes(difference.paths, before, after, run.recipe.extractors):
        homes[path].add(extractor)
    answers = changed_answers(difference.paths, before, after, run.recipe.roots)
    asking = homes_asking(run.connection, difference.tip.lineage_id, answers)
    after.look_up({path for path, _ in asking})
    for path, extractor in asking:
        if after.dialect(path) is not None:
            homes[path].add(extractor)
    return homes


def _replaced(
    run: Run, homes: dict[str, set[str]], parsed_before: set[str], before: StoredFacts, after: StoredFacts
) -> set[tuple[str, str]]:
    """(path, extractor) of what is linked anew, and of what no extractor reads any more."""
    gone = {
        (path, extractor.id)
        for path in parsed_before
        if after.dialect(path) != before.dialect(path)
        for extractor in run.recipe.extractors
    }
    return gone | {(path, extractor) for path, extractors in homes.items() for extractor in extractors}


def _link(run: Run, homes: dict[str, set[str]], after: StoredFacts) -> list[LinkedFile]:
    linker = Linker(run.recipe.extractors, after, Layout(after, run.recipe.roots))
    linked: list[LinkedFile] = []
    after.prefetch(homes, run.recipe.fact_versions)
    for done, path in enumerate(sorted(homes)):
        run.progress("link", done, len(homes))
        linked += linker.link(path, frozenset(homes[path]))
    return linked
