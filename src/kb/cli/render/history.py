"""The reports of `kb backfill`, `kb gc` and `kb hook`, for a person."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kb.cli.render.words import columns, counted, short_sha
from kb.cli.terminal import dim, one_line, strong, warning

if TYPE_CHECKING:
    from kb.snapshot.backfill import BackfillReport
    from kb.snapshot.gc import GcReport
    from kb.snapshot.hooks import HookReport

_LISTED = 20


def backfill_lines(report: BackfillReport) -> Iterator[str]:
    """How many commits, how many of them anew, and how long one took."""
    done = f"{counted(report.sealed, 'commit')} indexed, {report.already:,} already were"
    yield f"{strong(one_line(report.repository))}: {done}"
    seconds = sorted(report.seconds)
    if seconds:
        yield dim(f"  {statistics.median(seconds):.1f} s each in the middle, {seconds[-1]:.1f} s at most")


def gc_lines(report: GcReport) -> Iterator[str]:
    """What went, or on a dry run would go: snapshots, then rows by table."""
    verb = "would drop" if report.dry_run else "dropped"
    yield f"{verb} {counted(len(report.dropped), 'snapshot')}; {report.kept:,} {'stays' if report.kept == 1 else 'stay'}"
    yield from columns([(one_line(name), short_sha(label)) for name, label in report.dropped[:_LISTED]])
    if len(report.dropped) > _LISTED:
        yield f"  and {len(report.dropped) - _LISTED:,} more"
    erased = [("rows of dropped snapshots", report.membership_rows)]
    erased += sorted(report.rows.items(), key=lambda item: (-item[1], item[0]))
    erased += [("objects of working trees", report.worktree_objects)]
    erased += [("mirrors that no repository uses", report.mirrors)]
    rows = [(name, f"{number:,}") for name, number in erased if number]
    if rows:
        yield dim(f"{'would erase' if report.dry_run else 'erased'}:")
        yield from columns(rows)
    for notice in report.notices:
        yield warning(f"note: {one_line(notice)}")


def hook_lines(report: HookReport) -> Iterator[str]:
    """The folder, then each hook and whether it calls kb."""
    yield dim(one_line(report.folder))
    yield from columns([(hook.name, "calls kb" if hook.installed else "-") for hook in report.hooks])
