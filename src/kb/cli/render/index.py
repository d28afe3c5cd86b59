"""The report of `kb index`, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kb.cli.render.gaps import gap_lines
from kb.cli.render.words import counted, short_sha
from kb.cli.terminal import dim, one_line, strong, warning

if TYPE_CHECKING:
    from kb.snapshot.requests import IndexReport

_LISTED = 20


def index_lines(report: IndexReport) -> Iterator[str]:
    """The headline with the counts, then gaps, what was not indexed, and notices."""
    yield _headline(report)
    yield dim(f"  {_accounting(report)}")
    if report.gaps:
        yield ""
        yield warning(f"{counted(report.gap_count, 'gap')}, not readable for kb:")
        yield from gap_lines(report.gaps)
        if report.gap_count > len(report.gaps):
            more = f"{report.gap_count - len(report.gaps):,} more"
            yield f"  and {more}: kb gaps --repo {one_line(report.repository)} --sha {short_sha(report.sha)}"
    if report.dirty:
        yield ""
        yield warning(f"not indexed: {counted(len(report.dirty), 'uncommitted change')} in the working tree")
        yield from _listed(report.dirty)
    for notice in report.notices:
        yield f"note: {one_line(notice)}"


def _headline(report: IndexReport) -> str:
    counts = ", ".join(
        (
            counted(report.files, "file"),
            counted(report.spans, "span"),
            counted(report.artifacts, "artifact"),
            counted(report.gap_count, "gap"),
        )
    )
    sha = strong(short_sha(report.sha))
    if report.already_sealed:
        return f"already indexed {sha}: {counts}; nothing to do"
    return f"indexed {sha}: {counts}"


def _accounting(report: IndexReport) -> str:
    parts = (
        f"{report.parsed:,} parsed",
        f"{report.gap_files:,} unreadable",
        f"{report.no_language:,} in no language kb reads",
        f"{report.excluded:,} excluded",
    )
    return f"{one_line(report.repository)}: {', '.join(parts)}; {report.seconds:.1f} s"


def _listed(names: Sequence[str]) -> Iterator[str]:
    for name in names[:_LISTED]:
        yield f"  {one_line(name)}"
    if len(names) > _LISTED:
        yield f"  and {len(names) - _LISTED:,} more"
