"""`kb hook`: git calls kb after commits, merges and pushes; quietly, without waiting, and removably."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.cli.commands.hook import HOOKS as OFFERED
from kb.errors import RepositoryError, UsageError
from kb.snapshot.hooks import HOOKS, hook_status, install_hooks, remove_hooks
from tests.gitrepo import GitRepo

OWN = "#!/bin/sh\nset -e\necho own >> own.txt\nexit 0"
"""A user's hook that ends early, and without a last newline."""


class Caller:
    """A program in kb's place: says what it was called with through a pipe, then waits to be let go."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "a 'kb'"
        self._said, self._go, self._begun = folder / "said", folder / "go", folder / "begun"
        for pipe in (self._said, self._go, self._begun):
            os.mkfifo(pipe)
        self._beginnings = os.open(self._begun, os.O_RDWR)  # so that the program need not wait for a reader
        self.program.write_text(
            f'#!/bin/sh\necho >> "{self._begun}"\ncat "{self._go}" >/dev/null\n'
            f'printf "%s|%s|%s" "$(pwd -P)" "$*" "${{GIT_DIR-unset}}" > "{self._said}"\n'
        )
        self.program.chmod(0o755)

    def started(self) -> None:
        """Waits until a call has begun; for once per call."""
        assert os.read(self._beginnings, 1) == b"\n"

    def close(self) -> None:
        """Lets go of the pipe."""
        os.close(self._beginnings)

    def called(self) -> tuple[str, str, str]:
        """Folder, arguments and GIT_DIR of the call, which ends now; waits until there is one."""
        self._go.write_text("")
        where, words, git_dir = self._said.read_text().split("|")
        return where, words, git_dir


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    folder = tmp_path / "program"
    folder.mkdir()
    caller = Caller(folder)
    yield caller
    caller.close()


def own_hook(repo: GitRepo, name: str, text: str = OWN, mode: int = 0o755) -> Path:
    path = repo.folder / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_commit_does_not_wait_for_kb_and_kb_is_told_the_repository(shop: GitRepo, caller: Caller) -> None:
    install_hooks(str(shop.folder), caller.program)
    shop.write("a.py", "x = 1\n").commit()  # returns while the program still waits
    assert caller.called() == (str(shop.folder.resolve()), "index . --sha HEAD", "unset")


def test_a_rebase_of_many_commits_runs_kb_once_and_once_more(shop: GitRepo, caller: Caller) -> None:
    install_hooks(str(shop.folder), caller.program, ["post-commit"])
    queue = shop.folder / ".git" / "kb-queue"
    shop.write("base.py", "x = 0\n").commit()
    caller.started()  # and goes on until it is let go
    shop.checkout("side", new=True)
    for number in range(25):
        shop.write(f"side{number}.py", f"x = {number}\n").commit()
    shop.checkout("main").write("other.py", "x = 1\n").commit()
    shop.git("rebase", "-q", "main", "side")
    waiting = [path.name for path in queue.iterdir() if path.name != ".lock"]
    assert waiting == ["HEAD"]
    caller.called()
    caller.started()
    assert [path.name for path in queue.iterdir()] == [".lock"]  # nothing waits: that was all
    assert caller.called()[1] == "index . --sha HEAD"


def test_a_lock_whose_holder_was_killed_holds_nobody_up(shop: GitRepo, caller: Caller) -> None:
    install_hooks(str(shop.folder), caller.program, ["post-commit"])
    queue = shop.folder / ".git" / "kb-queue"
    queue.mkdir()
    (queue / ".lock").symlink_to(str(os.getpid()))  # the number is another program's by now
    shop.write("a.py", "x = 1\n").commit()
    assert caller.called()[1] == "index . --sha HEAD"


def test_each_branch_of_a_push_waits_for_itself(shop: GitRepo, caller: Caller, tmp_path: Path) -> None:
    bare = shop.bare_clone(tmp_path / "bare.git")
    install_hooks(str(bare), caller.program)
    shop.checkout("feature/one", new=True).write("a.py", "x = 1\n").commit()
    shop.git("push", "-q", str(bare), "main:other", "feature/one")
    asked = {caller.called()[1], caller.called()[1]}
    assert asked == {"index . --sha refs/heads/feature/one", "index . --sha refs/heads/other"}


def test_a_merge_calls_kb(shop: GitRepo, caller: Caller) -> None:
    shop.checkout("side", new=True).write("side.py", "x = 1\n").commit().checkout("main")
    install_hooks(str(shop.folder), caller.program, ["post-merge"])
    shop.git("merge", "-q", "side")
    assert caller.called()[1] == "index . --sha HEAD"


@pytest.mark.parametrize("program", ["/no/such/kb", "/bin/false"])
def test_a_kb_that_is_gone_or_fails_is_nobodys_trouble(shop: GitRepo, program: str) -> None:
    install_hooks(str(shop.folder), Path(program))
    before = shop.sha()
    shop.write("a.py", "x = 1\n").git("add", "-A")
    assert shop.git("commit", "-q", "-m", "quiet") == ""
    assert shop.sha("HEAD~1") == before


def test_a_push_indexes_each_branch_that_was_pushed(shop: GitRepo, caller: Caller, tmp_path: Path) -> None:
    bare = shop.bare_clone(tmp_path / "bare.git")
    install_hooks(str(bare), caller.program)
    shop.write("a.py", "x = 1\n").commit()
    shop.tag("v1").git("push", "-q", str(bare), "main", "v1")
    assert caller.called() == (str(bare.resolve()), "index . --sha refs/heads/main", "unset")


def test_the_users_own_hook_still_sees_what_was_pushed(shop: GitRepo, caller: Caller, tmp_path: Path) -> None:
    bare = shop.bare_clone(tmp_path / "bare.git")
    own = bare / "hooks" / "post-receive"
    own.parent.mkdir(exist_ok=True)
    own.write_text("#!/bin/sh\ncat > received.txt\n")
    own.chmod(0o755)
    install_hooks(str(bare), caller.program)
    old = shop.sha()
    shop.write("a.py", "x = 1\n").commit().git("push", "-q", str(bare), "main")
    assert caller.called()[1] == "index . --sha refs/heads/main"
    assert (bare / "received.txt").read_text() == f"{old} {shop.sha()} refs/heads/main\n"


def test_a_branch_that_is_deleted_is_not_indexed(shop: GitRepo, caller: Caller, tmp_path: Path) -> None:
    bare = shop.branch("side").bare_clone(tmp_path / "bare.git")
    install_hooks(str(bare), caller.program)
    shop.git("push", "-q", str(bare), ":side")
    shop.write("a.py", "x = 1\n").commit().git("push", "-q", str(bare), "main")
    assert caller.called()[1] == "index . --sha refs/heads/main"


def test_a_users_own_hook_is_kept_and_runs(shop: GitRepo, caller: Caller) -> None:
    own = own_hook(shop, "post-commit", mode=0o750)
    install_hooks(str(shop.folder), caller.program)
    shop.write("a.py", "x = 1\n").commit()
    assert caller.called()[1] == "index . --sha HEAD"
    assert shop.path("own.txt").read_text() == "own\n"
    assert own.stat().st_mode & 0o777 == 0o750


def test_removed_they_leave_every_byte_as_it_was(shop: GitRepo, caller: Caller) -> None:
    own = own_hook(shop, "post-commit")
    install_hooks(str(shop.folder), caller.program)
    install_hooks(str(shop.folder), caller.program)
    assert own.read_text().count("index .") == 1
    report = remove_hooks(str(shop.folder))
    assert not any(hook.installed for hook in report.hooks)
    assert own.read_text() == OWN
    assert not (own.parent / "post-merge").exists()
    assert not (own.parent / "post-receive").exists()
    remove_hooks(str(shop.folder))
    assert own.read_text() == OWN


def test_only_the_hooks_that_were_asked_for_are_installed(shop: GitRepo, caller: Caller) -> None:
    report = install_hooks(str(shop.folder), caller.program, ["post-commit"])
    assert [hook.name for hook in report.hooks if hook.installed] == ["post-commit"]
    assert hook_status(str(shop.folder)) == report
    with pytest.raises(UsageError):
        install_hooks(str(shop.folder), caller.program, ["pre-commit"])


@pytest.mark.parametrize(
    ("text", "mode"), [("#!/usr/bin/env python3\n", 0o755), ("\x7fELF", 0o755), (OWN, 0o644)]
)
def test_what_kb_cannot_join_is_refused_and_nothing_is_changed(
    shop: GitRepo, caller: Caller, text: str, mode: int
) -> None:
    own = own_hook(shop, "post-merge", text, mode)
    with pytest.raises(RepositoryError):
        install_hooks(str(shop.folder), caller.program)
    assert own.read_text() == text
    assert own.stat().st_mode & 0o777 == mode
    assert not any(hook.installed for hook in hook_status(str(shop.folder)).hooks)


def test_a_hook_that_is_a_link_is_refused(shop: GitRepo, caller: Caller, tmp_path: Path) -> None:
    target = tmp_path / "shared-hook"
    target.write_text(OWN)
    target.chmod(0o755)
    link = shop.folder / ".git" / "hooks" / "post-commit"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    with pytest.raises(RepositoryError):
        install_hooks(str(shop.folder), caller.program)
    assert target.read_text() == OWN
    assert link.is_symlink()


@pytest.mark.parametrize("configured", ["tools/hooks", "{tmp}/elsewhere"])
def test_a_configured_folder_is_where_hooks_go(
    shop: GitRepo, caller: Caller, tmp_path: Path, configured: str
) -> None:
    shop.git("config", "core.hooksPath", configured.format(tmp=tmp_path))
    report = install_hooks(str(shop.folder), caller.program)
    assert Path(report.folder).resolve() == (shop.folder / configured.format(tmp=tmp_path)).resolve()
    shop.write("a.py", "x = 1\n").commit()
    assert caller.called()[1] == "index . --sha HEAD"


def test_a_linked_work_tree_has_the_repositorys_hooks(shop: GitRepo, caller: Caller, tmp_path: Path) -> None:
    shop.git("worktree", "add", "-q", tmp_path / "linked", "-b", "side")
    install_hooks(str(tmp_path / "linked"), caller.program)
    assert all(hook.installed for hook in hook_status(str(shop.folder)).hooks)
    (tmp_path / "linked" / "a.py").write_text("x = 1\n")
    shop.git("-C", str(tmp_path / "linked"), "add", "-A")
    shop.git("-C", str(tmp_path / "linked"), "commit", "-q", "-m", "in the linked one")
    assert caller.called() == (str((tmp_path / "linked").resolve()), "index . --sha HEAD", "unset")


def test_the_command_line_offers_the_hooks_that_there_are() -> None:
    assert tuple(HOOKS) == OFFERED
