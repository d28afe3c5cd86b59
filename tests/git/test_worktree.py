from __future__ import annotations

import os
from pathlib import Path

import pytest

from kb.errors import NotFoundError, RepositoryError
from tests.gitrepo import GitRepo


def _tree_by_git(made: GitRepo) -> str:
    """What git itself would commit now, by way of an index of its own."""
    index = made.folder / ".git" / "index"
    before = index.read_bytes()
    made.git("add", "-A")
    tree = made.git("write-tree")
    index.write_bytes(before)
    return tree


def _everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def _soil(made: GitRepo) -> GitRepo:
    """Changes of every kind on top of a commit."""
    made.write("edit.py", "1").write("gone/a.py", "1").write("gone/b.py", "1").write("keep/x.py", "1")
    made.write("mode.sh", "1").write("to_folder", "1").write("to_file/a", "1").write("unstaged.py", "1")
    made.write(".gitignore", "*.log\n/build/\n").write(".gitattributes", "*.txt text eol=lf\n").commit()
    made.write("staged.py", "s").write("staged_then_edited.py", "1")
    made.git("add", "staged.py", "staged_then_edited.py")
    made.git("rm", "-q", "--cached", "unstaged.py")
    made.write("staged_then_edited.py", "2").write("edit.py", "22").delete("gone/a.py").delete("gone/b.py")
    made.write("mode.sh", "1", executable=True).delete("to_folder").write("to_folder/inside/y.py", "1")
    made.delete("to_file").write("to_file", "1").symlink("link", "edit.py").write("crlf.txt", "a\r\nb\r\n")
    made.write("noise.log", "x").write("build/out.py", "x").write("new/deep/z.py", "z").write("same.py", "1")
    return made.write(b"odd\xff.py", "odd")


def test_a_clean_work_tree_is_not_dirty(made: GitRepo, opened):
    made.write("a.py", "1").symlink("l", "a.py").commit()
    assert opened(made).dirty() == []


def test_dirty_names_each_path_and_what_became_of_it(made: GitRepo, opened):
    assert opened(_soil(made)).dirty() == [
        ("crlf.txt", "untracked"),
        ("edit.py", "modified"),
        ("gone/a.py", "deleted"),
        ("gone/b.py", "deleted"),
        ("link", "untracked"),
        ("mode.sh", "modified"),
        ("new/", "untracked"),
        ("odd\\xff.py", "untracked"),
        ("same.py", "untracked"),
        ("staged.py", "staged"),
        ("staged_then_edited.py", "modified"),
        ("to_file", "untracked"),
        ("to_file/a", "deleted"),
        ("to_folder", "deleted"),
        ("to_folder/", "untracked"),
        ("unstaged.py", "staged"),
    ]


def test_the_dirty_listing_is_capped(made: GitRepo, opened):
    made.write("a.py", "1").commit()
    for number in range(20):
        made.write(f"f{number:02}.py", "1")
    assert [file.path for file in opened(made).dirty(limit=3)] == ["f00.py", "f01.py", "f02.py"]


def test_a_conflict_is_named(made: GitRepo, opened):
    made.write("a.py", "0").commit().branch("side").write("a.py", "1").commit()
    made.checkout("side").write("a.py", "2").commit()
    with pytest.raises(AssertionError):
        made.merge("main")
    assert opened(made).dirty() == [("a.py", "conflicted")]


def test_the_work_tree_is_written_as_git_itself_would_commit_it(made: GitRepo, opened, tmp_path: Path):
    _soil(made)
    tree = opened(made).write_worktree_tree(tmp_path / "overlay")
    assert tree == _tree_by_git(made)


def test_the_users_index_and_objects_are_left_alone(made: GitRepo, opened, tmp_path: Path):
    _soil(made)
    before = _everything(made.folder)
    opened(made).write_worktree_tree(tmp_path / "overlay")
    opened(made).dirty()
    assert _everything(made.folder) == before


def test_the_written_tree_is_read_through_the_overlay_and_only_there(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "old").write("keep.py", "kept").commit().write("a.py", "new").write("b/c.py", "12345")
    tree = opened(made).write_worktree_tree(tmp_path / "overlay")
    overlay = opened(made).with_overlay(tmp_path / "overlay")
    assert {file.path: overlay.read(file.oid) for file in overlay.files(tree)} == {
        "a.py": b"new",
        "b/c.py": b"12345",
        "keep.py": b"kept",
    }
    assert [change.path for change in overlay.diff(made.sha(), tree)] == ["a.py", "b/c.py"]
    assert overlay.head() == opened(made).head()
    with pytest.raises(NotFoundError):
        opened(made).read(next(overlay.files(tree)).oid)


def test_objects_that_the_repository_itself_borrows_show_through(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit()
    made.git("clone", "-q", "--shared", made.folder, tmp_path / "borrower")
    (tmp_path / "borrower" / "b.py").write_text("2")
    borrower = opened(tmp_path / "borrower")
    tree = borrower.write_worktree_tree(tmp_path / "overlay")
    overlay = borrower.with_overlay(tmp_path / "overlay")
    assert [overlay.read(file.oid) for file in overlay.files(tree)] == [b"1", b"2"]


def test_a_linked_worktree_is_written_with_its_own_changes(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit().branch("side")
    made.git("worktree", "add", "-q", tmp_path / "linked", "side")
    (tmp_path / "linked" / "a.py").write_text("linked")
    made.write("a.py", "main")
    overlay = opened(tmp_path / "linked").with_overlay(tmp_path / "overlay")
    tree = opened(tmp_path / "linked").write_worktree_tree(tmp_path / "overlay")
    assert [overlay.read(file.oid) for file in overlay.files(tree)] == [b"linked"]


def test_a_clean_work_tree_is_heads_tree(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit()
    assert opened(made).write_worktree_tree(tmp_path / "overlay") == made.sha("HEAD^{tree}")


def test_an_emptied_work_tree_is_the_empty_tree(made: GitRepo, opened, tmp_path: Path):
    made.write("d/a.py", "1").commit().delete("d")
    tree = opened(made).write_worktree_tree(tmp_path / "overlay")
    assert tree == made.git("mktree", stdin=b"")
    assert list(opened(made).with_overlay(tmp_path / "overlay").files(tree)) == []


def test_a_commit_without_files_is_read(made: GitRepo, opened):
    made.write("a.py", "1").commit().delete("a.py").commit()
    assert list(opened(made).files(made.sha())) == []
    assert [one.path for one in opened(made).diff(made.sha("HEAD~1"), made.sha())] == ["a.py"]


def test_a_nested_repository_is_not_swallowed(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit()
    GitRepo(made.folder / "nested").write("n.py", "1").commit()
    assert opened(made).write_worktree_tree(tmp_path / "overlay") == made.sha("HEAD^{tree}")


def test_a_submodule_at_another_commit_is_written_as_that_commit(made: GitRepo, opened, tmp_path: Path):
    library = GitRepo(tmp_path / "library").write("l.py", "1").commit().write("l.py", "2").commit()
    made.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.folder), "lib")
    made.commit()
    made.git("-C", "lib", "checkout", "-q", "HEAD~1")
    tree = opened(made).write_worktree_tree(tmp_path / "overlay")
    found = opened(made).with_overlay(tmp_path / "overlay").file_at(tree, "lib")
    assert found is not None
    assert found.oid == library.sha("HEAD~1")


def test_files_that_a_sparse_checkout_left_out_are_neither_dirty_nor_gone(
    made: GitRepo, opened, tmp_path: Path
):
    made.write("in/a.py", "1").write("out/b.py", "1").commit()
    made.git("sparse-checkout", "set", "in")
    assert not (made.folder / "out").exists()
    assert opened(made).dirty() == []
    assert opened(made).write_worktree_tree(tmp_path / "overlay") == made.sha("HEAD^{tree}")


def test_no_program_that_the_repository_names_is_run(made: GitRepo, opened, tmp_path: Path):
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    made.write(".gitattributes", "*.py filter=trap\n").write("a.py", "1").commit()
    made.git("config", "filter.trap.clean", str(trap))
    made.git("config", "core.fsmonitor", str(trap))
    made.git("config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-index-change").symlink_to(trap)
    made.write("a.py", "2").write("b.py", "3")
    assert len(opened(made).dirty()) == 2
    opened(made).write_worktree_tree(tmp_path / "overlay")
    assert not (tmp_path / "sprung").exists()


def test_a_large_untracked_file_is_written_without_being_held(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit()
    size = 64 * 1024 * 1024
    with (made.folder / "big.bin").open("wb") as big:
        big.truncate(size)
    tree = opened(made).write_worktree_tree(tmp_path / "overlay")
    found = opened(made).with_overlay(tmp_path / "overlay").file_at(tree, "big.bin")
    assert found is not None
    assert found.size == size


def test_special_files_are_left_out(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit()
    os.mkfifo(made.folder / "pipe")
    assert opened(made).write_worktree_tree(tmp_path / "overlay") == made.sha("HEAD^{tree}")


def test_a_bare_repository_and_an_unborn_head_have_no_work_tree_to_write(
    made: GitRepo, opened, tmp_path: Path
):
    with pytest.raises(RepositoryError, match="no commit yet"):
        opened(made).write_worktree_tree(tmp_path / "overlay")
    made.write("a.py", "1").commit()
    with pytest.raises(RepositoryError, match="bare"):
        opened(made.bare_clone(tmp_path / "bare")).write_worktree_tree(tmp_path / "overlay")


def test_the_store_of_kbs_objects_is_never_seen_half_made(made: GitRepo, opened, tmp_path: Path, monkeypatch):
    """Another process reads through it as soon as its folder is there: here one looks before every step."""
    made.write("a.py", "1").commit()
    repository, blob, objects = opened(made), made.sha("HEAD:a.py"), tmp_path / "worktrees" / "objects"

    def looking(before):
        def call(*given, **named):
            if objects.is_dir():
                assert opened(made).with_overlay(objects).read(blob) == b"1"
            return before(*given, **named)

        return call

    with monkeypatch.context() as patched:
        for name in ("mkdir", "write_bytes", "rename", "replace"):
            patched.setattr(Path, name, looking(getattr(Path, name)))
        repository.write_worktree_tree(objects)
        repository.write_worktree_tree(objects)
    assert [path.name for path in objects.parent.iterdir()] == ["objects"]


def test_the_store_of_kbs_objects_follows_a_repository_that_moves(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit()
    blob, objects = made.sha("HEAD:a.py"), tmp_path / "worktrees" / "objects"
    opened(made).write_worktree_tree(objects)
    moved = made.folder.rename(tmp_path / "moved")
    opened(moved).write_worktree_tree(objects)
    assert opened(moved).with_overlay(objects).read(blob) == b"1"
    assert [path.name for path in objects.parent.iterdir()] == ["objects"]
