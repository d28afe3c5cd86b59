"""Search results, embedding reports and evaluations, for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kb.cli.render.snapshots import read_from_line
from kb.cli.render.words import counted, line_range, short_sha
from kb.cli.terminal import dim, one_line, printable, strong, warning

if TYPE_CHECKING:
    from kb.embed.embedding import EmbedReport
    from kb.retrieve.evaluation import Comparison, EvaluationReport
    from kb.retrieve.search import SearchHit, SearchResult

_EXCERPT = 160
_PLACES = 3


def search_lines(result: SearchResult, *, explain: bool) -> Iterator[str]:
    """The snapshot that was read, what there is to know about the search, and each hit."""
    first, *rest = result.notices or (None,)
    yield read_from_line(result.repository, result.sha, first)
    for notice in rest:
        yield warning(notice)
    for hit in result.hits:
        yield ""
        yield from _hit_lines(hit, explain=explain)
    if not result.hits:
        yield ""
        yield "nothing found"
    if result.omitted:
        yield ""
        yield f"and {counted(result.omitted, 'more hit')} beyond the token budget"


def _hit_lines(hit: SearchHit, *, explain: bool) -> Iterator[str]:
    unit = hit.unit
    yield f"{hit.rank:>2}. {strong(one_line(unit.title))}  {dim(f'{hit.score:.3f}')}"
    yield dim(f"    {one_line(unit.key)}")
    for place in unit.provenance[:_PLACES]:
        yield f"    {line_range(place.file, place.start_line, place.end_line)}@{short_sha(place.sha)}"
        for line in place.source or ():
            yield f"      {dim(str(line.line))}  {printable(line.text)}".rstrip()
    if len(unit.provenance) > _PLACES:
        yield dim(f"    and {counted(len(unit.provenance) - _PLACES, 'more place')}")
    excerpt = " ".join(unit.text.split())
    if excerpt:
        yield f"    {printable(excerpt[:_EXCERPT])}{'…' if len(excerpt) > _EXCERPT else ''}"
    if unit.freshness.status != "current":
        yield warning(f"    {unit.freshness.status} at HEAD")
    if explain:
        yield from _parts_lines(hit)


def _parts_lines(hit: SearchHit) -> Iterator[str]:
    parts = hit.parts
    if parts.related is not None:
        yield dim(f"    found as {one_line(parts.related)}")
    lexical = "-" if parts.lexical is None else f"{parts.lexical:.3f} -> {parts.lexical_scaled:.3f}"
    dense = "-" if parts.dense is None else f"{parts.dense:.3f} -> {parts.dense_scaled:.3f}"
    yield dim(f"    lexical {lexical}; dense {dense}; dense share {parts.dense_share:.2f}")
    yield dim(
        f"    names {parts.evidence:+.2f}; place x{parts.prior:.2f}; rest of the file {parts.coherence:+.2f}"
    )
    if parts.terms:
        ranked = sorted(parts.terms.items(), key=lambda item: -item[1])
        yield dim("    " + ", ".join(f"{one_line(term)} {value:.2f}" for term, value in ranked))


def embed_lines(report: EmbedReport) -> Iterator[str]:
    """What was embedded, and how fast."""
    snapshots = counted(report.snapshots, "snapshot")
    if report.embedded:
        yield (
            f"embedded {counted(report.embedded, 'text')} of {snapshots} with {report.model}: "
            f"{report.seconds:.1f} s, {report.rate:,.0f} texts/s"
        )
    else:
        yield f"every text of {snapshots} has its vector of {report.model}"


def evaluation_lines(report: EvaluationReport, comparison: Comparison | None) -> Iterator[str]:
    """Each measure with its interval; differences where another run is given."""
    yield f"{report.suite}: {counted(report.queries, 'query', 'queries')}, {report.mode}, {report.model or 'no model'}"
    for name, value in report.measures.items():
        low, high = report.intervals[name]
        line = f"  {name:<14} {value:.3f}  [{low:.3f}, {high:.3f}]"
        if comparison is not None and name in comparison.differences:
            difference, least, most = comparison.differences[name]
            line += f"  {difference:+.3f} [{least:+.3f}, {most:+.3f}]"
        yield line
    for notice in report.notices:
        yield warning(f"  {one_line(notice)}")
    if report.unjudged:
        yield f"  {counted(report.unjudged, 'query', 'queries')} without a relevant document: not measured"
