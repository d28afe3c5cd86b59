"""Events and caches equal what a reader labelled by hand, with handlers and emitters joined across files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from evals.folders import Knowledge, by_key, files_of, linked
from kb.extract.events.extractor import EventsExtractor

FIXTURES = Path(__file__).parent.parent / "fixtures" / "knowledge"
pytestmark = pytest.mark.gate("events")


@pytest.fixture(scope="module")
def expected() -> dict[str, dict[str, Any]]:
    return tomllib.loads((FIXTURES / "expected" / "events.toml").read_text())


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return files_of(FIXTURES / "events")


@pytest.fixture(scope="module")
def found(files) -> dict[str, Knowledge]:
    return by_key(linked(files, [EventsExtractor()]))


def test_exactly_the_labelled_events_are_found(expected, found):
    assert sorted(found) == sorted(expected)


def test_every_event_stands_on_the_labelled_places(expected, files, found):
    for key, label in expected.items():
        places = {
            f"{role} {path} | {files[path].decode().splitlines()[start - 1].strip()}"
            for role, path, start, _ in found[key].places
        }
        assert places == set(label["places"]), key


def test_handlers_and_emitters_are_named(expected, found):
    for key, label in expected.items():
        body = found[key].draft.body
        for group in ("handlers", "emitters"):
            if group in label:
                assert sorted(entry["function"] for entry in body[group]) == label[group], key


def test_confidence_is_lower_where_a_name_is_made_at_run_time(expected, found):
    assert {key: found[key].draft.confidence for key in expected} == {
        key: label.get("confidence", 100) for key, label in expected.items()
    }


def test_a_joined_event_has_one_home_whatever_the_order_of_files(files, found):
    backwards = dict(reversed(files.items()))
    again = by_key(linked(backwards, [EventsExtractor()]))
    assert {key: entry.home for key, entry in again.items()} == {
        key: entry.home for key, entry in found.items()
    }
    assert {k: e.draft.text for k, e in again.items()} == {k: e.draft.text for k, e in found.items()}


def test_known_gaps_are_still_gaps(expected, found):
    gaps = sorted(key for key, label in expected.items() if "gap" in label)
    assert gaps == ["cache:key:user:1", "event:topic:orders.*"]
    functions = {
        key: {
            group: [entry["function"] for entry in entries]
            for group, entries in found[key].draft.body.items()
            if isinstance(entries, list)
        }
        for key in (*gaps, "cache:key:user:*", "event:topic:orders.cancelled")
    }
    # Neither has what the other names, though a run may well join them.
    assert functions == {
        "cache:key:user:1": {"deletes": ["app.admin.reset"]},
        "cache:key:user:*": {
            "reads": ["app.caching.page"],
            "writes": ["app.caching.page"],
            "deletes": ["app.caching.forget"],
        },
        "event:topic:orders.*": {"emitters": ["app.main.create"]},
        "event:topic:orders.cancelled": {"handlers": ["app.consumer.cancelled"]},
    }
