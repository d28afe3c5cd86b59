from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.identity import golden_ids, real_files

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
NEEDS = ("tree-sitter", "tree-sitter-python", "msgspec")


def test_spans_and_artifacts_of_the_golden_sources_have_the_committed_ids(capsys):
    golden_ids.main()
    assert json.loads(capsys.readouterr().out) == json.loads((HERE / "golden_ids.json").read_text())


def test_no_two_golden_spans_with_different_kind_or_path_share_an_id():
    golden = json.loads((HERE / "golden_ids.json").read_text())["spans"]
    named: dict[str, set[tuple[str, str]]] = {}
    for spans in golden.values():
        for kind, path, _, identity in spans:
            named.setdefault(identity, set()).add((kind, path))
    assert [names for names in named.values() if len(names) > 1] == []


def test_three_hundred_real_files_read_as_they_did_under_the_pinned_grammar():
    golden = json.loads((HERE / "real_files.json").read_text())
    found = real_files.digests()
    assert list(found) == list(golden), "a pinned distribution changed: regenerate with the old grammar first"
    differing = [
        f"{name}: {file}"
        for name, files in golden.items()
        for file in files
        if found[name][file] != files[file]
    ]
    assert differing == []
    assert sum(len(files) for files in golden.values()) == real_files.MOST


@pytest.mark.parametrize("minor", [11, 12, 13])
def test_every_supported_python_computes_the_same_ids(minor, tmp_path):
    python = _interpreter(minor)
    if python is None:
        pytest.skip(f"there is no Python 3.{minor} on this machine")
    paths = [str(PROJECT / "src")]
    if sys.version_info[:2] != (3, minor):
        paths.append(_wheels_for(python, tmp_path))
    else:
        paths += [entry for entry in sys.path if "site-packages" in entry]
    script = (
        f"import runpy, sys; sys.path[:0] = {paths!r}; "
        f"runpy.run_path({str(HERE / 'golden_ids.py')!r}, run_name='__main__')"
    )
    run = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == json.loads((HERE / "golden_ids.json").read_text())


def _interpreter(minor: int) -> str | None:
    """A Python 3.<minor> that runs: this one, on PATH, or among pyenv's."""
    if sys.version_info[:2] == (3, minor):
        return sys.executable
    versions = sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python"))
    for candidate in [shutil.which(f"python3.{minor}"), *map(str, versions)]:
        if candidate is not None:
            asked = [candidate, "-c", "import sys; print(sys.version_info[1])"]
            if subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == str(
                minor
            ):
                return candidate
    return None


def _wheels_for(python: str, folder: Path) -> str:
    """A folder with the parser's wheels for another Python; the test is skipped where they cannot be had."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv, which brings the parser for another Python, is not on PATH")
    pinned = [f"{name}=={version(name)}" for name in NEEDS]
    command = [uv, "pip", "install", "--quiet", "--python", python, "--target", str(folder), *pinned]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"the parser's wheels cannot be installed here: {installed.stderr.strip()[-200:]}")
    return str(folder)
