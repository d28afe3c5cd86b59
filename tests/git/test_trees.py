from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.errors import NotFoundError, RepositoryError
from kb.git.paths import is_lfs_pointer, render_name
from kb.git.repository import Repository
from tests.gitrepo import GitRepo

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n"


def _by_git(made: GitRepo, revision: str) -> list[tuple[str, str, int, int]]:
    rows = made.git("ls-tree", "-r", "-l", "-z", revision).split("\0")[:-1]
    found = []
    for row in rows:
        facts, path = row.split("\t", 1)
        mode, _, oid, size = facts.split()
        found.append((path, oid, int(mode, 8), 0 if size == "-" else int(size)))
    return found


def test_files_are_those_of_git_in_its_order_with_modes_and_sizes(made: GitRepo, opened):
    made.write("b.py", "bb").write("a/x.py", "1").write("a.py", "").write("a-b/y.py", "22").write("a0", "3")
    made.write("run.sh", "#!/bin/sh\n", executable=True).symlink("link", "a.py").commit()
    files = list(opened(made).files(made.sha()))
    assert [(file.path, file.oid, file.mode, file.size) for file in files] == _by_git(made, "HEAD")
    assert [file.mode for file in files if file.path in ("link", "run.sh")] == [0o120000, 0o100755]


def test_a_submodule_is_listed_with_its_commit_and_no_size(made: GitRepo, opened, tmp_path: Path):
    library = GitRepo(tmp_path / "library").write("l.py", "1").commit()
    made.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.folder), "lib")
    made.commit()
    files = {file.path: file for file in opened(made).files(made.sha())}
    assert (files["lib"].mode, files["lib"].oid, files["lib"].size) == (0o160000, library.sha(), 0)
    assert not files["lib"].missing


def test_paths_that_are_not_utf8_are_shown_with_escapes_and_flagged(made: GitRepo, opened):
    made.write(b"caf\xe9/\xff\\x.py", "1").write("ok/\u00e9.py", "2").commit()
    files = {file.path: file.decodable for file in opened(made).files(made.sha())}
    assert files == {"caf\\xe9/\\xff\\\\x.py": False, "ok/\u00e9.py": True}
    found = opened(made).file_at(made.sha(), "caf\\xe9/\\xff\\\\x.py")
    assert found is not None
    assert (opened(made).read(found.oid), found.decodable) == (b"1", False)


@given(st.lists(st.binary(min_size=1, max_size=4).map(lambda raw: b"\xff" + raw), min_size=2, unique=True))
def test_two_names_that_are_not_utf8_never_look_the_same(names: list[bytes]):
    shown = {render_name(name)[0] for name in names}
    assert len(shown) == len(names)
    assert all("/" not in name for name in shown)


def test_paths_that_differ_in_case_only_are_both_listed(made: GitRepo, opened):
    one = made.git("hash-object", "-w", "--stdin", stdin=b"1")
    two = made.git("hash-object", "-w", "--stdin", stdin=b"2")
    tree = made.git("mktree", stdin=f"100644 blob {one}\tREADME\n100644 blob {two}\tReadme\n".encode())
    assert [(file.path, file.oid) for file in opened(made).files(tree)] == [("README", one), ("Readme", two)]


def test_a_forged_tree_yields_no_path_with_a_foreign_slash_and_no_duplicate(made: GitRepo, opened):
    blob = bytes.fromhex(made.git("hash-object", "-w", "--stdin", stdin=b"1"))
    forged = b"".join(b"100644 " + name + b"\0" + blob for name in (b"a/b", b"c", b"c"))
    tree = made.git("hash-object", "-w", "--literally", "-t", "tree", "--stdin", stdin=forged)
    assert [(f.path, f.decodable) for f in opened(made).files(tree)] == [("a\\x2fb", False), ("c", True)]


def test_a_tree_that_is_cut_short_is_corrupt(made: GitRepo, opened):
    tree = made.git("hash-object", "-w", "--literally", "-t", "tree", "--stdin", stdin=b"100644 name")
    with pytest.raises(RepositoryError, match="corrupt"):
        list(opened(made).files(tree))


def test_a_tree_two_thousand_folders_deep_is_walked(made: GitRepo, opened):
    writer = opened(made)._store.handle
    tree = writer.TreeBuilder()
    tree.insert("leaf", writer.create_blob(b"1"), 0o100644)
    oid = tree.write()
    for _ in range(2_000):
        above = writer.TreeBuilder()
        above.insert("d", oid, 0o040000)
        oid = above.write()
    assert [file.path for file in opened(made).files(str(oid))] == ["d/" * 2_000 + "leaf"]
    assert len(opened(made).diff(made.git("mktree", stdin=b""), str(oid))) == 1


def test_an_old_group_writable_mode_reads_as_git_reads_it_today(made: GitRepo, opened):
    blob = bytes.fromhex(made.git("hash-object", "-w", "--stdin", stdin=b"1"))
    tree = made.git(
        "hash-object", "-w", "--literally", "-t", "tree", "--stdin", stdin=b"100664 a.py\0" + blob
    )
    assert [file.mode for file in opened(made).files(tree)] == [0o100644]


def _changes_by_git(made: GitRepo, old: str, new: str) -> list[tuple[str, str, str, str, str]]:
    raw = made.git("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", old, new).split("\0")[:-1]
    found = []
    for facts, path in zip(raw[::2], raw[1::2], strict=True):
        old_mode, new_mode, old_oid, new_oid, _ = facts.removeprefix(":").split()
        found.append((path, old_mode, old_oid, new_mode, new_oid))
    return sorted(found)


def _changes_by_kb(repository: Repository, old: str, new: str) -> list[tuple[str, str, str, str, str]]:
    def side(file):
        return ("000000", "0" * 40) if file is None else (f"{file.mode:06o}", file.oid)

    return [(one.path, *side(one.old), *side(one.new)) for one in repository.diff(old, new)]


def test_the_difference_is_that_of_git_over_every_kind_of_change(made: GitRepo, opened, tmp_path: Path):
    made.write("keep/a.py", "1").write("edit.py", "1").write("gone/x.py", "1").write("gone/y.py", "1")
    made.write("mode.sh", "1").write("becomes_folder", "1").write("becomes_file/a", "1").write(
        "old.py", "same"
    )
    made.write("becomes_link", "1").commit()
    made.write("edit.py", "2").delete("gone").write("new/deep/z.py", "").write(
        "mode.sh", "1", executable=True
    )
    made.delete("becomes_folder").write("becomes_folder/inside", "1").delete("becomes_file")
    made.write("becomes_file", "1").move("old.py", "moved/new.py")
    made.delete("becomes_link").symlink("becomes_link", "edit.py").commit()
    for old, new in (("HEAD~1", "HEAD"), ("HEAD", "HEAD~1")):
        expected = _changes_by_git(made, old, new)
        assert _changes_by_kb(opened(made), made.sha(old), made.sha(new)) == expected
        assert len(expected) == 12


NAMES = st.sampled_from(["a", "a.py", "a/b", "a/c", "b", "b/a/x", "b/a.y", "b/a-z", "c"])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, st.sampled_from("12")), st.dictionaries(NAMES, st.sampled_from("12")))
def test_any_two_trees_differ_as_git_says(tmp_path: Path, old: dict[str, str], new: dict[str, str]):
    made = GitRepo(tmp_path / "any")
    blobs = {content: made.git("hash-object", "-w", "--stdin", stdin=content.encode()) for content in "12"}
    trees = []
    for files in (old, new):
        made.git("read-tree", "--empty")
        for path, content in files.items():
            if not any(other.startswith(path + "/") for other in files):
                made.git("update-index", "--add", "--cacheinfo", f"100644,{blobs[content]},{path}")
        trees.append(made.git("write-tree"))
    repository = Repository.open(made.folder, tmp_path)
    assert _changes_by_kb(repository, *trees) == _changes_by_git(made, *trees)


def test_equal_subtrees_are_never_opened(made: GitRepo, opened, monkeypatch):
    for folder in range(50):
        made.write(f"d{folder}/a.py", str(folder))
    made.commit().write("d7/a.py", "new").commit()
    repository = opened(made)
    read = []
    monkeypatch.setattr(
        repository._store,
        "read",
        lambda oid, genuine=repository._store.read: read.append(oid) or genuine(oid),
    )
    assert [change.path for change in repository.diff(made.sha("HEAD~1"), made.sha())] == ["d7/a.py"]
    assert len(read) == 4


def test_a_file_is_found_by_its_path_and_a_folder_is_none(made: GitRepo, opened):
    made.write("a/b/c.py", "12").commit()
    found = opened(made).file_at(made.sha(), "a/b/c.py")
    assert found is not None
    assert (found.oid, found.size) == (made.sha("HEAD:a/b/c.py"), 2)
    for absent in ("a", "a/b", "a/b/c.py/d", "a/x", "", "/a", "a/b/c.py\0"):
        assert opened(made).file_at(made.sha(), absent) is None


def test_blobs_are_read_byte_for_byte_and_sized_without_reading(made: GitRepo, opened, monkeypatch):
    content = bytes(range(256)) * 3 + b"\r\n"
    made.write("x.bin", content).commit()
    repository, oid = opened(made), made.sha("HEAD:x.bin")
    assert repository.read(oid) == content
    monkeypatch.setattr(repository._store, "read", None)
    assert repository.size(oid) == 770


def test_packed_and_deltified_blobs_have_their_true_sizes(made: GitRepo, opened):
    lines = "".join(f"line {number}\n" for number in range(500))
    made.write("a.py", lines).commit().write("a.py", lines + "x = 1\n").commit()
    made.git("repack", "-q", "-a", "-d", "-f")
    for revision in ("HEAD", "HEAD~1"):
        files = list(opened(made).files(made.sha(revision)))
        assert [(file.path, file.oid, file.mode, file.size) for file in files] == _by_git(made, revision)


def test_an_object_that_is_not_there_is_not_found(made: GitRepo, opened):
    made.write("a.py", "1").commit()
    for ask in (opened(made).read, opened(made).size):
        with pytest.raises(NotFoundError, match="f" * 40):
            ask("f" * 40)
    with pytest.raises(NotFoundError):
        opened(made).diff("f" * 40, made.sha())
    with pytest.raises(RepositoryError, match="neither a commit nor a tree"):
        list(opened(made).files(made.sha("HEAD:a.py")))


def test_an_lfs_pointer_is_told_from_text_about_one():
    assert is_lfs_pointer(LFS)
    assert not is_lfs_pointer(b"# " + LFS)
    assert not is_lfs_pointer(b"version https://git-lfs.github.com/spec/v1\nsize 3\n")
    assert not is_lfs_pointer(LFS + b"x" * 2000)
