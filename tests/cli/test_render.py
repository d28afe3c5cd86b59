from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from kb.cli.render.gaps import gap_list_lines
from kb.cli.render.index import index_lines
from kb.cli.render.status import status_lines
from kb.cli.render.units import shown_lines, unit_lines
from kb.model.served import Freshness, Provenance, SourceLine, Unit
from kb.retrieve.gaps import Gap, GapList
from kb.retrieve.show import Shown
from kb.retrieve.status import RepositoryStatus, SnapshotStatus, Status
from kb.snapshot.requests import GapRow, IndexReport

SHA = "4f1c2a9b8d3e" + "0" * 28
HEAD = "aa11bb22cc33" + "0" * 28


def _text(lines) -> str:
    import click

    return click.unstyle("\n".join(lines))


def _report(**changes) -> IndexReport:
    fields = {
        "repository": "shop",
        "sha": SHA,
        "already_sealed": False,
        "files": 12,
        "parsed": 10,
        "gap_files": 1,
        "no_language": 1,
        "excluded": 3,
        "spans": 318,
        "artifacts": 27,
        "gap_count": 0,
        "gaps": [],
        "seconds": 0.4,
    }
    return IndexReport(**(fields | changes))


def _unit(**changes) -> Unit:
    place = Provenance(
        file="shop/orders.py",
        start_line=3,
        end_line=5,
        sha=SHA,
        symbol="Order.total",
        role="definition",
        span_id="ab" * 32,
    )
    fields = {
        "key": "symbol:shop.orders.Order.total",
        "kind": "symbol",
        "title": "Order.total",
        "body": {"name": "total"},
        "text": "def total(self) -> int\n\nThe sum of the lines.",
        "provenance": (place,),
        "method": "deterministic",
        "extractor": "symbols",
        "extractor_version": 1,
        "confidence": 100,
        "freshness": Freshness(snapshot_sha=SHA, head_sha=SHA, status="current", commits_behind=0),
    }
    return Unit(**(fields | changes))


def test_an_index_report_leads_with_the_commit_and_the_counts():
    assert _text(index_lines(_report())) == (
        "indexed 4f1c2a9b8d3e: 12 files, 318 spans, 27 artifacts, 0 gaps\n"
        "  shop: 10 parsed, 1 unreadable, 1 in no language kb reads, 3 excluded; 0.4 s"
    )


def test_an_index_report_lists_each_gap_with_place_and_reason():
    gaps = [
        GapRow("bad.py", "syntax_error", 3, 7, "unexpected indent"),
        GapRow("big.py", "too_large", None, None, ""),
    ]
    assert _text(index_lines(_report(gaps=gaps, gap_count=2))).splitlines()[2:] == [
        "",
        "2 gaps, not readable for kb:",
        "  bad.py:3-7  syntax_error  unexpected indent",
        "  big.py      too_large",
    ]


def test_an_index_report_says_when_more_gaps_exist_than_it_lists():
    report = _report(gaps=[GapRow("bad.py", "syntax_error", 3, 3, "")], gap_count=40)
    assert (
        _text(index_lines(report)).splitlines()[-1] == "  and 39 more: kb gaps --repo shop --sha 4f1c2a9b8d3e"
    )


def test_indexing_a_sealed_commit_again_says_that_nothing_was_done():
    first = _text(index_lines(_report(already_sealed=True, gap_count=1))).splitlines()[0]
    assert first == "already indexed 4f1c2a9b8d3e: 12 files, 318 spans, 27 artifacts, 1 gap; nothing to do"


def test_a_dirty_working_tree_is_reported_file_by_file_up_to_twenty():
    lines = _text(index_lines(_report(dirty=[f"f{number}.py" for number in range(22)]))).splitlines()
    assert lines[3] == "not indexed: 22 uncommitted changes in the working tree"
    assert lines[4] == "  f0.py"
    assert lines[-1] == "  and 2 more"


def test_a_unit_shows_its_text_its_lines_with_their_role_its_making_and_its_freshness():
    assert _text(unit_lines(_unit())) == (
        "Order.total\n"
        "  symbol:shop.orders.Order.total\n"
        "\n"
        "  def total(self) -> int\n"
        "\n"
        "  The sum of the lines.\n"
        "\n"
        "  shop/orders.py:3-5@4f1c2a9b8d3e  definition Order.total\n"
        "  deterministic by symbols 1, confidence 100 %\n"
        "  current at HEAD (4f1c2a9b8d3e)"
    )


def test_source_is_the_very_lines_under_their_numbers():
    place = (
        _unit()
        .provenance[0]
        .model_copy(
            update={
                "start_line": 9,
                "end_line": 10,
                "source": (
                    SourceLine(line=9, text="    def total(self):"),
                    SourceLine(line=10, text="\treturn '\x1b[2J'"),
                ),
            }
        )
    )
    shown = _text(unit_lines(_unit(provenance=(place,)))).splitlines()
    at = shown.index("  shop/orders.py:9-10@4f1c2a9b8d3e  definition Order.total")
    assert shown[at + 1 : at + 3] == ["     9      def total(self):", "    10  \treturn '\\x1b[2J'"]


@pytest.mark.parametrize(
    ("status", "behind", "said"),
    [
        ("moved", 2, "  moved at HEAD (aa11bb22cc33), 2 commits behind"),
        ("changed", 1, "  changed at HEAD (aa11bb22cc33), 1 commit behind"),
        ("gone", None, "  gone at HEAD (aa11bb22cc33)"),
    ],
)
def test_a_unit_says_what_became_of_it_at_head(status, behind, said):
    freshness = Freshness(snapshot_sha=SHA, head_sha=HEAD, status=status, commits_behind=behind)
    assert _text(unit_lines(_unit(freshness=freshness))).splitlines()[-1] == said


def test_a_unit_without_provenance_cannot_be_served():
    with pytest.raises(ValidationError):
        _unit(provenance=())


def test_a_unit_with_a_field_that_the_schema_does_not_know_cannot_be_served():
    with pytest.raises(ValidationError):
        _unit(line=3)


def test_what_is_shown_starts_with_the_commit_it_is_read_from():
    shown = Shown(
        repository="shop",
        sha=SHA,
        notice=None,
        target="Order",
        matched="name",
        units=(_unit(), _unit()),
        omitted=3,
    )
    lines = _text(shown_lines(shown)).splitlines()
    assert lines[:3] == ["shop at 4f1c2a9b8d3e", "", "Order.total"]
    assert lines.count("Order.total") == 2
    assert lines[-2:] == ["", "and 3 more units"]


def test_an_answer_from_another_commit_says_so_before_anything_else():
    found = GapList(repository="shop", sha=SHA, notice="HEAD is not indexed", gaps=())
    assert _text(gap_list_lines(found)).splitlines() == [
        "shop at 4f1c2a9b8d3e",
        "note: HEAD is not indexed",
        "no gaps: every file in a language that kb reads was read whole",
    ]


def test_gaps_are_listed_by_place_reason_and_detail():
    gap = Gap(path="a b.py", reason="not_utf8", start_line=None, end_line=None, detail="byte 0xff")
    found = GapList(repository="shop", sha=SHA, notice=None, gaps=(gap,))
    assert _text(gap_list_lines(found)).splitlines()[1:] == ["  a b.py  not_utf8  byte 0xff"]


def _status(**changes) -> Status:
    snapshot = SnapshotStatus(
        sha=SHA,
        sealed_at=datetime(2031, 5, 6, 7, 8, tzinfo=UTC),
        files=12,
        parsed=10,
        gap_files=1,
        no_language=1,
        excluded=3,
        spans=318,
        artifacts=27,
        gaps=1,
        kinds={"import": 7, "symbol": 20},
    )
    fields = {
        "name": "shop",
        "location": "/srv/shop/.git",
        "reachable": True,
        "head": SHA,
        "head_indexed": True,
        "commits_behind": 0,
        "snapshots": (snapshot,),
    }
    repository = RepositoryStatus(**(fields | changes))
    return Status(database="embedded", schema_revision="0002", bytes=14_200_000, repositories=(repository,))


def test_status_shows_the_database_and_each_repository_with_its_snapshots():
    assert _text(status_lines(_status())).splitlines() == [
        "database: embedded, schema 0002, 14.2 MB",
        "",
        "shop  /srv/shop/.git",
        "  HEAD 4f1c2a9b8d3e is indexed",
        "  4f1c2a9b8d3e  2031-05-06 07:08  12 files  318 spans  27 artifacts  1 gap",
        "  symbol 20, import 7",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"head": HEAD, "head_indexed": False, "commits_behind": 3},
            "  HEAD aa11bb22cc33 is not indexed; the newest snapshot is 3 commits behind",
        ),
        ({"head": HEAD, "head_indexed": False, "commits_behind": None}, "  HEAD aa11bb22cc33 is not indexed"),
        (
            {"reachable": False, "head": None, "head_indexed": False, "commits_behind": None},
            "  not reachable: whether this is still so at HEAD is unknown",
        ),
        ({"head": None, "head_indexed": False, "commits_behind": None}, "  HEAD names no commit"),
    ],
)
def test_status_says_where_head_is(changes, said):
    assert _text(status_lines(_status(**changes))).splitlines()[3] == said


def test_status_of_an_empty_database_says_how_to_begin():
    empty = Status(database="embedded", schema_revision="0002", bytes=8_000_000, repositories=())
    assert _text(status_lines(empty)).splitlines()[1:] == ["nothing is indexed yet: kb index <path or URL>"]
