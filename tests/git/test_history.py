from __future__ import annotations

from pathlib import Path

import pytest

from kb.errors import NotFoundError
from kb.git import history
from tests.gitrepo import GitRepo


@pytest.fixture
def forked(made: GitRepo) -> GitRepo:
    r"""root - a - b - merge (main), with c - d from a on `side` as the merge's second parent."""
    made.write("f", "root").commit("root").write("f", "a").commit("a").branch("side")
    made.write("f", "b").commit("b").checkout("side").write("s", "c").commit("c").write("s", "d").commit("d")
    return made.checkout("main").merge("side")


def test_ancestry_follows_every_parent_and_a_commit_is_its_own_ancestor(forked: GitRepo, opened):
    repository = opened(forked)
    for ancestor, descendant, expected in (
        ("HEAD", "HEAD", True),
        ("side", "HEAD", True),
        ("HEAD~3", "side", True),
        ("HEAD", "side", False),
        ("HEAD^1", "side", False),
    ):
        assert repository.is_ancestor(forked.sha(ancestor), forked.sha(descendant)) is expected


def test_distance_counts_the_commits_that_the_older_one_lacks(forked: GitRepo, opened):
    repository = opened(forked)
    for old in ("HEAD", "HEAD^1", "side", "HEAD~2", "HEAD~3"):
        expected = int(forked.git("rev-list", "--count", f"{old}..HEAD"))
        assert repository.distance(forked.sha(old), forked.sha()) == expected
    assert repository.distance(forked.sha("side"), forked.sha("HEAD^1")) == 1


def test_unrelated_histories_are_as_far_apart_as_the_newer_one_is_long(made: GitRepo, opened):
    made.write("a", "1").commit().write("a", "2").commit()
    made.checkout("other", orphan=True).write("b", "1").commit()
    repository = opened(made)
    assert not repository.is_ancestor(made.sha("main"), made.sha("other"))
    assert repository.distance(made.sha("other"), made.sha("main")) == 2
    assert repository.nearest_ancestor(made.sha("other"), [made.sha("main")]) is None


def test_the_nearest_ancestor_is_the_fewest_steps_away_with_the_first_parent_first(forked: GitRepo, opened):
    repository, sha = opened(forked), forked.sha
    tip, b, d, c, a, root = (sha(name) for name in ("HEAD", "HEAD^1", "side", "side~1", "HEAD~2", "HEAD~3"))
    assert repository.nearest_ancestor(tip, {tip, b}) == tip
    assert repository.nearest_ancestor(tip, [root, d, b]) == b
    assert repository.nearest_ancestor(tip, [root, d]) == d
    assert repository.nearest_ancestor(tip, [root, c]) == c
    assert repository.nearest_ancestor(tip, [root, a]) == a
    assert repository.nearest_ancestor(d, [b, root]) == root
    assert repository.nearest_ancestor(b, [d, tip]) is None
    assert repository.nearest_ancestor(tip, []) is None
    assert repository.nearest_ancestor(tip, ["f" * 40]) is None


def test_the_walk_to_the_nearest_ancestor_stops_at_the_answer(made: GitRepo, opened, monkeypatch):
    for number in range(30):
        made.write("a", str(number)).commit()
    store = opened(made)._store
    read: list[str] = []
    genuine = store.commit
    monkeypatch.setattr(store, "commit", lambda sha: read.append(sha) or genuine(sha))
    assert history.nearest_ancestor(store, made.sha(), [made.sha("HEAD~2")]) == made.sha("HEAD~2")
    assert len(read) == 2


def test_the_log_is_oldest_first_and_leaves_out_what_since_has(forked: GitRepo, opened):
    repository = opened(forked)
    subjects = [one.subject for one in repository.log(forked.sha())]
    assert subjects[:2] == ["root", "a"]
    assert subjects[-1] == "merge"
    assert sorted(subjects) == ["a", "b", "c", "d", "merge", "root"]
    assert subjects.index("c") < subjects.index("d")
    assert [one.subject for one in repository.log(forked.sha(), forked.sha("side"))] == ["b", "merge"]
    first_parents = [one.subject for one in repository.log(forked.sha(), first_parent=True)]
    assert first_parents == ["root", "a", "b", "merge"]


def test_commits_with_clocks_running_backwards_stay_in_order(made: GitRepo, opened):
    made.commits = 100
    made.write("a", "1").commit("older by parentage")
    made.commits = 1
    made.write("a", "2").commit("younger by parentage")
    assert [one.subject for one in opened(made).log(made.sha())] == [
        "older by parentage",
        "younger by parentage",
    ]


def test_branches_and_tags_name_commits_through_tags_of_tags(made: GitRepo, opened):
    made.write("a", "1").commit().branch("feature/x").write("a", "2").commit()
    made.tag("light").tag("heavy", "HEAD~1", annotated=True).tag("heavier", "heavy", annotated=True)
    made.tag("a-tree", "HEAD^{tree}")
    repository = opened(made)
    assert repository.branches() == {"feature/x": made.sha("HEAD~1"), "main": made.sha()}
    assert repository.tags() == {
        "heavier": made.sha("HEAD~1"),
        "heavy": made.sha("HEAD~1"),
        "light": made.sha(),
    }


def test_packed_references_are_seen(made: GitRepo, opened):
    made.write("a", "1").commit().branch("side").tag("v1")
    made.git("pack-refs", "--all")
    assert set(opened(made).branches()) == {"main", "side"}
    assert set(opened(made).tags()) == {"v1"}


def test_a_detached_head_has_no_branch(made: GitRepo, opened):
    made.write("a", "1").commit().write("a", "2").commit().checkout("HEAD~1")
    assert opened(made).head() == (None, made.sha())
    assert opened(made).head_sha() == made.sha()


def test_a_new_commit_is_seen_by_an_open_repository(made: GitRepo, opened):
    made.write("a", "1").commit()
    repository = opened(made)
    first = repository.head_sha()
    made.write("a", "2").commit()
    made.git("gc", "-q")
    assert repository.head_sha() == made.sha() != first
    assert [file.size for file in repository.files(made.sha())] == [1]


def test_history_past_a_shallow_boundary_ends_there(made: GitRepo, opened, tmp_path: Path):
    for number in range(5):
        made.write("a", str(number)).commit()
    made.git("clone", "-q", "--depth", "3", made.folder.as_uri(), tmp_path / "shallow")
    shallow, sha = opened(tmp_path / "shallow"), made.sha
    assert shallow.distance(sha("HEAD~2"), sha()) == 2
    assert shallow.is_ancestor(sha("HEAD~2"), sha())
    assert shallow.nearest_ancestor(sha(), [sha("HEAD~4"), sha("HEAD~2")]) == sha("HEAD~2")
    assert shallow.nearest_ancestor(sha(), [sha("HEAD~4")]) is None
    with pytest.raises(NotFoundError):
        shallow.distance(sha("HEAD~4"), sha())


def test_lines_of_descent_name_the_nearest_before_each_and_no_other_branch(made: GitRepo, opened):
    first = made.write("a.py", "1").commit().sha()
    made.checkout("side", new=True).write("b.py", "1").commit()
    made.checkout("main")
    second = made.write("a.py", "2").commit().sha()
    merge = made.merge("side").sha()
    other = made.checkout("other", new=True).write("c.py", "1").commit().sha()
    repository = opened(made)
    # The merge leads to the first commit by way of `side` too, but that one comes before the second.
    assert repository.lines_of_descent(merge, [first, second, merge, other]) == {
        merge: (second,), second: (first,), first: (),
    }  # fmt: skip
    side = made.sha("side")
    found = repository.lines_of_descent(other, [side, second, merge, "f" * 40])
    assert {sha: set(older) for sha, older in found.items()} == {
        merge: {second, side}, second: set(), side: set(),
    }  # fmt: skip
    assert next(iter(found)) == merge
