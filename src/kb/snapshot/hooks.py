"""The use cases `kb hook install`, `remove` and `status`: git hooks that keep the index up with commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kb.git import hooks
from kb.git.hooks import HOOKS, HookState

__all__ = ["HOOKS", "HookReport", "HookState", "hook_status", "install_hooks", "remove_hooks"]


@dataclass(frozen=True, slots=True)
class HookReport:
    """The hooks of a repository that kb can be called from."""

    folder: str
    """Where git looks for them; with `core.hooksPath` it may be shared with other repositories."""
    hooks: list[HookState] = field(default_factory=list)


def install_hooks(repo: str, kb: Path, only: Sequence[str] = ()) -> HookReport:
    """Makes git call `kb` in the background after each commit, merge and push that it receives.

    Args:
        repo: path of the repository.
        kb: the program to call.
        only: hooks to install, of `HOOKS`; all of them where it is empty.

    Raises:
        UsageError, RepositoryError: as `kb.git.hooks.install`; nothing is changed then.
    """
    return _report(repo, hooks.install(Path(repo), kb, tuple(only) or tuple(HOOKS)))


def remove_hooks(repo: str) -> HookReport:
    """Takes kb's lines out of the hooks again; what else stands in them stays, byte by byte."""
    return _report(repo, hooks.remove(Path(repo)))


def hook_status(repo: str) -> HookReport:
    """Which hooks call kb."""
    return _report(repo, hooks.states(Path(repo)))


def _report(repo: str, found: list[HookState]) -> HookReport:
    return HookReport(str(hooks.hooks_folder(Path(repo))), found)
