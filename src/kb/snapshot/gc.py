"""The use case `kb gc`: drops snapshots by policy, then every row that nothing reaches any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kb.errors import KbError, NotFoundError
from kb.git.mirror import discard
from kb.git.overlays import unreachable, worktree_objects
from kb.git.repository import Repository
from kb.snapshot.repositories import stray_mirrors
from kb.store import locks
from kb.store.catalog import RepositoryRow, SnapshotRow, find_repository, repositories, snapshots
from kb.store.collect import collect
from kb.store.database import Connection
from kb.store.manifest import drop_orphans
from kb.store.parts import Parts
from kb.store.retention import drop_snapshots, drop_unheld, tips


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Which snapshots stay. What any rule keeps stays; the tip of a lineage that stays always does."""

    keep_last: int = 10
    """The commits of a repository that were sealed last."""
    newer_than: timedelta | None = timedelta(days=30)
    """Snapshots sealed since then; None for no such rule."""
    keep_branches: bool = True
    keep_tags: bool = True


@dataclass(slots=True)
class GcReport:
    """What was (or, on a dry run, would be) erased."""

    dry_run: bool
    dropped: list[tuple[str, str]] = field(default_factory=list)
    """(repository, label) of each dropped snapshot."""
    kept: int = 0
    membership_rows: int = 0
    """Rows that say what dropped snapshots held, lineages that went as a whole aside."""
    rows: dict[str, int] = field(default_factory=dict)
    """Table -> content rows that nothing reached."""
    worktree_objects: int = 0
    """Objects of replaced work trees in kb's own store."""
    mirrors: int = 0
    """Mirrors that were fetched for a run which ended before it had registered them."""
    notices: list[str] = field(default_factory=list)


def collect_garbage(
    parts: Parts, policy: RetentionPolicy, *, repo: str | None = None, dry_run: bool = False
) -> GcReport:
    """Drops what the policy does not keep, in one transaction; waits for index runs that are under way.

    Readers go on undisturbed: they see the state before or the one after. Embeddings of texts that
    still live stay.

    Args:
        parts: the database and the data home.
        policy: what stays.
        repo: name or path of the only repository to drop snapshots of; all of them where it is None.
        dry_run: say what would go, and take all of it back.

    Raises:
        NotFoundError: no indexed repository is `repo`.
    """
    report = GcReport(dry_run)
    with parts.database.writer() as connection:
        connection.autocommit = True
        with locks.collecting(connection):
            with connection.transaction(force_rollback=dry_run):
                chosen = _chosen(connection, repo)
                _collect(parts, connection, policy, chosen, report)
                objects = [path for row in chosen for path in _stray_objects(parts, connection, row)]
            report.worktree_objects = len(objects)
            stray = stray_mirrors(parts, connection)
            report.mirrors = len(stray) if dry_run else sum(map(discard, stray))
            if not dry_run:
                for path in objects:
                    path.unlink(missing_ok=True)
    return report


def _chosen(connection: Connection, repo: str | None) -> list[RepositoryRow]:
    if repo is None:
        return repositories(connection)
    found = find_repository(connection, name=repo)
    if found is None:
        try:
            found = find_repository(connection, location=Repository.locate(repo))
        except KbError:
            found = None
    if found is None:
        raise NotFoundError(f"no indexed repository is {repo!r}", hint="see: kb repo list")
    return [found]


def _stray_objects(parts: Parts, connection: Connection, row: RepositoryRow) -> list[Path]:
    """Objects of the repository's work trees that none of its snapshots is of any more."""
    trees = [one.tree for one in snapshots(connection, row.repository_id) if one.sha is None]
    return unreachable(worktree_objects(parts.home, row.location), trees)


def _collect(
    parts: Parts,
    connection: Connection,
    policy: RetentionPolicy,
    chosen: Sequence[RepositoryRow],
    report: GcReport,
) -> None:
    report.kept = len(snapshots(connection))
    for row in repositories(connection):
        drop_orphans(connection, row.repository_id)  # what killed runs left: nobody writes now
    for row in chosen:
        sealed = snapshots(connection, row.repository_id)
        named = _named_commits(parts, row, policy, report)
        kept = _kept(sealed, named, policy)
        lineages = {one.lineage_id for one in sealed if one.snapshot_id in kept}
        of_kept = {one.snapshot_id for one in sealed if one.lineage_id in lineages}
        kept |= tips(connection, row.repository_id) & of_kept
        dropped = [one for one in sealed if one.snapshot_id not in kept]
        report.kept -= len(dropped)
        report.dropped += [(row.name, one.label) for one in dropped]
        report.membership_rows += drop_snapshots(connection, [one.snapshot_id for one in dropped])
        for lineage_id in {one.lineage_id for one in sealed} - {one.lineage_id for one in dropped}:
            report.membership_rows += drop_unheld(connection, lineage_id)
    report.rows = {table: count for table, count in collect(connection).items() if count}


def _kept(sealed: Sequence[SnapshotRow], named: set[str] | None, policy: RetentionPolicy) -> set[int]:
    """Snapshots that a rule keeps; all of them where branches and tags could not be read."""
    if named is None:
        return {one.snapshot_id for one in sealed}
    commits = [one for one in sealed if one.sha is not None]
    kept = {one.snapshot_id for one in commits[: policy.keep_last]}
    kept |= {one.snapshot_id for one in commits if one.sha in named}
    kept |= {one.snapshot_id for one in sealed[:1] if one.sha is None}
    if policy.newer_than is not None:
        since = datetime.now(UTC) - policy.newer_than
        kept |= {one.snapshot_id for one in commits if one.sealed_at >= since}
    return kept


def _named_commits(
    parts: Parts, row: RepositoryRow, policy: RetentionPolicy, report: GcReport
) -> set[str] | None:
    """Commits that a branch or tag names; None where the repository cannot be asked, so all stays."""
    if not policy.keep_branches and not policy.keep_tags:
        return set()
    try:
        repository = Repository.reopen(row.location, parts.home, is_remote=row.is_remote)
        named = set()
        if policy.keep_branches:
            head = repository.head_sha()  # where it is detached, no branch has it
            named = {*repository.branches().values(), *([head] if head else [])}
        if policy.keep_tags:
            named |= set(repository.tags().values())
    except KbError as error:
        report.notices.append(f"{row.name}: nothing dropped, its branches cannot be read ({error})")
        return None
    return named
