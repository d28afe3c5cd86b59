"""Several files may claim one logical key; every route to a snapshot tells them apart alike."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kb.extract import registry
from kb.extract.api import FileView, ParseView, WorldView
from kb.model.artifacts import ArtifactDraft
from kb.store.database import Database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index, keys_of, state_of


class Claiming:
    """An extractor that names what it finds without a thought for other files, as a plug-in may."""

    id = "claiming"
    version = 1
    dialects = frozenset({"python"})

    def facts(self, _: ParseView) -> None:
        """Nothing beyond the module facts."""

    def link(self, file: FileView, _: WorldView) -> Iterable[ArtifactDraft]:
        """One note for each file called `serve`."""
        if file.path.endswith("/serve.py"):
            ground = file.ground_module(file.module.module_span, "module")
            body = {"text": file.module.docstring}
            yield ArtifactDraft("note", "note:serve", "serve", body, "serve", (ground,))


@pytest.mark.parametrize("same", [False, True])
def test_a_key_that_files_share_is_numbered_by_path(
    parts: TestParts, second_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    builtin = registry.builtin_extractors
    monkeypatch.setattr(registry, "builtin_extractors", lambda: [*builtin(), Claiming()])
    clean = TestParts(second_database, tmp_path / "clean")
    repo = GitRepo(tmp_path / "apps")

    def write(folder: str) -> None:
        repo.write(
            f"{folder}/serve.py", f"'''{'one' if same else folder}'''\nx = {0 if same else ord(folder)}\n"
        )

    def expect(*keys: str) -> None:
        report = index(parts, repo.commit())
        assert report.incremental
        assert keys_of(parts.database, report.sha, "note") == list(keys)
        index(clean, repo, full=True)
        assert state_of(parts.database, report.sha) == state_of(clean.database, report.sha)

    for number in range(40):
        repo.write(f"bystander{number}.py", f"x{number} = {number}\n")
    write("b")
    write("d")
    first = index(parts, repo.commit())
    assert keys_of(parts.database, first.sha, "note") == ["note:serve", "note:serve~~2"]
    write("a")  # before the others by path, then one between them
    expect("note:serve", "note:serve~~2", "note:serve~~3")
    write("c")
    expect("note:serve", "note:serve~~2", "note:serve~~3", "note:serve~~4")
    repo.write("c/serve.py", "'''other'''\n")
    expect("note:serve", "note:serve~~2", "note:serve~~3", "note:serve~~4")
    repo.delete("b/serve.py")
    expect("note:serve", "note:serve~~2", "note:serve~~3")
    for folder in "efghij":
        write(folder)
    index(parts, repo.commit())
    for folder in "acdefghi":  # the one that stays had the highest number
        repo.delete(f"{folder}/serve.py")
    expect("note:serve")
    assert keys_of(parts.database, first.sha, "note") == ["note:serve", "note:serve~~2"]
