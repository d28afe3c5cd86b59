"""A new version of the parser or of one extractor renews what it made, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from kb.extract import registry
from kb.extract.api import Extractor
from kb.structure import dialects
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, count, index, state_of

EXTRACTORS = [extractor.id for extractor in registry.builtin_extractors()]


def bumped(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From now on the extractor is one version further."""
    original: Callable[[], list[Extractor]] = registry.builtin_extractors

    def newer() -> list[Extractor]:
        found = original()
        for extractor in found:
            if extractor.id == name:
                extractor.version += 1
        return found

    monkeypatch.setattr(registry, "builtin_extractors", newer)


def by_extractor(parts: TestParts, sha: str) -> dict[str, set[str]]:
    """Ids of the artifacts of a commit's newest snapshot, by the extractor that made them."""
    held = [artifact for artifact, _ in state_of(parts.database, sha)]
    with parts.database.reader() as connection:
        rows = connection.execute(
            "SELECT extractor, encode(artifact_id, 'hex') FROM artifact WHERE encode(artifact_id, 'hex') = ANY(%s)",
            (held,),
        ).fetchall()
    found: dict[str, set[str]] = {}
    for extractor, artifact in rows:
        found.setdefault(extractor, set()).add(artifact)
    return found


def fact_rows(parts: TestParts) -> dict[str, int]:
    with parts.database.reader() as connection:
        return dict(connection.execute("SELECT source, count(*) FROM fact GROUP BY 1").fetchall())


@pytest.mark.parametrize("name", ["symbols", "imports"])
def test_an_extractors_new_version_renews_all_of_its_artifacts_and_no_others(
    parts: TestParts, shop: GitRepo, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert name in EXTRACTORS
    index(parts, shop)
    before, facts = by_extractor(parts, shop.sha()), fact_rows(parts)
    bumped(monkeypatch, name)
    report = index(parts, shop)
    assert not report.already_sealed
    after = by_extractor(parts, shop.sha())
    assert after[name].isdisjoint(before[name])
    assert len(after[name]) == len(before[name])
    others = before.keys() - {name}
    assert others
    assert {other: after[other] for other in others} == {other: before[other] for other in others}
    grown = {source for source, rows in fact_rows(parts).items() if rows != facts[source]}
    assert grown <= {name}
    assert count(parts.database, "recipe") == 2
    assert index(parts, shop).already_sealed


def test_the_old_versions_snapshots_stay_as_they_are(
    parts: TestParts, shop: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shop.sha()
    index(parts, shop)
    old = state_of(parts.database, first)
    shop.write("shop/more.py", "x = 1\n").commit()
    bumped(monkeypatch, "symbols")
    report = index(parts, shop)
    assert not report.incremental  # another recipe begins a lineage of its own
    assert state_of(parts.database, first) == old
    shop.write("shop/more.py", "x = 2\n").commit()
    assert index(parts, shop).incremental


def test_a_new_parser_version_parses_every_blob_once_more_and_keeps_every_id(
    parts: TestParts, shop: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = index(parts, shop)
    before, parses = state_of(parts.database, shop.sha()), count(parts.database, "parse")
    version = dialects.PARSER_VERSION
    for module in [module for name, module in sys.modules.items() if name.startswith("kb.")]:
        if getattr(module, "PARSER_VERSION", None) == version:
            monkeypatch.setattr(module, "PARSER_VERSION", f"{version}+next")
    report = index(parts, shop)
    assert not report.already_sealed
    assert report.parsed_blobs == first.parsed_blobs == parses
    assert count(parts.database, "parse") == 2 * parses
    assert state_of(parts.database, shop.sha()) == before
    assert count(parts.database, "artifact") == first.artifacts
