from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.config import RepositoryConfig


def test_a_repository_may_set_roots_includes_and_excludes():
    text = "roots = ['src', './lib/', '.']\nincludes = ['src/**', '*.toml']\nexcludes = ['docs/']\n"
    config, notices = RepositoryConfig.parse(text.encode())
    assert config == RepositoryConfig(
        roots=("src", "lib", ""), includes=("src/**", "*.toml"), excludes=("docs/",)
    )
    assert notices == ()


def test_an_empty_file_sets_nothing():
    assert RepositoryConfig.parse(b"") == (RepositoryConfig(), ())


def test_anything_else_is_reported_and_not_heeded():
    text = "db_url = 'postgresql://evil'\nexcludes = ['x']\n[embed]\nprovider = 'openai'\n"
    config, notices = RepositoryConfig.parse(text.encode())
    assert config == RepositoryConfig(excludes=("x",))
    assert notices == (
        "kb.toml: a repository cannot set 'db_url': ignored",
        "kb.toml: a repository cannot set 'embed': ignored",
    )


@pytest.mark.parametrize("value", ["'x'", "1", "[1]", "['a', 2]", "{a = 1}", "[['a']]"])
def test_a_setting_of_another_type_is_reported_and_not_heeded(value: str):
    config, notices = RepositoryConfig.parse(f"excludes = {value}\nroots = ['src']\n".encode())
    assert config == RepositoryConfig(roots=("src",))
    assert notices == ("kb.toml: excludes is not a list of strings: ignored",)


@pytest.mark.parametrize("root", ["/etc", "../other", "src/../../x", "a\\u0000b"])
def test_a_root_outside_of_the_repository_is_reported_and_not_heeded(root: str):
    config, notices = RepositoryConfig.parse(f'roots = ["{root}", "src"]'.encode())
    assert config.roots == ("src",)
    assert len(notices) == 1


@pytest.mark.parametrize(
    "data", [b"roots = [", b"\xff\xfe", b"[" * 20_000, b"x = " + b"[" * 20_000, b"# " * 40_000]
)
def test_a_file_that_is_no_small_toml_is_reported_as_a_whole(data: bytes):
    config, notices = RepositoryConfig.parse(data)
    assert config == RepositoryConfig()
    assert len(notices) == 1
    assert "\n" not in notices[0]


def test_a_byte_order_mark_does_no_harm():
    assert RepositoryConfig.parse(b"\xef\xbb\xbfroots = ['a']")[0].roots == ("a",)


@given(st.binary(max_size=200))
def test_no_bytes_whatever_make_it_fail(data: bytes):
    config, _ = RepositoryConfig.parse(data)
    assert isinstance(config, RepositoryConfig)
