"""Decides how each file of a commit is accounted for before anything is parsed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from kb.git.paths import is_lfs_pointer
from kb.model.files import FileStatus, TreeFile
from kb.snapshot.scope import Scope, is_generated
from kb.store.manifest import FileRow
from kb.structure.dialects import dialect_of

_SUBMODULE = 0o160000
_SYMLINK = 0o120000
_HEAD_BYTES = 2048
_LONGEST_PATH = 2048
"""Bytes: what an index of the database takes."""


def storable(path: str) -> str:
    """The path, or for one that the database cannot index its beginning and its digest."""
    data = path.encode("utf-8")
    if len(data) <= _LONGEST_PATH:
        return path
    digest = hashlib.sha256(data).hexdigest()
    return f"{data[: _LONGEST_PATH - len(digest) - 1].decode('utf-8', 'ignore')}~{digest}"


def plan_files(
    files: Iterable[TreeFile],
    scope: Scope,
    read: Callable[[str], bytes],
    max_blob_bytes: int,
) -> Iterator[FileRow]:
    """Each file with the status it will have unless its parse fails as a whole.

    `read` gives a blob's bytes by oid; it is asked only for blobs within the limit.
    """
    for file in files:
        yield _plan_file(file, scope, read, max_blob_bytes)


def _plan_file(file: TreeFile, scope: Scope, read: Callable[[str], bytes], max_blob_bytes: int) -> FileRow:
    def row(status: str, reason: str = "", dialect: str | None = None) -> FileRow:
        oid = None if file.mode == _SUBMODULE else file.oid
        return FileRow(storable(file.path), file.mode, oid, file.size, dialect, status, reason)

    left_out = scope.included(file.path)
    if left_out == "path_too_long":
        return row(FileStatus.GAP, left_out)
    if left_out is not None:
        return row(FileStatus.EXCLUDED, left_out)
    if file.mode == _SUBMODULE:
        return row(FileStatus.GAP, "submodule")
    if not file.decodable:
        return row(FileStatus.GAP, "path_not_utf8")
    if file.mode == _SYMLINK:
        return row(FileStatus.NO_LANGUAGE, "symlink")
    dialect = dialect_of(file.path)
    if dialect is None:
        return row(FileStatus.NO_LANGUAGE)
    if file.missing:
        return row(FileStatus.GAP, "object_missing")
    if file.size > max_blob_bytes:
        return row(FileStatus.GAP, "too_large")
    data = read(file.oid)
    if is_lfs_pointer(data):
        return row(FileStatus.GAP, "lfs_pointer")
    if scope.skips_generated and is_generated(data[:_HEAD_BYTES]):
        return row(FileStatus.EXCLUDED, "generated")
    return row(FileStatus.PARSED, dialect=dialect)
