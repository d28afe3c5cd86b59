"""The use case `find_provenance`: what is known about one line of a file, and nothing of its twins."""

from __future__ import annotations

from kb.errors import UsageError
from kb.retrieve.library import Library, Opened
from kb.retrieve.lines import line_texts
from kb.retrieve.near import unknown_file
from kb.retrieve.pages import Paging, UnitsAnswer, opened_page, units_page


def find_provenance(
    library: Library, file: str, line: int, *, repo: str | None, sha: str | None, paging: Paging
) -> UnitsAnswer:
    """The units that stand on the line, the narrowest place first.

    An empty list means that kb knows the file and nothing stands there; the note says why.

    Raises:
        NotFoundError: the snapshot has no such file; the nearest paths are in the hint.
        UsageError: the line is not one.
    """
    if line < 1:
        raise UsageError(f"line {line}: lines are counted from 1")
    with opened_page(library, repo, sha, paging.cursor, "provenance", file, line) as (opened, start, digest):
        path = file.removeprefix("./")
        if opened.stored.file(path) is None:
            raise unknown_file(opened, path)
        order = list(dict.fromkeys(opened.stored.at_line(path, line)))
        note = None if order else _nothing_there(opened, path, line)
        return units_page(opened, order, start, digest, paging, matched="line", note=note, at=(path, line))


def _nothing_there(opened: Opened, path: str, line: int) -> str:
    note = file_note(opened, path)
    if note is not None:
        return f"nothing there: {note}"
    lines = _line_count(opened, path)
    if lines is not None and line > lines:
        return f"nothing there: the file has {lines} lines"
    return f"nothing there: the file was read, and no unit stands on line {line}"


def _line_count(opened: Opened, path: str) -> int | None:
    """Lines of a file of the snapshot; None where git cannot be asked."""
    file = opened.stored.file(path)
    if file is None or opened.repository is None:
        return None
    return len(line_texts(opened.repository.read(file[0])))


def file_note(opened: Opened, path: str) -> str | None:
    """Why the snapshot may know less of a file than there is; None where it was read."""
    file = opened.stored.file(path)
    if file is None:
        return "the snapshot has no such file"
    _, status, reason = file
    words = {
        "gap": "the file could not be read",
        "excluded": "the file is excluded from the index",
        "no_language": "the file is in no language kb reads",
    }
    said = words.get(status)
    return None if said is None else said + (f" ({reason})" if reason else "")
