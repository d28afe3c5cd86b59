"""Where the conformance suite cannot be had, that is said, and fails only where it was required."""

from __future__ import annotations

import sys

import pytest

from evals import mcp_conformance


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--require"], 1)])
def test_what_is_skipped_is_said_with_its_reason(arguments, code, monkeypatch, capsys):
    def absent():
        raise mcp_conformance.UnavailableError("npm install: getaddrinfo ENOTFOUND registry")

    monkeypatch.setattr(mcp_conformance, "node_folder", absent)
    monkeypatch.setattr(sys, "argv", ["mcp_conformance", *arguments])

    assert mcp_conformance.main() == code
    said = capsys.readouterr().out
    assert said.startswith("SKIPPED")
    assert "ENOTFOUND" in said
    assert all(name in said for name in (*mcp_conformance.SCENARIOS, "inspector"))


def test_a_program_that_fails_is_told_with_its_last_word():
    with pytest.raises(mcp_conformance.UnavailableError, match="bring it: no route"):
        mcp_conformance.run("bring it", [sys.executable, "-c", "import sys; sys.exit('trying\\nno route')"])
    with pytest.raises(mcp_conformance.UnavailableError, match=r"bring it: .*nowhere"):
        mcp_conformance.run("bring it", ["/nowhere/npm"])


def test_packages_are_there_only_in_the_versions_that_are_wanted(tmp_path):
    assert not mcp_conformance.has_all(tmp_path)
    for package in mcp_conformance.PACKAGES:
        name, _, version = package.rpartition("@")
        folder = tmp_path / "node_modules" / name
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(f'{{"version": "{version}"}}')
    assert mcp_conformance.has_all(tmp_path)
    (folder / "package.json").write_text('{"version": "0.0.1"}')
    assert not mcp_conformance.has_all(tmp_path)
