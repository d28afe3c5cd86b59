"""The scope: which files of a commit are indexed, and why the others are not.

First that applies: `excludes` leave a file out; a `.kbignore` line leaves it out, or with `!` keeps it
whatever the defaults say; where there are `includes`, a file that matches none is left out; vendored
folders and generated files are left out by default. All patterns have gitignore's syntax; other than
in git, an exception also brings back files below a folder that an earlier line leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, AnyStr

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from kb.config import RepositoryConfig
from kb.errors import NotFoundError, UsageError
from kb.git.repository import Repository
from kb.model.commits import CommitInfo

RULES_VERSION = 1
"""Raised by hand when the default lists below change what is left out."""

VENDORED_FOLDERS = frozenset(
    {
        "node_modules",
        "bower_components",
        "vendor",
        "_vendor",
        "vendored",
        "_vendored",
        "third_party",
        "third-party",
        "thirdparty",
        "site-packages",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        ".eggs",
        "__pypackages__",
    }
)
GENERATED_NAME = re.compile(
    r"""( _pb2(_grpc)?\.pyi? | \.pb\.go | \.pb\.(h|cc) | \.min\.(js|css|mjs) | \.(js|css|mjs)\.map
        | \.g\.dart | \.freezed\.dart | \.designer\.cs | \.g\.cs )\Z""",
    re.VERBOSE,
)
GENERATED_HEADER = re.compile(
    rb"@generated\b | \bdo\s+not\s+(edit|modify)\b | \bcode\s+generated\s+by\b", re.VERBOSE | re.IGNORECASE
)
COMMENT_LINE = re.compile(rb"\s*(\#|//|/\*|\*|<!--|--|;)")
HEADER_LINES = 12
HEADER_BYTES = 2048
LONGEST_PATH = 1024
"""Longer paths are left out: nothing real has them, and matching them can be made to cost."""
LONGEST_PATTERN = 1000
MOST_DOUBLE_STARS = 3
MOST_PATTERNS = 10_000


class LinearPattern(GitIgnoreSpecPattern):
    """A gitignore pattern that cannot be made to backtrack for hours by a forged path.

    Within one name the leftmost place for the text between two stars is as good as any other, so the
    regular expression settles for it: `*a*b` reads a name once, however many stars there are.
    """

    __slots__ = ()

    @classmethod
    def pattern_to_regex(cls, pattern: AnyStr) -> tuple[AnyStr | None, bool | None]:
        """The regular expression of a pattern, and whether what matches is left out or kept."""
        regex, include = super().pattern_to_regex(pattern)
        if isinstance(regex, str):
            regex = _settling(regex)
        return regex, include


def _settling(regex: str) -> str:
    """The expression with each star that another star of the same name follows made atomic."""
    star = "[^/]*"
    settled, *pieces = regex.split(star)
    for number, piece in enumerate(pieces, start=1):
        if number == len(pieces) or "/" in piece.replace("[^/]", ""):
            settled += star + piece
        elif piece:
            settled += f"(?>[^/]*?{piece})"
    return settled


@dataclass(frozen=True)
class Scope:
    """Decides for each path whether it is indexed; equal settings decide equally."""

    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    kbignore: tuple[str, ...] = ()
    """Effective lines of `.kbignore`, as `read_kbignore` gives them."""
    skips_vendored: bool = True
    skips_generated: bool = True
    _included: GitIgnoreSpec = field(init=False, repr=False, compare=False)
    _excluded: GitIgnoreSpec = field(init=False, repr=False, compare=False)
    _ignored: GitIgnoreSpec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compiles the patterns.

        Raises:
            UsageError: a pattern is not one that gitignore knows.
        """
        for name, patterns in (
            ("_included", self.includes),
            ("_excluded", self.excludes),
            ("_ignored", self.kbignore),
        ):
            for pattern in patterns:
                complaint = pattern_complaint(pattern)
                if complaint:
                    raise UsageError(f"the pattern {pattern!r} {complaint}", hint="patterns are gitignore's")
            object.__setattr__(
                self, name, GitIgnoreSpec.from_lines(patterns, LinearPattern, backend="simple")
            )

    def included(self, path: str) -> str | None:
        """None where the file is indexed, else the reason why not.

        Reasons: `path_too_long`, `excluded`, `kbignore`, `not_included`, `vendored`, `generated`.
        """
        if len(path) > LONGEST_PATH:
            return "path_too_long"
        if self.excludes and self._excluded.check_file(path).include:
            return "excluded"
        verdict = self._ignored.check_file(path).include if self.kbignore else None
        if verdict:
            return "kbignore"
        if self.includes and not self._included.check_file(path).include:
            return "not_included"
        if verdict is False:
            return None
        return self._left_out_by_default(path)

    def _left_out_by_default(self, path: str) -> str | None:
        if self.skips_vendored and not VENDORED_FOLDERS.isdisjoint(path.split("/")[:-1]):
            return "vendored"
        if self.skips_generated and GENERATED_NAME.search(path):
            return "generated"
        return None

    def settings(self) -> dict[str, Any]:
        """What decides, as JSON-able values: part of the recipe's digest."""
        return {
            "includes": list(self.includes),
            "excludes": list(self.excludes),
            "kbignore": list(self.kbignore),
            "skips_vendored": self.skips_vendored,
            "skips_generated": self.skips_generated,
            "rules": RULES_VERSION,
        }


def pattern_complaint(pattern: str) -> str | None:
    """What is wrong with a gitignore pattern, to follow its name in a sentence; None if nothing is."""
    if not pattern.strip():
        return "is blank"
    if len(pattern) > LONGEST_PATTERN:
        return f"is longer than {LONGEST_PATTERN} characters"
    if pattern.count("**") > MOST_DOUBLE_STARS:
        return f"has more than {MOST_DOUBLE_STARS} '**'"
    if "\0" in pattern or "\n" in pattern:
        return "holds a line break or NUL"
    try:
        GitIgnoreSpec.from_lines([pattern], LinearPattern, backend="simple")
    except (ValueError, re.error):
        return "is no gitignore pattern"
    return None


def read_kbignore(data: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The effective lines of a `.kbignore` (no comments, no blanks), and a notice for each unusable one.

    Never raises: the file comes from the repository, which may hold anything.
    """
    lines: list[str] = []
    notices: list[str] = []
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        complaint = "holds what is not UTF-8" if "�" in line else pattern_complaint(line)
        if len(lines) >= MOST_PATTERNS:
            notices.append(f".kbignore has more than {MOST_PATTERNS} patterns: the rest is ignored")
            break
        if complaint:
            notices.append(f".kbignore line {number} {complaint}: ignored")
        else:
            lines.append(line)
    return tuple(lines), tuple(notices)


def is_generated(head: bytes) -> bool:
    """Whether comments in the first lines of a file say that a program wrote it and people should not.

    Counts comment lines only: a program that writes such headers names them in strings.
    """
    for line in head[:HEADER_BYTES].splitlines()[:HEADER_LINES]:
        if COMMENT_LINE.match(line) and GENERATED_HEADER.search(line):
            return True
    return False


def scope_at(
    repository: Repository, commit: CommitInfo, includes: Sequence[str], excludes: Sequence[str]
) -> tuple[Scope, tuple[str, ...], list[str]]:
    """The scope of a commit, the roots its `kb.toml` names, and what there is to say about both files.

    The caller's includes replace the repository's; excludes of both count.

    Raises:
        UsageError: one of the caller's patterns is wrong.
    """
    config, notices = RepositoryConfig.parse(_top_level(repository, commit, "kb.toml"))
    ignored, ignore_notices = read_kbignore(_top_level(repository, commit, ".kbignore"))
    said = [*notices, *ignore_notices]
    scope = Scope(
        includes=tuple(includes) or _usable("includes", config.includes, said),
        excludes=(*excludes, *_usable("excludes", config.excludes, said)),
        kbignore=ignored,
    )
    return scope, config.roots, said


def _usable(setting: str, patterns: Iterable[str], notices: list[str]) -> tuple[str, ...]:
    good = []
    for pattern in patterns:
        complaint = pattern_complaint(pattern)
        if complaint:
            notices.append(f"kb.toml: {setting}: the pattern {pattern!r} {complaint}: ignored")
        else:
            good.append(pattern)
    return tuple(good)


def _top_level(repository: Repository, commit: CommitInfo, name: str) -> bytes:
    """A file of the commit's top folder, up to 1 MiB; nothing where it is absent or no plain file."""
    file = repository.file_at(commit, name)
    if file is None or file.mode not in (0o100644, 0o100755) or file.size > 1024 * 1024:
        return b""
    try:
        return repository.read(file.oid)
    except NotFoundError:
        return b""
