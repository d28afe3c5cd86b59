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
from tests.indexing import TestParts, count, index, keys_of, state_of


class Claiming:
    """An extractor that names what it finds without a thought for other files, as a plug-in may."""

    id = "claiming"
    version = 1
    dialects = frozenset({"python"})

    def facts(self, _: ParseView) -> None:
        """Nothing beyond the module facts."""

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """One note for each file called `serve`, whether there is a `switch` or not."""
        if file.path.endswith("/serve.py"):
            world.exists("switch")
            ground = file.ground_module(file.module.module_span, "module")
            body = {"text": file.module.docstring}
            yield ArtifactDraft("note", "note:serve", "serve", body, "serve", (ground,))


NOTE = "note:serve"


def named(*folders: str) -> list[str]:
    """The keys of the notes of these folders: the first has the plain one."""
    return [NOTE, *(f"{NOTE}~~{folder}/serve.py" for folder in folders)]


@pytest.fixture(autouse=True)
def claiming(monkeypatch: pytest.MonkeyPatch) -> None:
    builtin = registry.builtin_extractors
    monkeypatch.setattr(registry, "builtin_extractors", lambda: [*builtin(), Claiming()])


@pytest.mark.parametrize("same", [False, True])
def test_of_the_files_that_share_a_key_the_first_has_it_and_the_others_name_their_path(
    parts: TestParts, second_database: Database, tmp_path: Path, same: bool
) -> None:
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
    assert keys_of(parts.database, first.sha, "note") == named("d")
    write("a")  # before the others by path, then one between them
    expect(*named("b", "d"))
    write("c")
    expect(*named("b", "c", "d"))
    repo.write("c/serve.py", "'''other'''\n")
    expect(*named("b", "c", "d"))
    repo.delete("b/serve.py")
    expect(*named("c", "d"))
    for folder in "efghij":
        write(folder)
    index(parts, repo.commit())
    repo.delete("a/serve.py")  # all that is left moves up by itself, not one after the other
    expect(*named("d", "e", "f", "g", "h", "i", "j"))
    for folder in "cdefghi":
        repo.delete(f"{folder}/serve.py")
    expect(NOTE)
    assert keys_of(parts.database, first.sha, "note") == named("d")


def test_a_file_that_comes_first_renames_one_note_and_no_other(parts: TestParts, tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "apps")
    for folder in "bcd":
        repo.write(f"{folder}/serve.py", f"'''{folder}'''\n")
    before = index(parts, repo.commit()).sha
    repo.write("a/serve.py", "'''a'''\n")
    after = index(parts, repo.commit()).sha
    held, now = (
        {
            artifact
            for artifact, places in state_of(parts.database, sha)
            for path, _, _ in places
            if path[0] in "cd"
        }
        for sha in (before, after)
    )
    assert held == now


def test_a_home_that_is_linked_again_to_the_same_effect_writes_nothing(
    parts: TestParts, tmp_path: Path
) -> None:
    repo = GitRepo(tmp_path / "apps")
    for folder in "bc":
        repo.write(f"{folder}/serve.py", f"'''{folder}'''\n")
    index(parts, repo.commit())
    tables = ("artifact", "snapshot_entry", "grounding_location", "lookup")
    before = [count(parts.database, table) for table in tables]
    repo.write("switch", "on\n")
    report = index(parts, repo.commit())
    assert report.incremental
    assert report.linked_files == 2
    assert keys_of(parts.database, report.sha, "note") == named("c")
    assert [count(parts.database, table) for table in tables] == before


def test_a_path_that_two_files_serve_names_the_file_of_the_second(parts: TestParts, tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "shop")
    for name in ("orders", "zz"):
        repo.write(
            f"shop/{name}.py",
            "from fastapi import APIRouter\n\nrouter = APIRouter()\n\n\n"
            f"@router.get('/orders')\ndef {name}(): ...\n",
        )
    repo.write(
        "shop/main.py",
        "from fastapi import FastAPI\nfrom shop import orders, zz\n\napp = FastAPI()\n"
        "app.include_router(orders.router)\napp.include_router(zz.router)\n",
    )
    repo.write("shop/__init__.py", "")
    report = index(parts, repo.commit())
    assert keys_of(parts.database, report.sha, "contract") == [
        "api:GET /orders",
        "api:GET /orders~~shop/zz.py",
    ]
