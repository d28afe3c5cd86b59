"""From a commit-ish, as a person writes it, to one commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pygit2
from pygit2.enums import ObjectType

from kb.errors import NotFoundError, RepositoryError, UsageError
from kb.git.failures import MISSING_HINT, one_line
from kb.git.objects import ObjectStore
from kb.model.commits import CommitInfo, Head

SHORT_SHA = re.compile(r"[0-9a-fA-F]{4,40}\Z")
LONGEST_COMMITISH = 1000
_LIST_NAMES = "list its names with: git branch --all; git tag"


def resolve(store: ObjectStore, commitish: str = "HEAD") -> CommitInfo:
    """The commit that a commit-ish names, through tags of tags, branches, short SHAs and `~ ^ @{}`.

    Raises:
        UsageError: it is empty, begins with `-`, or is no commit-ish in git's grammar.
        NotFoundError: nothing has that name, or the clone does not hold the commit.
        RepositoryError: HEAD has no commit yet, the short SHA is ambiguous, or it names no commit.
    """
    _check_written_form(commitish)
    try:
        named = store.handle.revparse_single(commitish)
    except pygit2.AmbiguousError as error:
        named = _disambiguate(store, commitish, error)
    except (pygit2.InvalidSpecError, pygit2.InvalidError, pygit2.NotFoundError) as error:
        raise _unresolved(store, commitish, error) from error
    except (pygit2.GitError, KeyError, ValueError, OSError) as error:
        raise RepositoryError(
            f"'{_shown(commitish)}' cannot be resolved in {store.git_dir}: {one_line(str(error))}",
            hint=f"check the repository with: git -C {store.git_dir} fsck",
        ) from error
    return commit_info(_peel(store, commitish, named))


def commit_info(commit: pygit2.Commit) -> CommitInfo:
    """A commit as a record; odd encodings and impossible dates are made presentable."""
    subject = commit.raw_message.lstrip().split(b"\n", 1)[0]
    return CommitInfo(
        sha=str(commit.id),
        tree=str(commit.tree_id),
        parents=tuple(str(parent) for parent in commit.parent_ids),
        committed_at=_moment(commit.commit_time),
        subject=_decoded(subject, commit.message_encoding).replace("\0", "�").strip(),
    )


def _decoded(text: bytes, encoding: str | None) -> str:
    try:
        return text.decode(encoding or "utf-8")
    except (UnicodeDecodeError, LookupError):
        return text.decode("utf-8", "replace")


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime(9999, 12, 31, tzinfo=UTC) if seconds > 0 else datetime(1, 1, 1, tzinfo=UTC)


def head(store: ObjectStore) -> Head:
    """HEAD's branch (None where detached) and commit.

    Raises:
        RepositoryError: HEAD has no commit yet.
    """
    sha = resolve(store, "HEAD").sha
    repository = store.handle
    ref = None if repository.head_is_detached else str(repository.lookup_reference("HEAD").target)
    return Head(ref, sha)


def _shown(commitish: str) -> str:
    shown = one_line(commitish)
    return shown if len(shown) <= 80 else shown[:79] + "…"


def _check_written_form(commitish: str) -> None:
    if commitish.startswith("-"):
        raise UsageError(f"'{_shown(commitish)}' is no commit-ish: git's names never begin with '-'")
    if not commitish.strip() or len(commitish) > LONGEST_COMMITISH or not commitish.isprintable():
        raise UsageError(f"'{_shown(commitish)}' is no commit-ish", hint="name a branch, a tag or a SHA")


def _peel(store: ObjectStore, commitish: str, named: pygit2.Object) -> pygit2.Commit:
    try:
        # Peeling without a type follows tags to the first object that is none (and a commit to its tree).
        target = named.peel(None) if named.type == ObjectType.TAG else named
    except (pygit2.GitError, LookupError, ValueError) as error:
        raise NotFoundError(
            f"what '{_shown(commitish)}' stands for is not in the repository {store.shown}",
            hint=MISSING_HINT if store.incomplete else f"check it with: git -C {store.git_dir} fsck",
        ) from error
    if target.type != ObjectType.COMMIT:
        raise RepositoryError(
            f"'{_shown(commitish)}' is a {target.type_str}, not a commit",
            hint="name a commit: a branch, a tag or a commit's SHA",
            kind=target.type_str,
        )
    return target.peel(pygit2.Commit)


def _unresolved(store: ObjectStore, commitish: str, error: Exception) -> Exception:
    """The error for a commit-ish that names nothing, or is none."""
    if isinstance(error, pygit2.InvalidSpecError) and ".." in commitish:
        return UsageError(f"'{_shown(commitish)}' is a range, not one commit")
    if isinstance(error, pygit2.InvalidSpecError | pygit2.InvalidError):
        return UsageError(
            f"'{_shown(commitish)}' is no commit-ish that kb can read", hint="name a branch, a tag or a SHA"
        )
    unborn = store.handle.head_is_unborn
    if unborn and re.match(r"(HEAD|@)(?![\w./-])", commitish):
        return RepositoryError(
            f"the repository {store.shown} has no commit yet: its HEAD is unborn",
            hint="commit something first, or name a branch that has commits",
        )
    if store.incomplete:
        return NotFoundError(
            f"no commit '{_shown(commitish)}' in the repository {store.shown}", hint=MISSING_HINT
        )
    return NotFoundError(
        f"no commit '{_shown(commitish)}' in the repository {store.shown}",
        hint=f"list its names with: git ls-remote {store.url}" if store.url else _LIST_NAMES,
    )


def _disambiguate(store: ObjectStore, commitish: str, error: Exception) -> pygit2.Object:
    """The one commit or tag that a short SHA can mean, as git decides where it wants a commit."""
    if not SHORT_SHA.match(commitish):
        if re.match(r"[0-9a-fA-F]{1,3}\Z", commitish):
            raise NotFoundError(
                f"no commit '{commitish}' in the repository {store.shown}",
                hint="a short SHA needs at least 4 digits",
            ) from error
        raise RepositoryError(f"'{_shown(commitish)}' is ambiguous", hint="write more of the SHA") from error
    commits = sorted(str(oid) for oid in _with_prefix(store, commitish.lower()))
    if len(commits) != 1:
        meant = ", ".join(sha[:12] for sha in commits[:5]) or "no commit, but several other objects"
        raise RepositoryError(
            f"short SHA '{commitish}' is ambiguous: {meant}",
            hint="write more digits of it",
            candidates=commits,
        ) from error
    return store.handle[commits[0]]


def _with_prefix(store: ObjectStore, prefix: str) -> Iterator[pygit2.Oid]:
    seen: set[pygit2.Oid] = set()
    for oid in store.odb:
        if oid not in seen and str(oid).startswith(prefix) and store.is_commit_like(oid):
            seen.add(oid)
            yield oid
