"""Real git repositories for tests: deterministic authors, dates and therefore SHAs.

    repo = GitRepo(tmp_path / "repo")
    first = repo.write("a.py", "x = 1\n").commit("one").sha()
    second = repo.move("a.py", "b.py").commit("two").sha()

The user's own git configuration, hooks and environment have no influence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

EPOCH = 1_704_067_200
"""2024-01-01T00:00:00Z: the date of the first commit; each later one is a minute younger."""


def git_environment(home: Path, moment: int = EPOCH) -> dict[str, str]:
    """An environment for `git` without the user's configuration, at a fixed moment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return clean | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": f"{moment} +0000",
        "GIT_COMMITTER_DATE": f"{moment} +0000",
        "LC_ALL": "C",
    }


class GitRepo:
    """A repository in `folder`; every changing method returns the repository itself, to be chained."""

    def __init__(self, folder: Path, *, object_format: str = "sha1") -> None:
        self.folder = folder
        self.commits = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", f"--object-format={object_format}")
        for name, value in (("commit.gpgsign", "false"), ("core.autocrlf", "false"), ("gc.auto", "0")):
            self.git("config", name, value)

    def git(self, *arguments: str | bytes | Path, stdin: bytes | None = None) -> str:
        """Standard output of one git command run in the repository, without the last newline."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=git_environment(self.folder.parent, EPOCH + 60 * self.commits),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"git {arguments} failed: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    def path(self, name: str | bytes) -> Path:
        """Where a file of the work tree is; a bytes name may be any bytes."""
        return self.folder / os.fsdecode(name)

    def write(self, name: str | bytes, content: str | bytes = "", *, executable: bool = False) -> GitRepo:
        """Writes a file (text as UTF-8, newlines as given), making its folders."""
        target = self.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        target.chmod(0o755 if executable else 0o644)
        return self

    def symlink(self, name: str, target: str) -> GitRepo:
        """Makes a symbolic link."""
        link = self.path(name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        return self

    def delete(self, name: str | bytes) -> GitRepo:
        """Removes a file or a folder from the work tree."""
        target = self.path(name)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink()
        return self

    def move(self, old: str, new: str) -> GitRepo:
        """Renames a file or a folder of the work tree."""
        self.path(new).parent.mkdir(parents=True, exist_ok=True)
        self.path(old).rename(self.path(new))
        return self

    def commit(self, message: str = "change") -> GitRepo:
        """Commits everything in the work tree, also where nothing changed."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        self.commits += 1
        return self

    def branch(self, name: str, at: str = "HEAD") -> GitRepo:
        """Makes (or moves) a branch without checking it out."""
        self.git("branch", "-f", name, at)
        return self

    def checkout(self, name: str, *, new: bool = False, orphan: bool = False) -> GitRepo:
        """Checks out a branch or commit; `new` makes the branch, `orphan` one without history or files."""
        if orphan:
            self.git("checkout", "-q", "--orphan", name)
            self.git("rm", "-rfq", "--ignore-unmatch", ".")
        else:
            self.git("checkout", "-q", *(["-b"] if new else []), name)
        return self

    def merge(self, name: str, message: str = "merge") -> GitRepo:
        """Merges a branch with a merge commit."""
        self.git("merge", "-q", "--no-ff", "-m", message, name)
        self.commits += 1
        return self

    def reset(self, to: str) -> GitRepo:
        """Moves the branch and the work tree to `to`: what a force-push does to a history."""
        self.git("reset", "-q", "--hard", to)
        return self

    def tag(self, name: str, at: str = "HEAD", *, annotated: bool = False) -> GitRepo:
        """Makes a tag; an annotated one may name another tag."""
        self.git("tag", *(["-a", "-m", name] if annotated else []), name, at)
        return self

    def sha(self, revision: str = "HEAD") -> str:
        """The full object id that git itself gives for a revision."""
        return self.git("rev-parse", "--verify", revision)

    def bare_clone(self, folder: Path) -> Path:
        """A bare clone of the repository at `folder`."""
        self.git("clone", "-q", "--bare", "--no-local", ".", folder)
        return folder
