from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ConfigLevel

from kb.git.repository import Repository
from tests.gitrepo import GitRepo


@pytest.fixture(autouse=True)
def _no_configuration_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither libgit2 nor the git program sees the configuration of whoever runs the tests."""
    nobody = tmp_path / "nobody"
    nobody.mkdir()
    monkeypatch.setenv("HOME", str(nobody))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(nobody / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    levels = (ConfigLevel.GLOBAL, ConfigLevel.XDG, ConfigLevel.SYSTEM)
    before = {level: pygit2.settings.search_path[level] for level in levels}
    for level in levels:
        pygit2.settings.search_path[level] = str(nobody)
    yield
    for level, path in before.items():
        pygit2.settings.search_path[level] = path


@pytest.fixture
def made(tmp_path: Path) -> GitRepo:
    """An empty repository."""
    return GitRepo(tmp_path / "shop")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """kb's data home."""
    return tmp_path / "home"


@pytest.fixture
def opened(home: Path) -> Callable[[GitRepo | Path], Repository]:
    """Opens a repository as kb does."""

    def open_it(repo: GitRepo | Path) -> Repository:
        return Repository.open(repo.folder if isinstance(repo, GitRepo) else repo, home)

    return open_it
