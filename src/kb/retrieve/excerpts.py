"""What a passage of source reads like: the first of its very lines, instead of the words it is searched by."""

from __future__ import annotations

import textwrap
from collections import OrderedDict

from kb.errors import NotFoundError, RepositoryError
from kb.git.repository import Repository
from kb.retrieve.lines import line_texts
from kb.store.units import ArtifactRow

MOST_LINES = 30
"""Lines of one passage that are shown; `get_source` and `--source` have all of them."""
_LEFT_OUT = "..."
_UNREAD = "(the lines cannot be read now; their words:)\n"
_MOST_FILES = 32


class Excerpts:
    """Reads passages of one commit, the files asked for last kept in memory."""

    def __init__(self, repository: Repository | None) -> None:
        self._repository = repository
        self._files: OrderedDict[str, list[str]] = OrderedDict()

    def text(self, row: ArtifactRow) -> str:
        """The artifact's text; of a passage of source its lines as they stand there.

        Three dots stand for lines that the passage leaves out, and for those after the first 30. Where the
        repository cannot be read it says so before what is stored, the words of the source.
        """
        if row.kind != "passage" or row.body.get("of") == "section":
            return row.text
        if self._repository is None:
            return _UNREAD + row.text
        try:
            lines = self._lines(self._repository, row)
        except (NotFoundError, RepositoryError):
            return _UNREAD + row.text
        even = textwrap.dedent("\n".join(line or "" for line in lines)).split("\n")
        return "\n".join(_LEFT_OUT if line is None else text for line, text in zip(lines, even, strict=True))

    def _lines(self, repository: Repository, row: ArtifactRow) -> list[str | None]:
        """The lines; None where some are left out."""
        shown: list[str | None] = []
        last = None
        for place in sorted(row.places, key=lambda place: (place.path, place.start_line, -place.end_line)):
            file = self._file(repository, place.oid)
            start = place.start_line
            if last is not None and last[0] == place.path:
                start = max(start, last[1] + 1)
                if start > place.end_line:
                    continue
            if last is not None and last != (place.path, start - 1):
                shown.append(None)
            last = (place.path, place.end_line)
            for line in file[start - 1 : place.end_line]:
                if len(shown) >= MOST_LINES:
                    return [*shown, None]
                shown.append(line)
        return shown

    def _file(self, repository: Repository, oid: str) -> list[str]:
        found = self._files.get(oid)
        if found is None:
            found = self._files[oid] = line_texts(repository.read(oid))
            while len(self._files) > _MOST_FILES:
                self._files.popitem(last=False)
        else:
            self._files.move_to_end(oid)
        return found
