"""Several files may claim one logical key; every route to a snapshot tells them apart alike."""

from __future__ import annotations

from pathlib import Path

from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index, keys_of, state_of

APP = "from flask import Flask\n\napp = Flask(__name__)\n\n\n@app.get('/health')\ndef health():\n    return 'ok'\n"


def health_keys(parts: TestParts, sha: str) -> list[str]:
    return [key for key in keys_of(parts.database, sha, "contract") if "/health" in key]


def test_a_key_that_files_share_is_numbered_by_path(
    parts: TestParts, second_database: Database, tmp_path: Path
) -> None:
    clean = TestParts(second_database, tmp_path / "clean")
    repo = GitRepo(tmp_path / "apps")
    for number in range(12):
        repo.write(f"bystander{number}.py", f"x{number} = {number}\n")
    repo.write("b/serve.py", APP).write("d/serve.py", APP).commit()
    first = index(parts, repo)
    two = health_keys(parts, first.sha)
    assert len(two) == len(set(two)) == 2
    for step in ("a", "c"):  # one before the others by path, then one between them
        repo.write(f"{step}/serve.py", APP).commit()
        report = index(parts, repo)
        assert report.incremental
        index(clean, repo, full=True)
        assert state_of(parts.database, report.sha) == state_of(clean.database, report.sha)
    assert len(set(health_keys(parts, report.sha))) == 4
    for step in ("a", "b", "d"):
        repo.delete(f"{step}/serve.py").commit()
        report = index(parts, repo)
        index(clean, repo, full=True)
        assert state_of(parts.database, report.sha) == state_of(clean.database, report.sha)
    assert len(health_keys(parts, report.sha)) == 1
    assert health_keys(parts, first.sha) == two
