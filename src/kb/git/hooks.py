"""Git hooks that index what was just committed, merged or received: quiet, in the background, removable.

kb's lines stand between two marks inside a shell script; whatever else the script does stays as it is.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import pygit2

from kb.errors import RepositoryError
from kb.git.failures import reading
from kb.git.location import find_local

BEGIN = "# >>> kb: index in the background; remove with `kb hook remove`"
END = "# <<< kb"
_SHELL = ("#!/bin/sh", "#!/usr/bin/env sh", "#!/bin/bash", "#!/usr/bin/env bash", "#!/bin/dash")
_HEADER = "#!/bin/sh\n"

# A hook must never fail or delay the commit: the work runs detached, and its fate is nobody's exit code.
_HERE = "(unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE; exec {kb} index .) </dev/null >/dev/null 2>&1 &"
_RECEIVED = """while read -r _ kb_new kb_ref; do
  case "$kb_new$kb_ref" in
    *[!0]*refs/heads/*)
      (unset GIT_DIR GIT_QUARANTINE_PATH; exec {kb} index . --sha "$kb_new") </dev/null >/dev/null 2>&1 & ;;
  esac
done"""

HOOKS = {"post-commit": _HERE, "post-merge": _HERE, "post-receive": _RECEIVED}


class HookState(NamedTuple):
    """One hook file."""

    name: str
    path: Path
    installed: bool
    """kb's lines are in it."""


def hooks_folder(where: Path) -> Path:
    """The folder that git runs hooks from for the repository at `where` (`core.hooksPath` included)."""
    local = find_local(where)
    with reading(local.git_dir):
        configured = pygit2.Repository(str(local.git_dir)).config
        if "core.hooksPath" not in configured:
            return local.common_dir / "hooks"
        folder = Path(str(configured["core.hooksPath"])).expanduser()
    return folder if folder.is_absolute() else (local.workdir or local.git_dir) / folder


def states(where: Path) -> list[HookState]:
    """Each hook that kb can install, and whether it is."""
    folder = hooks_folder(where)
    return [HookState(name, folder / name, BEGIN in _text(folder / name)) for name in HOOKS]


def install(where: Path, kb: Path, names: tuple[str, ...]) -> list[HookState]:
    """Puts kb's lines into the hooks; installing again renews them.

    Args:
        where: the repository.
        kb: the program to run.
        names: hooks, of `HOOKS`.

    Raises:
        RepositoryError: a hook is there and is no shell script; nothing is changed then.
    """
    folder = hooks_folder(where)
    texts = {name: _text(folder / name) for name in names}
    for name, text in texts.items():
        first = text.partition("\n")[0].strip()
        if text and not first.startswith(_SHELL):
            raise RepositoryError(
                f"the hook {folder / name} is no shell script",
                hint=f"call `kb index .` from it yourself, or leave it out: --only {'|'.join(HOOKS)}",
            )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        body = HOOKS[name].format(kb=shlex.quote(str(kb)))
        kept = _without(text) or _HEADER
        _write(folder / name, f"{kept.rstrip()}\n{BEGIN}\n{body}\n{END}\n")
    return states(where)


def remove(where: Path) -> list[HookState]:
    """Takes kb's lines out again, and the files that held nothing else."""
    folder = hooks_folder(where)
    for name in HOOKS:
        path = folder / name
        text = _text(path)
        if BEGIN not in text:
            continue
        kept = _without(text)
        if kept.strip() in ("", _HEADER.strip()):
            path.unlink()
        else:
            _write(path, kept)
    return states(where)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def _without(text: str) -> str:
    before, begin, rest = text.partition(BEGIN)
    if not begin:
        return text
    return before + rest.partition(END)[2].removeprefix("\n")


def _write(path: Path, text: str) -> None:
    """The whole file or the old one: git may run the hook at this moment."""
    fresh = path.with_name(f"{path.name}.kb-new")
    fresh.write_bytes(text.encode("utf-8", "surrogateescape"))
    fresh.chmod(0o755)
    fresh.replace(path)
