"""The use case `kb gc`: drops snapshots by policy, then every row that nothing reaches any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from kb.errors import KbError
from kb.git.repository import Repository
from kb.store import locks
from kb.store.catalog import RepositoryRow, SnapshotRow, repositories, snapshots
from kb.store.collect import collect
from kb.store.database import Connection
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
    rows: dict[str, int] = field(default_factory=dict)
    """Table -> content rows that nothing reached."""
    notices: list[str] = field(default_factory=list)


def collect_garbage(
    parts: Parts, policy: RetentionPolicy, *, repo: str | None = None, dry_run: bool = False
) -> GcReport:
    """Drops what the policy does not keep, in one transaction; waits for index runs that are under way.

    Readers go on undisturbed: they see the state before or the one after. Embeddings of texts that
    still live stay.
    """
    report = GcReport(dry_run)
    with parts.database.writer() as connection:
        connection.autocommit = True
        with locks.collecting(connection), connection.transaction(force_rollback=dry_run):
            _collect(parts, connection, policy, repo, report)
    return report


def _collect(
    parts: Parts, connection: Connection, policy: RetentionPolicy, repo: str | None, report: GcReport
) -> None:
    for row in repositories(connection):
        sealed = snapshots(connection, row.repository_id)
        if repo is not None and row.name != repo:
            report.kept += len(sealed)
            continue
        named = _named_commits(parts, row, policy, report)
        kept = _kept(sealed, named, policy)
        lineages = {one.lineage_id for one in sealed if one.snapshot_id in kept}
        of_kept = {one.snapshot_id for one in sealed if one.lineage_id in lineages}
        kept |= tips(connection, row.repository_id) & of_kept
        dropped = [one for one in sealed if one.snapshot_id not in kept]
        report.kept += len(sealed) - len(dropped)
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
        repository = Repository.open(row.location, parts.home, fetch=False)
        named = set(repository.branches().values()) if policy.keep_branches else set()
        if policy.keep_tags:
            named |= set(repository.tags().values())
    except KbError as error:
        report.notices.append(f"{row.name}: nothing dropped, its branches cannot be read ({error})")
        return None
    return named
