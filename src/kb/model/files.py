"""The files of a commit, as kb accounts for them."""

from __future__ import annotations

from typing import NamedTuple


class TreeFile(NamedTuple):
    """One entry of a commit's tree, in the order git keeps them."""

    path: str
    """UTF-8; a path that is not is rendered with `\\xNN` escapes and flagged by `decodable`."""
    oid: str
    """Hex object id of the blob, or of the commit for a submodule."""
    mode: int
    """git's file mode: 0o100644, 0o100755, 0o120000 (symlink), 0o160000 (submodule)."""
    size: int
    """Bytes; 0 for a submodule or where the object is absent (partial clone: `missing`)."""
    decodable: bool = True
    missing: bool = False


class FileStatus:
    """How a file of a snapshot is accounted for: files = parsed + gap + no_language; excluded beside."""

    PARSED = "parsed"
    GAP = "gap"
    NO_LANGUAGE = "no_language"
    EXCLUDED = "excluded"
