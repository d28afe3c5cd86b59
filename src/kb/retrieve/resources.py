"""What stands behind a resource: a file at a commit, a span, an artifact."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

from kb.errors import NotFoundError, RepositoryError, UsageError
from kb.git.repository import Repository
from kb.model.served import AnsweredFrom, Unit
from kb.retrieve.library import Library, Opened
from kb.retrieve.lines import line_texts
from kb.retrieve.select import select_repository
from kb.store.serving import SpanPlace, holder_of_span, holders_of_artifact

LARGEST_FILE = 4 * 1024 * 1024
_ID = re.compile(r"[0-9a-f]{8,64}")
_MOST_PLACES = 100


class PlacedSpan(BaseModel):
    """One place of a span."""

    model_config = ConfigDict(frozen=True)

    file: str
    start_line: int
    end_line: int
    sha: str


class SpanResource(BaseModel):
    """A span with its text, and where it stands in the newest snapshot that has it."""

    model_config = ConfigDict(frozen=True)

    answered_from: AnsweredFrom
    span_id: str
    language: str
    kind: str
    symbol: str
    places: tuple[PlacedSpan, ...]
    source: str


class ArtifactResource(BaseModel):
    """An artifact as a unit of the newest snapshot that holds it."""

    model_config = ConfigDict(frozen=True)

    answered_from: AnsweredFrom
    artifact_id: str
    unit: Unit


def read_file(library: Library, repo: str, sha: str, path: str) -> bytes:
    """A file's bytes at any commit that an indexed repository has.

    Raises:
        NotFoundError: no such repository, commit or file.
        RepositoryError: the repository cannot be read.
        UsageError: the file is too large to be sent.
    """
    with library.reader() as connection:
        row = select_repository(connection, repo, library.cwd, library.home)
    repository = Repository.open(row.location, library.home, fetch=False)
    file = repository.file_at(repository.resolve(sha), path)
    if file is None:
        raise NotFoundError(f"{row.name} has no file {path[:200]!r} at {sha[:40]}")
    if file.size > LARGEST_FILE:
        raise UsageError(
            f"{path[:200]} has {file.size} bytes, more than {LARGEST_FILE}", hint="read parts: get_source"
        )
    return repository.read(file.oid)


def read_span(library: Library, span: str) -> SpanResource:
    """A span by its id, or by the first 8 digits or more.

    Raises:
        NotFoundError: no snapshot has it. UsageError: it is no id.
    """
    prefix = _prefix(span)
    with library.reader() as connection:
        snapshot = holder_of_span(connection, prefix)
        if snapshot is None:
            raise NotFoundError(f"no span has the id {prefix}")
        opened = Opened(connection, library.choose_again(connection, snapshot))
        places = opened.lists.places_of_span(prefix, _MOST_PLACES)
        if len({place.span_id for place in places}) > 1:
            raise UsageError(f"several spans begin with {prefix}", hint="give more digits")
        return SpanResource(
            answered_from=opened.source(),
            span_id=places[0].span_id.hex(),
            language=places[0].language,
            kind=places[0].kind,
            symbol=places[0].symbol_path,
            places=tuple(_placed(place, opened.snapshot.label) for place in places),
            source=_text(opened, places[0]),
        )


def _placed(place: SpanPlace, sha: str) -> PlacedSpan:
    return PlacedSpan(file=place.path, start_line=place.start_line, end_line=place.end_line, sha=sha)


def _text(opened: Opened, place: SpanPlace) -> str:
    if opened.repository is None:
        raise RepositoryError(f"{opened.selected.row.location} cannot be read, so there are no lines to show")
    lines = line_texts(opened.repository.read(place.oid))
    return "\n".join(lines[place.start_line - 1 : place.end_line])


def read_artifact(library: Library, artifact: str) -> ArtifactResource:
    """An artifact by its id, or by the first 8 digits or more.

    Raises:
        NotFoundError: no snapshot has it. UsageError: it is no id.
    """
    prefix = _prefix(artifact)
    with library.reader() as connection:
        found = holders_of_artifact(connection, prefix)
        if not found:
            raise NotFoundError(f"no artifact has the id {prefix}")
        if len(found) > 1:
            raise UsageError(f"several artifacts begin with {prefix}", hint="give more digits")
        artifact_pk, snapshot = found[0]
        opened = Opened(connection, library.choose_again(connection, snapshot))
        rows = opened.stored.by_pk([artifact_pk])
        return ArtifactResource(
            answered_from=opened.source(), artifact_id=rows[0].artifact_id.hex(), unit=opened.made(rows)[0]
        )


def _prefix(text: str) -> str:
    text = text.strip().lower()
    if not _ID.fullmatch(text):
        raise UsageError("an id is 8 to 64 hex digits")
    return text
