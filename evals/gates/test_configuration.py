"""Settings, commands and dependencies equal what a reader labelled by hand, place by place."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evals.folders import Knowledge, by_key, files_of, linked
from kb.extract.configuration.extractor import ConfigurationExtractor
from kb.extract.dependencies.extractor import DependenciesExtractor

FIXTURES = Path(__file__).parent.parent / "fixtures" / "knowledge"
EXTRACTORS = {"configuration": ConfigurationExtractor, "dependencies": DependenciesExtractor}
FILES = files_of(FIXTURES / "deployed")


@cache
def expected(what: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((FIXTURES / "expected" / f"deployed-{what}.toml").read_text())


@cache
def found(what: str) -> dict[str, Knowledge]:
    return by_key(linked(FILES, [EXTRACTORS[what]()]))


@pytest.mark.gate("configuration")
@pytest.mark.gate("dependencies")
@pytest.mark.parametrize("what", EXTRACTORS)
def test_exactly_the_labelled_artifacts_stand_on_the_labelled_places(what):
    said = {
        key: sorted(
            f"{role} {path} | {FILES[path].decode().splitlines()[start - 1].strip()}"
            for role, path, start, _ in entry.places
        )
        for key, entry in found(what).items()
    }
    assert said == {key: sorted(label["places"]) for key, label in expected(what).items()}


@pytest.mark.gate("configuration")
@pytest.mark.gate("dependencies")
@pytest.mark.parametrize("what", EXTRACTORS)
def test_confidence_is_lower_where_only_a_run_or_a_guess_can_tell(what):
    said = {key: entry.draft.confidence for key, entry in found(what).items()}
    assert said == {key: label.get("confidence", 100) for key, label in expected(what).items()}


@pytest.mark.gate("configuration")
def test_settings_have_their_defaults_and_variables_and_commands_their_words_and_options():
    for key, label in expected("configuration").items():
        body = found("configuration")[key].draft.body
        if key.startswith("setting:"):
            defaults = body.get("defaults") or ([body["default"]] if "default" in body else [])
            assert defaults == ([label["default"]] if "default" in label else []), key
            assert body.get("environment", []) == label.get("environment", []), key
        else:
            options = [
                " ".join(option["names"]) + (f" = {option['default']}" if "default" in option else "")
                for option in body.get("options", ())
            ]
            assert (body["command"], options) == (label["command"], label["options"]), key


@pytest.mark.gate("dependencies")
def test_dependencies_have_the_status_the_declarations_and_the_locks_of_their_manifests():
    for key, label in expected("dependencies").items():
        body = found("dependencies")[key].draft.body
        declared = [
            f"{entry['group'] or '-'} {entry['specifier']}".strip() for entry in body.get("declared", ())
        ]
        assert body["status"] == label["status"], key
        assert declared == label.get("declared", []), key
        assert body.get("locked", []) == label.get("locked", []), key


@pytest.mark.gate("dependencies")
def test_the_known_gap_is_still_one_and_its_note_says_what_may_fill_it():
    assert [key for key, label in expected("dependencies").items() if "gap" in label] == [
        "dependency:pydantic"
    ]
    body = found("dependencies")["dependency:pydantic"].draft.body
    assert body["status"] == "used_undeclared"
    assert body["note"] == ("may be what pydantic-settings provides: the name of one is part of the other's")
