from __future__ import annotations

from importlib.metadata import version

import pytest

from kb.identity.spans import NORMALIZATION_VERSION
from kb.structure.dialects import PARSER_VERSION, dialect_of, has_grammar, language_of


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("a.py", "python"),
        ("deep/er/a.PY", "python"),
        ("gui.pyw", "python"),
        ("a/b.pyi", "python-stub"),
        (".py", None),
        ("py", None),
        ("a.pyc", None),
        ("a.py/readme", None),
        ("", None),
    ],
)
def test_the_dialect_is_chosen_by_the_name(path, dialect):
    assert dialect_of(path) == dialect


def test_source_and_stub_are_dialects_of_one_language_with_a_grammar():
    assert {language_of("python"), language_of("python-stub")} == {"python"}
    assert has_grammar("python")
    assert has_grammar("python-stub")


def test_the_parser_version_names_grammars_and_normalisation():
    assert version("tree-sitter") in PARSER_VERSION
    assert version("tree-sitter-python") in PARSER_VERSION
    assert f"normalization {NORMALIZATION_VERSION}" in PARSER_VERSION
