from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_make_alone_lists_every_target_with_what_it_does():
    shown = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^  make ([a-z]+) +\S", shown, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert sorted(listed) == sorted(phony.group(1).split())


def test_ci_runs_three_targets_and_nothing_else():
    commands = [
        line
        for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "set ", "cd ", "export "))
    ]
    assert commands == ["make check", "make test", "make conformance"]


def test_the_workflow_runs_the_same_script_on_each_supported_python():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert workflow.count("- run: .ci/run") == 2
    assert workflow.count('python: ["3.11", "3.12", "3.13"]') == 2
    assert "pgvector/pgvector:pg17" in workflow


def test_nothing_in_the_repository_names_a_machine():
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True
    ).stdout.split(b"\0")
    private = re.compile(rb"/root/|/work/|(?<![\w.])/home/(?!user|kb|me\b|you\b)\w+/")
    found = [
        name.decode()
        for name in listed
        if name
        and name != b"tests/tooling/test_make.py"
        and (ROOT / name.decode()).is_file()
        and private.search((ROOT / name.decode()).read_bytes())
    ]
    assert found == []
