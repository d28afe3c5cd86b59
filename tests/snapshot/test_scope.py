from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.errors import UsageError
from kb.git.repository import Repository
from kb.snapshot.scope import Scope, is_generated, read_kbignore, scope_at
from tests.gitrepo import GitRepo


def _scope(**patterns: object) -> Scope:
    if "kbignore" in patterns:
        patterns["kbignore"] = read_kbignore(str(patterns["kbignore"]).encode())[0]
    return Scope(**patterns)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a.py", None),
        ("src/pkg/mod.py", None),
        ("vendor.py", None),
        ("pkg/vendors/a.py", None),
        ("node_modules/x/index.js", "vendored"),
        ("web/node_modules/x/index.js", "vendored"),
        ("pip/_vendor/urllib3/a.py", "vendored"),
        ("vendor/a.go", "vendored"),
        ("third_party/lib/a.py", "vendored"),
        (".venv/lib/python3.11/site.py", "vendored"),
        ("lib/python3/site-packages/x.py", "vendored"),
        ("api/orders_pb2.py", "generated"),
        ("api/orders_pb2.pyi", "generated"),
        ("api/orders_pb2_grpc.py", "generated"),
        ("orders_pb2_test.py", None),
        ("static/app.min.js", "generated"),
        ("static/app.min.css", "generated"),
        ("static/app.js.map", "generated"),
        ("static/admin.js", None),
        ("poetry.lock", None),
        ("uv.lock", None),
        ("package-lock.json", None),
        ("Cargo.lock", None),
        ("app/migrations/0001_initial.py", None),
    ],
)
def test_by_default_vendored_and_generated_files_are_left_out(path: str, reason: str | None):
    assert Scope().included(path) == reason


def test_defaults_can_be_switched_off():
    everything = Scope(skips_vendored=False, skips_generated=False)
    assert everything.included("node_modules/a.py") is None
    assert everything.included("a_pb2.py") is None


def test_excludes_leave_out_by_gitignore_patterns():
    scope = _scope(excludes=("tests/", "*.pyi", "/top.py", "docs/**/draft.py"))
    expected = {
        "tests/a.py": "excluded",
        "pkg/tests/a.py": "excluded",
        "tests.py": None,
        "pkg/x.pyi": "excluded",
        "top.py": "excluded",
        "pkg/top.py": None,
        "docs/a/b/draft.py": "excluded",
        "docs/draft.py": "excluded",
    }
    assert {path: scope.included(path) for path in expected} == expected


def test_includes_leave_out_whatever_matches_none_of_them():
    scope = _scope(includes=("src/", "*.toml"))
    expected = {
        "src/a.py": None,
        "pkg/src/a.py": None,
        "a/b.toml": None,
        "b.py": "not_included",
        "src/vendor/x.py": "vendored",
    }
    assert {path: scope.included(path) for path in expected} == expected


def test_a_kbignore_leaves_out_and_its_exceptions_bring_back_even_what_defaults_leave_out():
    scope = _scope(kbignore="# mine\n\ngenerated/\n!generated/keep.py\n!/vendor/ours/\n*.py[co]\n")
    expected = {
        "generated/a.py": "kbignore",
        "generated/keep.py": None,
        "vendor/ours/a.py": None,
        "vendor/theirs/a.py": "vendored",
        "a.pyc": "kbignore",
        "a.py": None,
    }
    assert {path: scope.included(path) for path in expected} == expected


def test_a_callers_exclude_beats_an_exception_of_the_kbignore():
    scope = _scope(excludes=("x.py",), kbignore="!x.py\n")
    assert scope.included("x.py") == "excluded"


PARTS = st.sampled_from(["a", "b", "ab", "a.py", "b.py", "aab", "abab.py", "ba"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)
PATTERNS = st.sampled_from(
    (
        *("a", "a/", "/a", "*.py", "a/b", "**/b", "a/**", "?b", "[ab].py", "[!b]*"),
        *("a/*", "\\!a", "b*", "*a*b", "*a*.*y", "*?a*b*", "a**b", "*b*/", "a*b/**"),
    )
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERNS, max_size=4), st.lists(PATHS, min_size=1, max_size=6, unique=True))
def test_patterns_leave_out_what_git_would_ignore(tmp_path: Path, patterns: list[str], paths: list[str]):
    made = GitRepo(tmp_path / "judge")
    # git answers with a failure where it ignores nothing at all: one name it always ignores.
    (made.folder / ".gitignore").write_text("\n".join([*patterns, "always"]) + "\n")
    asked = "\0".join([*paths, "always"]).encode()
    judged = made.git("check-ignore", "--no-index", "-z", "-v", "-n", "--stdin", stdin=asked)
    fields = judged.split("\0")[:-1]
    by_git = {path: bool(pattern) for pattern, path in zip(fields[2::4], fields[3::4], strict=True)}
    scope = _scope(kbignore="\n".join(patterns))
    assert {path: scope.included(path) == "kbignore" for path in paths} | {"always": True} == by_git


def test_a_callers_bad_pattern_is_a_usage_error():
    for bad in ("!", "[z-a]", "x" * 2000, "a\nb"):
        with pytest.raises(UsageError, match="the pattern"):
            Scope(excludes=(bad,))


def test_a_kbignore_with_bad_lines_keeps_the_good_ones_and_reports_the_rest():
    lines, notices = read_kbignore(b"\xef\xbb\xbfgood/\r\n!\n\xff\n[z-a]\n# note\nalso/\n")
    assert lines == ("good/", "also/")
    assert [notice.split(":")[0] for notice in notices] == [
        ".kbignore line 2 is no gitignore pattern",
        ".kbignore line 3 holds what is not UTF-8",
        ".kbignore line 4 is no gitignore pattern",
    ]


@pytest.mark.parametrize("pattern", ["*a" * 40 + "*b", "?*a" * 40 + "b", "**/a/**/a/**/b", "a**a**a**b"])
def test_no_pattern_and_path_together_take_for_ever(pattern: str):
    scope = _scope(kbignore=pattern)
    assert scope.kbignore == (pattern,)
    started = time.process_time()
    for path in ("a" * 1000 + "c", "a/" * 500 + "c"):
        assert scope.included(path) is None
    assert time.process_time() - started < 20


def test_patterns_and_paths_beyond_all_reason_are_refused():
    assert read_kbignore(b"a/**/" * 4 + b"\n" + b"x" * 1001 + b"\n")[0] == ()
    assert Scope().included("a/" * 600 + "x.py") == "path_too_long"


@given(st.binary(max_size=100))
def test_no_kbignore_whatever_makes_it_fail(data: bytes):
    lines, _ = read_kbignore(data)
    Scope(kbignore=lines).included("a/b.py")


def test_settings_are_json_and_change_with_whatever_decides():
    base = _scope(includes=("a",), excludes=("b",), kbignore="c\n")
    assert base.settings() == {
        "includes": ["a"],
        "excludes": ["b"],
        "kbignore": ["c"],
        "skips_vendored": True,
        "skips_generated": True,
        "rules": 1,
    }
    assert base.settings() == _scope(includes=("a",), excludes=("b",), kbignore="# why\n\nc\n").settings()
    assert base.settings() != _scope(includes=("a",), excludes=("b",), kbignore="c\nd\n").settings()


@pytest.mark.parametrize(
    ("head", "generated"),
    [
        (b"# Generated by the protocol buffer compiler.  DO NOT EDIT!\n", True),
        (b"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# @generated\nx = 1\n", True),
        (b"// Code generated by protoc-gen-go. DO NOT EDIT.\n", True),
        (b"/* @generated by a tool */\n", True),
        (b"# This file is autogenerated, do not modify by hand\r\n", True),
        (b'HEADER = "# Code generated by us. DO NOT EDIT."\n', False),
        (b'"""Writes files that say DO NOT EDIT."""\n', False),
        (b"# Generated by Django 5.2 on 2025-01-01 00:00\n", False),
        (b"x = 1\n" * 30 + b"# DO NOT EDIT\n", False),
        (b"# generated_at = now\n", False),
        (b"", False),
    ],
)
def test_a_header_in_comments_marks_generated_content(head: bytes, generated: bool):
    assert is_generated(head) is generated


@pytest.fixture
def configured(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "repo").write(
        "kb.toml", "roots = ['src']\nincludes = ['src/']\nexcludes = ['old/', '!']\n"
    )
    return made.write(".kbignore", "gen/\n!\n").write("src/a.py", "1").commit()


def test_the_scope_of_a_commit_follows_its_own_files_not_the_work_tree(configured: GitRepo, tmp_path: Path):
    configured.write("kb.toml", "excludes = ['everything']").delete(".kbignore")
    repository = Repository.open(configured.folder, tmp_path)
    scope, roots, notices = scope_at(repository, repository.resolve(), (), ("tests/",))
    assert roots == ("src",)
    assert scope == Scope(includes=("src/",), excludes=("tests/", "old/"), kbignore=("gen/",))
    assert notices == [
        ".kbignore line 2 is no gitignore pattern: ignored",
        "kb.toml: excludes: the pattern '!' is no gitignore pattern: ignored",
    ]


def test_a_callers_includes_replace_those_of_the_repository(configured: GitRepo, tmp_path: Path):
    repository = Repository.open(configured.folder, tmp_path)
    scope, _, _ = scope_at(repository, repository.resolve(), ("docs/",), ())
    assert scope.includes == ("docs/",)


def test_a_commit_without_settings_or_with_a_link_in_their_place_has_the_defaults(tmp_path: Path):
    made = GitRepo(tmp_path / "repo").write("a.py", "1").symlink("kb.toml", "/etc/passwd")
    made.write(".kbignore/file", "x").commit()
    repository = Repository.open(made.folder, tmp_path)
    assert scope_at(repository, repository.resolve(), (), ()) == (Scope(), (), [])
