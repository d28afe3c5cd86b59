from __future__ import annotations

import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from kb.git.repository import Repository
from tests.gitrepo import GitRepo

# Forking is what is tested here; Python 3.12 and later warn of it where the test runner has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.fixture
def filled(made: GitRepo) -> GitRepo:
    for number in range(40):
        made.write(f"d{number % 7}/f{number}.py", f"{number}\n" * (number + 1))
    return made.commit()


def _read_batch(repository: Repository, oids: list[str]) -> list[int]:
    return [len(repository.read(oid)) for oid in oids]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_read_with_a_repository_they_were_sent(method: str, filled: GitRepo, opened):
    repository = opened(filled)
    files = list(repository.files(filled.sha()))
    batches = [[file.oid for file in files[start::4]] for start in range(4)]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        sizes = list(pool.map(_read_batch, [repository] * 4, batches))
    assert sizes == [[file.size for file in files[start::4]] for start in range(4)]


def test_a_forked_child_opens_a_handle_of_its_own(filled: GitRepo, opened):
    repository = opened(filled)
    before = repository._store.handle
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            same = repository._store.handle is before
            files = sum(1 for _ in repository.files(filled.sha()))
            os.write(writer, f"{same} {files}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as said:
        assert said.read() == "False 40"
    assert repository._store.handle is before


def test_threads_read_one_repository_at_once(filled: GitRepo, opened):
    repository = opened(filled)
    files = list(repository.files(filled.sha()))
    with ThreadPoolExecutor(8) as pool:
        walked = list(pool.map(lambda _: list(repository.files(filled.sha())), range(16)))
        sizes = list(pool.map(lambda file: len(repository.read(file.oid)), files))
    assert walked == [files] * 16
    assert sizes == [file.size for file in files]


def test_what_is_pickled_is_small_and_keeps_everything_that_matters(filled: GitRepo, opened, tmp_path):
    overlay = opened(filled).with_overlay(tmp_path / "overlay")
    data = pickle.dumps(overlay)
    copy = pickle.loads(data)
    assert len(data) < 1000
    for name in ("location", "workdir", "is_remote", "overlay", "default_name"):
        assert getattr(copy, name) == getattr(overlay, name)
