from __future__ import annotations

import hashlib
import itertools
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kb.errors import NotFoundError, RepositoryError, UsageError
from tests.gitrepo import GitRepo


def _object(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content).hexdigest()


def _store(made: GitRepo, kind: str, content: bytes) -> str:
    return made.git("hash-object", "-w", "--literally", "-t", kind, "--stdin", stdin=content)


@pytest.mark.parametrize(
    "commitish", ["HEAD", "main", "refs/heads/main", "HEAD~1", "HEAD^", "@", "v1", "v3", "v1~1", "main@{0}"]
)
def test_a_commitish_means_what_git_says(commitish: str, made: GitRepo, opened):
    made.write("a.py", "1").commit().write("a.py", "2").commit()
    made.tag("v1").tag("v2", "v1", annotated=True).tag("v3", "v2", annotated=True)
    found = opened(made).resolve(commitish)
    assert found.sha == made.sha(f"{commitish}^{{commit}}")
    assert found.tree == made.sha(f"{commitish}^{{tree}}")


def test_a_commit_carries_its_parents_date_and_subject(made: GitRepo, opened):
    made.write("a.py", "1").commit("the first\n\nmore about it")
    made.checkout("side", new=True).write("b.py", "").commit().checkout("main").merge("side", "joined")
    merge = opened(made).resolve()
    assert merge.subject == "joined"
    assert merge.parents == (made.sha("HEAD^1"), made.sha("HEAD^2"))
    assert merge.committed_at == datetime(2024, 1, 1, 0, 2, tzinfo=UTC)
    first = opened(made).resolve("HEAD^1")
    assert (first.subject, first.parents) == ("the first", ())


@pytest.mark.parametrize("length", [4, 7, 12, 39, 40])
def test_a_short_sha_of_four_digits_or_more_is_enough(length: int, made: GitRepo, opened):
    sha = made.write("a.py", "1").commit().sha()
    assert opened(made).resolve(sha[:length]).sha == sha
    assert opened(made).resolve(sha[:length].upper()).sha == sha


def test_three_digits_are_too_few(made: GitRepo, opened):
    sha = made.write("a.py", "1").commit().sha()
    with pytest.raises(NotFoundError) as failure:
        opened(made).resolve(sha[:3])
    assert "4" in (failure.value.hint or "")


def test_a_short_sha_that_two_commits_share_is_ambiguous_and_both_are_named(made: GitRepo, opened):
    made.write("a.py", "1").commit()
    template = made.git("cat-file", "commit", "HEAD") + "\n"
    seen: dict[str, bytes] = {}
    for number in itertools.count():
        content = f"{template}{number}\n".encode()
        prefix = _object("commit", content)[:4]
        if prefix in seen:
            break
        seen[prefix] = content
    twins = sorted([_store(made, "commit", seen[prefix]), _store(made, "commit", content)])
    with pytest.raises(RepositoryError, match="ambiguous") as failure:
        opened(made).resolve(prefix)
    assert failure.value.data["candidates"] == twins
    assert twins[0][:12] in str(failure.value)


def test_a_short_sha_that_a_commit_shares_with_a_blob_means_the_commit(made: GitRepo, opened):
    sha = made.write("a.py", "1").commit().sha()
    blob = next(
        content
        for content in (b"%d" % number for number in itertools.count())
        if _object("blob", content).startswith(sha[:4])
    )
    _store(made, "blob", blob)
    assert opened(made).resolve(sha[:4]).sha == sha


@pytest.mark.parametrize(("what", "kind"), [("HEAD^{tree}", "tree"), ("HEAD:a.py", "blob")])
def test_the_sha_of_a_tree_or_a_blob_is_no_commit(what: str, kind: str, made: GitRepo, opened):
    made.write("a.py", "1").commit()
    with pytest.raises(RepositoryError, match=f"is a {kind}, not a commit"):
        opened(made).resolve(made.sha(what))


def test_a_tag_of_a_blob_is_no_commit(made: GitRepo, opened):
    made.write("a.py", "1").commit().tag("key", "HEAD:a.py", annotated=True)
    with pytest.raises(RepositoryError, match="not a commit"):
        opened(made).resolve("key")


def test_an_unborn_head_says_that_there_is_no_commit_yet(made: GitRepo, opened):
    with pytest.raises(RepositoryError, match="has no commit yet"):
        opened(made).resolve()
    with pytest.raises(RepositoryError, match="has no commit yet"):
        opened(made).head()
    assert opened(made).head_sha() is None
    assert opened(made).branches() == {}


def test_another_branch_resolves_while_head_is_unborn(made: GitRepo, opened):
    made.write("a.py", "1").commit()
    made.git("symbolic-ref", "HEAD", "refs/heads/new")
    assert opened(made).resolve("main").sha == made.sha("main")
    with pytest.raises(NotFoundError):
        opened(made).resolve("nope")


@pytest.mark.parametrize(
    "commitish", ["nope", "HEAD~9", "f" * 40, "v9", "HEAD@{99}", ":/no such words", "@{u}"]
)
def test_what_names_nothing_is_not_found(commitish: str, made: GitRepo, opened):
    made.write("a.py", "1").commit()
    with pytest.raises(NotFoundError) as failure:
        opened(made).resolve(commitish)
    assert failure.value.hint


@pytest.mark.parametrize(
    "commitish", ["-x", "--all", "", " ", "main..HEAD", "^main", "a\0b", "a\nb", "x" * 5000, ":a.py"]
)
def test_what_is_no_commitish_is_a_usage_error_in_one_line(commitish: str, made: GitRepo, opened):
    made.write("a.py", "1").commit()
    with pytest.raises(UsageError) as failure:
        opened(made).resolve(commitish)
    assert "\n" not in str(failure.value)
    assert len(str(failure.value)) < 300


def test_a_shallow_clone_reads_what_it_has_and_says_what_it_has_not(made: GitRepo, opened, tmp_path: Path):
    for number in range(4):
        made.write("a.py", str(number)).commit()
    made.git("clone", "-q", "--depth", "2", made.folder.as_uri(), tmp_path / "shallow")
    shallow = opened(tmp_path / "shallow")
    assert [one.sha for one in shallow.log(made.sha())] == [made.sha("HEAD~1"), made.sha()]
    assert shallow.resolve("HEAD~1").parents == ()
    for absent in ("HEAD~2", made.sha("HEAD~2")):
        with pytest.raises(NotFoundError) as failure:
            shallow.resolve(absent)
        assert "--unshallow" in (failure.value.hint or "")


@pytest.mark.parametrize("extension", [False, True])
def test_a_partial_clone_lists_absent_blobs_as_missing(
    extension: bool, made: GitRepo, opened, tmp_path: Path
):
    made.write("a.py", "1").write("d/b.py", "22").commit()
    made.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    made.git("clone", "-q", "--bare", "--filter=blob:none", made.folder.as_uri(), clone)
    if extension:
        made.git("--git-dir", clone, "config", "extensions.partialClone", "origin")
    partial = opened(clone)
    files = list(partial.files(partial.resolve()))
    assert [(file.path, file.size, file.missing) for file in files] == [
        ("a.py", 0, True),
        ("d/b.py", 0, True),
    ]
    for ask in (partial.read, partial.size):
        with pytest.raises(NotFoundError) as failure:
            ask(files[0].oid)
        assert "--refetch" in (failure.value.hint or "")


def test_a_clone_without_trees_says_so(made: GitRepo, opened, tmp_path: Path):
    made.write("a.py", "1").commit()
    made.git("config", "uploadpack.allowFilter", "true")
    made.git("clone", "-q", "--bare", "--filter=tree:0", made.folder.as_uri(), tmp_path / "treeless")
    treeless = opened(tmp_path / "treeless")
    with pytest.raises(NotFoundError) as failure:
        list(treeless.files(treeless.resolve()))
    assert "--refetch" in (failure.value.hint or "")


def test_a_corrupt_object_is_a_repository_error_that_names_it(made: GitRepo, opened):
    made.write("a.py", "1").commit()
    oid = made.sha("HEAD:a.py")
    loose = made.folder / ".git" / "objects" / oid[:2] / oid[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"no zlib stream")
    with pytest.raises(RepositoryError, match=oid):
        opened(made).read(oid)
    with pytest.raises(RepositoryError, match=oid):
        list(opened(made).files(made.sha()))


def test_a_corrupt_reference_is_an_error_of_one_line(made: GitRepo, opened):
    made.write("a.py", "1").commit()
    (made.folder / ".git" / "refs" / "heads" / "main").write_text("garbage\n")
    with pytest.raises((RepositoryError, NotFoundError)) as failure:
        opened(made).resolve()
    assert "\n" not in str(failure.value)


def test_a_message_in_another_encoding_and_an_impossible_date_are_made_presentable(made: GitRepo, opened):
    made.write("a.py", "1").commit()
    tree = made.sha("HEAD^{tree}")
    person = "Ada <ada@example.org> 99999999999999 +0000"
    latin = _store(
        made,
        "commit",
        f"tree {tree}\nauthor {person}\ncommitter {person}\nencoding ISO-8859-1\n\nCaf\u00e9\n".encode(
            "latin-1"
        ),
    )
    wrong = _store(
        made, "commit", f"tree {tree}\nauthor {person}\ncommitter {person}\n\n".encode() + b"bad \xff\n"
    )
    assert opened(made).resolve(latin).subject == "Caf\u00e9"
    assert opened(made).resolve(latin).committed_at.year == 9999
    assert opened(made).resolve(wrong).subject == "bad \ufffd"


def test_reading_needs_no_git_program(made: GitRepo, opened, monkeypatch):
    sha = made.write("a.py", "1").commit().sha()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(subprocess, "Popen", None)
    assert [opened(made).read(file.oid) for file in opened(made).files(sha)] == [b"1"]
