"""Names as trees keep them (bytes) and as kb shows them (text)."""

from __future__ import annotations

LFS_HEADER = b"version https://git-lfs.github.com/spec/"


def render_name(name: bytes) -> tuple[str, bool]:
    r"""One name of a tree as text, and whether the text is the very name.

    A name that is not UTF-8, or holds a slash (only a forged tree does), has its odd bytes written as
    `\xNN` and its backslashes doubled, so that two such names never look the same.
    """
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and "/" not in text:
        return text, True
    escaped = name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace").replace("/", "\\x2f")
    return escaped, False


def render_path(path: bytes) -> tuple[str, bool]:
    """A whole path as text, each of its names by `render_name`, and whether it is the very path."""
    try:
        return path.decode("utf-8"), True
    except UnicodeDecodeError:
        return "/".join(render_name(name)[0] for name in path.split(b"/")), False


def is_lfs_pointer(data: bytes) -> bool:
    """Whether a blob is a Git LFS pointer: the stand-in for a file that is kept elsewhere."""
    return len(data) < 1024 and data.startswith(LFS_HEADER) and b"\noid sha256:" in data
