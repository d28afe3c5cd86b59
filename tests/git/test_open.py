from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kb.errors import RepositoryError, UsageError
from kb.git.repository import Repository
from tests.gitrepo import GitRepo


def test_a_subfolder_a_git_directory_and_the_root_are_one_repository(made: GitRepo, opened):
    made.write("pkg/a.py", "x = 1\n").commit()
    root, below, inside = opened(made), opened(made.folder / "pkg"), opened(made.folder / ".git")
    assert root.location == below.location == inside.location == str((made.folder / ".git").resolve())
    assert root.workdir == below.workdir == inside.workdir == made.folder.resolve()
    assert root.default_name == "shop"
    assert not root.is_bare
    assert not root.is_remote


def test_a_linked_worktree_is_the_same_repository_with_its_own_head(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit().branch("side").write("a.py", "2").commit()
    made.git("worktree", "add", "-q", tmp_path / "linked", "side")
    linked = opened(tmp_path / "linked")
    assert linked.location == opened(made).location
    assert linked.default_name == "shop"
    assert linked.head() == ("refs/heads/side", made.sha("side"))
    assert opened(made).head() == ("refs/heads/main", made.sha("main"))


def test_a_symlink_to_a_repository_is_that_repository(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit()
    (tmp_path / "link").symlink_to(made.folder)
    assert opened(tmp_path / "link").location == opened(made).location


def test_a_bare_repository_has_no_work_tree_and_loses_its_suffix_in_its_name(
    made: GitRepo, opened, tmp_path: Path
):
    made.write("a.py", "1").commit()
    bare = opened(made.bare_clone(tmp_path / "store.git"))
    assert bare.is_bare
    assert bare.workdir is None
    assert bare.default_name == "store"
    assert bare.dirty() == []
    assert bare.resolve().sha == made.sha()


def test_a_path_may_look_like_an_scp_address_if_it_exists(tmp_path: Path, home: Path, monkeypatch):
    GitRepo(tmp_path / "host:path").write("a.py", "1").commit()
    monkeypatch.chdir(tmp_path)
    assert not Repository.open("host:path", home).is_remote


@pytest.mark.parametrize("where", ["nowhere", "x" * 5000])
def test_a_path_that_does_not_exist_is_refused_in_one_line(where: str, tmp_path: Path, home: Path):
    with pytest.raises(RepositoryError) as failure:
        Repository.open(tmp_path / where, home)
    assert "\n" not in str(failure.value)


def test_the_home_of_a_user_who_does_not_exist_is_refused(home: Path):
    with pytest.raises(RepositoryError):
        Repository.open("~nobody-of-that-name/repo", home)


def test_a_folder_outside_of_any_repository_is_refused_with_a_hint(tmp_path: Path, home: Path):
    with pytest.raises(RepositoryError, match="is in no git repository") as failure:
        Repository.open(tmp_path, home)
    assert failure.value.hint


def test_a_file_is_no_repository(made: GitRepo, home: Path):
    made.write("a.py", "1")
    with pytest.raises(RepositoryError, match="is not a folder"):
        Repository.open(made.folder / "a.py", home)


def test_a_git_file_that_leads_nowhere_is_named(tmp_path: Path, home: Path):
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / ".git").write_text("gitdir: /nowhere/at/all\n")
    with pytest.raises(RepositoryError, match=r"\.git leads to no git directory"):
        Repository.open(tmp_path / "moved", home)


def test_a_damaged_git_directory_is_named(made: GitRepo, home: Path):
    (made.folder / ".git" / "HEAD").unlink()
    with pytest.raises(RepositoryError, match="damaged"):
        Repository.open(made.folder, home)


def test_a_sha256_repository_is_refused_by_name(tmp_path: Path, home: Path):
    made = GitRepo(tmp_path / "new", object_format="sha256").write("a.py", "1").commit()
    with pytest.raises(RepositoryError, match="SHA-256") as failure:
        Repository.open(made.folder, home)
    assert failure.value.hint


def test_an_extension_that_libgit2_lacks_is_named(made: GitRepo, home: Path):
    made.git("config", "core.repositoryformatversion", "1")
    made.git("config", "extensions.fromTheFuture", "true")
    with pytest.raises(RepositoryError, match="extension"):
        Repository.open(made.folder, home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
@pytest.mark.parametrize("where", ["", "pkg", ".git"])
def test_another_users_repository_is_refused_with_the_way_to_allow_it(where: str, made: GitRepo, home: Path):
    made.write("pkg/a.py", "1").commit()
    subprocess.run(["chown", "-R", "12345:12345", made.folder], check=True)
    with pytest.raises(RepositoryError, match="belongs to another user") as failure:
        Repository.open(made.folder / where, home)
    assert failure.value.hint is not None
    assert f"git config --global --add safe.directory {made.folder}" in failure.value.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_another_users_repository_opens_once_the_hint_is_followed(made: GitRepo, home: Path, tmp_path: Path):
    made.write("a.py", "1").commit()
    subprocess.run(["chown", "-R", "12345:12345", made.folder], check=True)
    (tmp_path / "nobody" / ".gitconfig").write_text(f"[safe]\n\tdirectory = {made.folder}\n")
    assert Repository.open(made.folder, home).resolve().subject == "change"


@pytest.mark.parametrize("where", ["-x", "--upload-pack=touch /tmp/x", "-"])
def test_a_leading_dash_is_refused(where: str, home: Path):
    with pytest.raises(UsageError):
        Repository.open(where, home)


def test_locate_names_the_repository_without_fetching(made: GitRepo, home: Path):
    assert Repository.locate(made.folder) == str((made.folder / ".git").resolve())
    assert Repository.locate("https://me:secret@Example.org/a/b.git") == "https://example.org/a/b"
    assert not home.exists()


def test_a_stored_location_reopens_the_repository(made: GitRepo, opened, home: Path):
    made.write("a.py", "1").commit()
    first = opened(made)
    again = Repository.reopen(first.location, home, is_remote=False)
    assert (again.location, again.workdir, again.head()) == (first.location, first.workdir, first.head())
