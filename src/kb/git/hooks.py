"""Git hooks that index what was just committed, merged or received: quiet, in the background, removable.

kb's lines stand between two marks at the top of a shell script, before whatever else it does: a script
that ends early, or fails, does not keep kb from running. All other bytes of the script stay as they are.
"""

from __future__ import annotations

import re
import shlex
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pygit2

from kb.errors import RepositoryError, UsageError
from kb.git.failures import reading
from kb.git.location import find_local

BEGIN = "# >>> kb: index in the background; remove with `kb hook remove`"
END = "# <<< kb"
_SHELL = re.compile(r"#!\s*(/usr/bin/env\s+)?(/\S*/)?(sh|bash|dash|ksh|zsh)(\s|\Z)")
_HEADER = "#!/bin/sh\n"

QUEUE = "kb-queue"
"""Folder in the git directory: a file for each branch that waits to be indexed, and whoever indexes now."""

# Git tells hooks about the repository by variables, which would speak of another one to whatever kb calls.
_UNSET = "unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY"

# A hook must never fail or delay the commit: the work runs detached, and its fate is nobody's exit code.
# A rebase calls the hook for each commit, so at most one kb runs and at most one run waits per branch: the
# request is a file, which whoever holds the lock takes away before it indexes. The holder looks for requests
# once more after it let go, so none is lost. A lock whose holder was killed is nobody's: a number that
# another program has by now does not count (a `ps` that cannot tell does).
_QUEUED = """'
  queue=$(git rev-parse --git-dir)/kb-queue && mkdir -p "$queue" || exit
  : > "$queue/$(echo "$2" | tr / :)" || exit
  while [ -n "$(ls "$queue")" ]; do
    if ! ln -s $$ "$queue/.lock"; then
      other=$(readlink "$queue/.lock") || exit
      kill -0 "$other" && case $(ps -o args= -p "$other" || echo kb-queue) in *kb-queue*) exit ;; esac
      rm -f "$queue/.lock" || exit
      continue
    fi
    ls "$queue" | while read -r branch; do
      rm -f "$queue/$branch" && "$1" index . --sha "$(echo "$branch" | tr : /)"
    done
    rm -f "$queue/.lock"
  done'"""
_HERE = f"({_UNSET}; exec sh -c {_QUEUED} kb-hook {{kb}} HEAD) </dev/null >/dev/null 2>&1 &\n"
# What was pushed comes on standard input, which is the rest of the script's too: it is handed on.
_RECEIVED = f"""kb_refs=$(cat)
while read -r _ kb_new kb_ref; do
  case "$kb_new$kb_ref" in
    *[!0]*refs/heads/*)
      ({_UNSET}; exec sh -c {_QUEUED} kb-hook {{kb}} "$kb_ref") </dev/null >/dev/null 2>&1 & ;;
  esac
done <<END_OF_REFS
$kb_refs
END_OF_REFS
exec <<END_OF_REFS
$kb_refs
END_OF_REFS
"""

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


def install(where: Path, kb: Path, names: Sequence[str]) -> list[HookState]:
    """Puts kb's lines into the hooks; installing again renews them.

    Args:
        where: the repository.
        kb: the program to run.
        names: hooks, of `HOOKS`.

    Raises:
        UsageError: there is no hook of such a name.
        RepositoryError: a hook is there that kb cannot be put into; nothing is changed then.
    """
    unknown = sorted(set(names) - HOOKS.keys())
    if unknown:
        raise UsageError(f"kb has no hook {', '.join(unknown)}", hint=f"there are {', '.join(HOOKS)}")
    folder = hooks_folder(where)
    texts = {name: _text(folder / name) for name in names}
    for name, text in texts.items():
        complaint = _complaint(folder / name, text)
        if complaint:
            raise RepositoryError(
                f"the hook {folder / name} {complaint}",
                hint=f"call `kb index .` from it yourself, or leave it out: --only {'|'.join(HOOKS)}",
            )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        body = HOOKS[name].replace("{kb}", shlex.quote(str(kb)))
        header, _, rest = (_without(text) or _HEADER).partition("\n")
        _write(folder / name, f"{header}\n{BEGIN}\n{body}{END}\n{rest}")
    return states(where)


def _complaint(path: Path, text: str) -> str | None:
    """Why kb's lines cannot go into a hook; None where they can."""
    if path.is_symlink():
        return "is a link to another file"
    if text and not _SHELL.match(text.partition("\n")[0]):
        return "is no shell script"
    if text and not path.stat().st_mode & stat.S_IXUSR:
        return "is not executable, so git does not run it, and kb does not switch it on"
    return None


def remove(where: Path) -> list[HookState]:
    """Takes kb's lines out again, and the files that held nothing else."""
    folder = hooks_folder(where)
    shutil.rmtree(find_local(where).git_dir / QUEUE, ignore_errors=True)
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
    mode = path.stat().st_mode if path.exists() else 0o755
    fresh = path.with_name(f"{path.name}.kb-new")
    fresh.write_bytes(text.encode("utf-8", "surrogateescape"))
    fresh.chmod(stat.S_IMODE(mode))
    fresh.replace(path)
