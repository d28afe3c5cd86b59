from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WITHOUT_VENV_AND_PIP = """#!/bin/sh
case "$1 $2" in
    "-c import sys"*) exit 0 ;;
    "-c import ensurepip") exit 1 ;;
    "-m "*) echo "No module named $2" >&2; exit 1 ;;
esac
exit 1
"""

WITH_PIP_ONLY = """#!/bin/sh
case "$1 $2" in
    "-c import sys"*) exit 0 ;;
    "-m venv" | "-m virtualenv") echo "No module named $2" >&2; exit 1 ;;
    "-m pip")
        while [ "$1" != --target ]; do shift; done
        mkdir -p "$2/bin"
        printf '#!/bin/sh\\necho uv 0\\n' > "$2/bin/uv"
        chmod +x "$2/bin/uv"
        exit 0 ;;
esac
exit 1
"""


@pytest.fixture
def clone(tmp_path):
    """A folder with the script in its place, and a folder for a `python3` to come first on PATH."""
    (tmp_path / "clone" / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "bring-uv", tmp_path / "clone" / "scripts" / "bring-uv")
    (tmp_path / "bin").mkdir()
    return tmp_path / "clone"


def _bring(clone: Path, python: str) -> subprocess.CompletedProcess[str]:
    fake = clone.parent / "bin" / "python3"
    fake.write_text(python)
    fake.chmod(0o755)
    environment = {"PATH": f"{fake.parent}:/usr/bin:/bin", "HOME": str(clone.parent)}
    return subprocess.run(
        [clone / "scripts" / "bring-uv"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=environment,
    )


def test_a_python_without_venv_and_pip_gets_one_line_that_says_what_to_install(clone):
    done = _bring(clone, WITHOUT_VENV_AND_PIP)
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        "kb: error: this Python has neither venv nor pip; on Debian or Ubuntu: apt install python3-venv"
    ]
    assert [entry.name for entry in clone.iterdir()] == ["scripts"]


def test_a_python_with_pip_but_without_venv_is_enough(clone):
    done = _bring(clone, WITH_PIP_ONLY)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{clone}/.uv/bin/uv\n"


def test_a_uv_that_is_there_already_is_left_alone(clone):
    _bring(clone, WITH_PIP_ONLY)
    again = _bring(clone, WITHOUT_VENV_AND_PIP)
    assert (again.returncode, again.stdout, again.stderr) == (0, f"{clone}/.uv/bin/uv\n", "")
