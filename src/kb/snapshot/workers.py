"""The two heavy steps, in as many processes as asked: parse blobs, link files.

A task goes out small (names of what to do) and comes back small (how much was done): workers read git
and the database themselves, and write what they made in short transactions of their own.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from kb.errors import KbError
from kb.extract.api import Extractor
from kb.extract.layout import Layout
from kb.extract.linking import Linker
from kb.extract.registry import load_extractors
from kb.git.repository import Repository
from kb.snapshot.facts import StoredFacts
from kb.store.blobs import ParseKey, put_parsed
from kb.store.database import Connection, Database
from kb.store.facts import LineageFacts
from kb.store.links import put_fresh
from kb.structure.decode import Limits
from kb.structure.reader import read_blob

ResultT = TypeVar("ResultT")


Own = tuple[Connection, Sequence[Extractor]]
"""What a process has at hand: its connection and its extractors."""


@dataclass(frozen=True)
class WorkSpec:
    """What a worker needs to know of the run; picklable."""

    database: Database
    repository: Repository
    coverage: dict[str, int]
    """Dialect -> coverage id of the fact sources that are run on it."""
    fact_versions: dict[str, int]
    extractor_ids: tuple[str, ...]
    roots: tuple[str, ...]
    max_blob_bytes: int


class Worker:
    """Does tasks of one run in one process, on one database connection.

    Args:
        spec: the run.
        own: connection (in autocommit mode) and extractors of this process; made anew where it is None.
    """

    def __init__(self, spec: WorkSpec, own: Own | None = None) -> None:
        self.spec = spec
        self._borrowed = own is not None
        if own is not None:
            self.connection, self.extractors = own
        else:
            self.extractors = load_extractors(spec.extractor_ids)
            self.connection = spec.database.connect("kb_writer")
            self.connection.autocommit = True
        self._world: tuple[tuple[int, int], StoredFacts, Linker] | None = None

    def close(self) -> None:
        """Ends the connection, if it is the worker's."""
        if not self._borrowed:
            self.connection.close()

    def parse(self, keys: Sequence[ParseKey]) -> int:
        """Parses and stores blobs; the number of them."""
        limits = Limits(max_bytes=self.spec.max_blob_bytes)
        batch = []
        with _no_collection():
            for oid, dialect in keys:
                data = self.spec.repository.read(oid)
                readers = [extractor for extractor in self.extractors if dialect in extractor.dialects]
                batch.append((read_blob(oid, data, dialect, readers, limits), len(data)))
            put_parsed(self.connection, batch, self.spec.coverage)
        return len(batch)

    def link(self, lineage_id: int, ordinal: int, paths: Sequence[str]) -> int:
        """Links and stores files of a lineage that this run fills; the number of artifacts."""
        facts, linker = self._linker(lineage_id, ordinal)
        with _no_collection():
            facts.prefetch(paths, [extractor.id for extractor in self.extractors])
            linked = [one for path in paths for one in linker.link(path)]
            with self.connection.transaction():
                put_fresh(self.connection, linked, lineage_id, ordinal)
            for extractor in self.extractors:
                facts.forget(extractor.id)
            return sum(len(one.artifacts) for one in linked)

    def _linker(self, lineage_id: int, ordinal: int) -> tuple[StoredFacts, Linker]:
        if self._world is None or self._world[0] != (lineage_id, ordinal):
            reader = LineageFacts(self.connection, lineage_id, ordinal, self.spec.fact_versions)
            facts = StoredFacts(reader, preload=True)
            layout = Layout(facts, self.spec.roots)
            self._world = ((lineage_id, ordinal), facts, Linker(self.extractors, facts, layout))
        return self._world[1], self._world[2]


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection during one batch, which makes much and leaves little; a fifth of linking's time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


_of_this_process: list[Worker] = []


def _start_worker(spec: WorkSpec, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    _die_with(parent)
    _of_this_process.append(Worker(spec))


def _die_with(parent: int) -> None:
    """Ends this process when its parent is gone, so that a killed run leaves nobody writing."""

    def watch() -> None:
        while os.getppid() == parent:
            gone.wait(0.5)
        os._exit(1)

    gone = threading.Event()
    threading.Thread(target=watch, daemon=True).start()


def _run(task: str, arguments: tuple[Any, ...]) -> int:
    done: int = getattr(_of_this_process[-1], task)(*arguments)
    return done


class Crew:
    """Runs tasks in `jobs` processes, or in this one where the work is too small to start any."""

    def __init__(self, spec: WorkSpec, jobs: int, own: Own) -> None:
        self._spec = spec
        self._own = own
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        self._local: Worker | None = None

    def run(
        self,
        task: str,
        batches: Sequence[tuple[Any, ...]],
        on_done: Callable[[int, int], None],
    ) -> int:
        """Runs `task` on every batch; the sum of what they returned.

        `on_done` is told the batch's index and its result as each is through.
        """
        if len(batches) <= 1 or self._jobs <= 1:
            return self._run_here(task, batches, on_done)
        return self._run_in_pool(task, batches, on_done)

    def _run_here(
        self, task: str, batches: Sequence[tuple[Any, ...]], on_done: Callable[[int, int], None]
    ) -> int:
        if self._local is None:
            self._local = Worker(self._spec, self._own)
        total = 0
        for index, arguments in enumerate(batches):
            done: int = getattr(self._local, task)(*arguments)
            total += done
            on_done(index, done)
        return total

    def _run_in_pool(
        self, task: str, batches: Sequence[tuple[Any, ...]], on_done: Callable[[int, int], None]
    ) -> int:
        if self._pool is None:
            method = "fork" if sys.platform == "linux" else "spawn"
            self._pool = ProcessPoolExecutor(
                max_workers=self._jobs,
                mp_context=multiprocessing.get_context(method),
                initializer=_start_worker,
                initargs=(self._spec, os.getpid()),
            )
        waiting = iter(enumerate(batches))
        running: dict[Future[int], int] = {}
        total = 0
        try:
            while True:
                # Few tasks in flight: neither the queue nor the results pile up in this process.
                for index, arguments in waiting:
                    running[self._pool.submit(_run, task, arguments)] = index
                    if len(running) >= self._jobs + 1:
                        break
                if not running:
                    return total
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    index = running.pop(future)
                    total += future.result()
                    on_done(index, future.result())
        except BrokenProcessPool as error:
            raise KbError(
                "a worker process died before it was done (out of memory?); nothing was sealed",
                hint="try again with fewer of them: --jobs 1",
            ) from error

    def close(self, *, abruptly: bool) -> None:
        """Ends the processes; `abruptly` does not wait for what they are at."""
        if self._local is not None:
            self._local.close()
            self._local = None
        if self._pool is not None:
            if abruptly:
                # The pool has no public way to end a task that runs (Python 3.14 has one).
                for process in multiprocessing.active_children():
                    process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


@contextmanager
def crew(spec: WorkSpec, jobs: int, own: Own) -> Iterator[Crew]:
    """A crew that is gone when the block is left, at once where it is left by an error.

    Args:
        spec: the run.
        jobs: how many processes.
        own: what this process works with where it does the tasks itself.
    """
    workers = Crew(spec, jobs, own)
    try:
        yield workers
    except BaseException:
        workers.close(abruptly=True)
        raise
    workers.close(abruptly=False)


def chunked(items: Sequence[tuple[ResultT, int]], limit_bytes: int, limit: int) -> list[list[ResultT]]:
    """Items in order, in batches of at most `limit` items and about `limit_bytes` together."""
    batches: list[list[ResultT]] = []
    size = 0
    for item, item_bytes in items:
        if not batches or len(batches[-1]) >= limit or size + item_bytes > limit_bytes:
            batches.append([])
            size = 0
        batches[-1].append(item)
        size += item_bytes
    return batches
