"""Opens snapshots for questions, over and over: what a server keeps between two calls."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kb.errors import NotFoundError
from kb.git.repository import Repository
from kb.model.served import AnsweredFrom, Unit
from kb.retrieve.kept import Kept, Value, weight
from kb.retrieve.search import EmbeddingChoice
from kb.retrieve.select import Selected, select_snapshot
from kb.retrieve.units import UnitMaker
from kb.store.catalog import SnapshotRow, repositories, snapshot_by_id
from kb.store.database import Connection
from kb.store.parts import Parts
from kb.store.search import reading
from kb.store.search.reading import SearchView
from kb.store.serving import Seals, SnapshotLists, seals
from kb.store.units import ArtifactRow, SnapshotUnits

_CHOICES = 32
MOST_PLACES = 5
"""Places of a unit in a list: of a contract the handler, the route and its models."""


class Connections(Protocol):
    """Where reading connections come from: a `Database`, or a `ReaderPool` over one."""

    def reader(self) -> AbstractContextManager[Connection]:
        """A connection that may only SELECT."""
        ...


@dataclass(frozen=True)
class Chosen:
    """A snapshot that was chosen, with what makes units of it. Immutable but for what is kept inside."""

    selected: Selected
    maker: UnitMaker
    lock: threading.Lock
    kept: Kept
    """What was read of snapshots once and never changes: lists by filter, search views."""


class Opened:
    """A snapshot with a connection to read it by, for the length of one question."""

    def __init__(self, connection: Connection, chosen: Chosen) -> None:
        self.connection = connection
        self.selected = chosen.selected
        self.snapshot: SnapshotRow = chosen.selected.snapshot
        self._chosen = chosen
        at = (self.snapshot.lineage_id, self.snapshot.ordinal)
        self.stored = SnapshotUnits(connection, *at)
        self.lists = SnapshotLists(connection, *at)

    @property
    def repository(self) -> Repository | None:
        """The git repository; None where it cannot be read any more."""
        return self.selected.repository

    def units(self, artifact_pks: list[int], at: tuple[str, int] | None = None) -> tuple[Unit, ...]:
        """The artifacts as served in a list, in the order asked for; of each its most telling places.

        Args:
            artifact_pks: the artifacts.
            at: a file and a line that were asked for.
        """
        return self.made(self.stored.by_pk(artifact_pks), most=MOST_PLACES, at=at)

    def made(
        self,
        rows: list[ArtifactRow],
        *,
        source: bool = False,
        most: int | None = None,
        at: tuple[str, int] | None = None,
    ) -> tuple[Unit, ...]:
        """Rows as served (`UnitMaker.units`). One thread at a time: HEAD's parses are kept, and shared."""
        with self._chosen.lock:
            return self._chosen.maker.units(rows, source=source, most=most, at=at)

    def kept(self, key: Hashable, make: Callable[[], Value], weigh: Callable[[Value], int] = weight) -> Value:
        """What `make` yields, made once per snapshot: sealed knowledge never changes."""
        return self._chosen.kept.get((self.snapshot.snapshot_id, key), make, weigh)

    def search_view(self) -> SearchView | None:
        """The snapshot's part of the search index; None where it has not been put there yet."""

        def view() -> SearchView:
            found = reading.open_view(self.connection, self.snapshot.lineage_id, self.snapshot.ordinal)
            if found is None:
                raise _NotIndexedYetError
            return found

        # A search index that is made anew numbers its documents anew.
        made = reading.index_id(self.connection, self.snapshot.lineage_id)
        try:
            return self.kept(("search view", made), view, lambda found: found.weight)
        except _NotIndexedYetError:
            return None

    def source(self) -> AnsweredFrom:
        """Which snapshot answers, how it stands to HEAD, and what to do where it is not the one asked for."""
        head = self._chosen.maker.head
        return AnsweredFrom(
            repository=self.selected.row.name,
            sha=self.snapshot.label,
            head_sha=head.head,
            commits_behind=head.behind,
            notice=self.selected.notice,
            run=self.selected.run,
        )


class _NotIndexedYetError(LookupError):
    """A view that is not there yet is not kept: it may be there at the next question."""


class Library:
    """Snapshots by repository and commit-ish. Usable from several threads.

    A choice is made anew when something was sealed, removed or renamed, or when HEAD or the named
    branch moved; else it is kept, with the repository and the parses of HEAD that go with it.
    """

    def __init__(
        self,
        parts: Parts,
        connections: Connections | None = None,
        cwd: Path | None = None,
        embedding: EmbeddingChoice | None = None,
    ) -> None:
        self.parts = parts
        self.embedding = EmbeddingChoice() if embedding is None else embedding
        """Where the models of snapshots are asked."""
        self._connections: Connections = parts.database if connections is None else connections
        self._cwd = Path.cwd() if cwd is None else cwd
        self._choices: OrderedDict[Any, tuple[Seals, tuple[str | None, str | None], Chosen]] = OrderedDict()
        self._kept = Kept()
        self._lock = threading.Lock()

    @property
    def home(self) -> Path:
        """The data home."""
        return self.parts.home

    @property
    def cwd(self) -> Path:
        """The folder that decides which repository is meant where none is named."""
        return self._cwd

    @contextmanager
    def reader(self) -> Iterator[Connection]:
        """A reading connection."""
        with self._connections.reader() as connection:
            yield connection

    @contextmanager
    def opened(self, repo: str | None, sha: str | None) -> Iterator[Opened]:
        """The snapshot that the selection rules choose.

        Raises:
            NotFoundError, UsageError: as `select_snapshot`.
        """
        with self.reader() as connection:
            yield Opened(connection, self.choose(connection, repo, sha))

    @contextmanager
    def opened_again(self, snapshot_id: int) -> Iterator[Opened]:
        """That very snapshot: the next page of a list must come from where the first one came from.

        Raises:
            NotFoundError: it has been removed since.
        """
        with self.reader() as connection:
            yield Opened(connection, self.choose_again(connection, snapshot_id))

    def choose_again(self, connection: Connection, snapshot_id: int) -> Chosen:
        """The snapshot of that number.

        Raises:
            NotFoundError: it has been removed since.
        """
        state = seals(connection)
        kept = self._get(("snapshot", snapshot_id), state)
        if kept is not None:
            return kept
        row = snapshot_by_id(connection, snapshot_id)
        if row is None:
            raise NotFoundError("the snapshot that this cursor reads is gone", hint="ask again without it")
        known = next(one for one in repositories(connection) if one.repository_id == row.repository_id)
        if row.sha is None:
            chosen = select_snapshot(connection, known.name, row.label, self._cwd, self.home)
        else:
            chosen = select_snapshot(connection, known.name, row.sha, self._cwd, self.home)
        # Of two recipes the last one answers by name; a cursor means the one that it began with.
        selected = Selected(chosen.row, chosen.repository, row, row.label)
        return self._keep(("snapshot", row.snapshot_id), state, selected)

    def choose(self, connection: Connection, repo: str | None, sha: str | None) -> Chosen:
        """The snapshot for a repository and a commit-ish, kept while it is still the right one."""
        state = seals(connection)
        kept = self._get((repo, sha), state)
        if kept is not None:
            return kept
        return self._keep((repo, sha), state, select_snapshot(connection, repo, sha, self._cwd, self.home))

    def _get(self, key: Any, state: Seals) -> Chosen | None:
        with self._lock:
            found = self._choices.get(key)
            if found is None:
                return None
            self._choices.move_to_end(key)
        sealed, stood, chosen = found
        if chosen.selected.repository is None:  # it may be back by now
            return None
        if sealed != state or stood != _standing(chosen.selected):
            return None
        return chosen

    def _keep(self, key: Any, state: Seals, selected: Selected) -> Chosen:
        chosen = Chosen(selected, UnitMaker(selected), threading.Lock(), self._kept)
        with self._lock:
            self._choices[key] = (state, _standing(selected), chosen)
            if len(self._choices) > _CHOICES:
                self._choices.popitem(last=False)
        return chosen


def _standing(selected: Selected) -> tuple[str | None, str | None]:
    """Where HEAD and what was asked for point to now: when they move, the choice is made again."""
    repository = selected.repository
    if repository is None:
        return None, None
    try:
        head = repository.head_sha()
        asked = selected.asked
        if asked == "HEAD" or asked.startswith("worktree"):
            return head, head
        return head, repository.resolve(asked).sha
    except Exception:  # noqa: BLE001 - whatever git says now, the choice has to be made again
        return None, "unreadable"
