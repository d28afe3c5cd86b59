"""Killed at any moment: the last sealed state stands, and the next run completes with the same ids."""

from __future__ import annotations

import os
import random
import signal
import warnings
from collections.abc import Callable

import pytest

from kb.snapshot import faults
from tests.gitrepo import GitRepo
from tests.indexing import State, TestParts, count, index, keys_of, state_of

KILLS = 100
SEED = int(os.environ.get("KB_TEST_SEED", "20240101"))


def run_in_child(work: Callable[[], object]) -> int:
    """The wait status of a forked child that does the work and ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside the test runner's threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def index_until(parts: TestParts, repo: GitRepo, point: str, passes: int, *, full: bool) -> None:
    """Indexes HEAD in a process that kills itself when it passes `point` for the n-th time."""
    left = passes

    def die(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    faults.hooks.append(die)
    index(parts, repo, full=full)


def shas(parts: TestParts) -> set[str]:
    """The commits that are sealed."""
    with parts.database.reader() as connection:
        rows = connection.execute("SELECT sha FROM snapshot JOIN commit_ref USING (commit_id)").fetchall()
    return {str(row[0]) for row in rows}


def edit(repo: GitRepo, number: int, choice: random.Random) -> None:
    name = choice.choice(["shop/orders.py", "shop/billing.py", f"shop/extra{choice.randrange(5)}.py"])
    body = "".join(
        f"def f{choice.randrange(20)}(x={number}):\n    return {choice.randrange(99)}\n\n" for _ in range(3)
    )
    repo.write(name, f"import os\nfrom shop import billing\n\n{body}").commit(f"edit {number}")


def test_no_kill_leaves_a_half_state(
    parts: TestParts, shop: GitRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = random.Random(SEED)
    with capsys.disabled():
        print(f"\nkills: seed {SEED} (KB_TEST_SEED)")
    known: dict[str, State] = {}
    last: str | None = None
    killed = 0
    number = 0
    while killed < KILLS:
        number += 1
        edit(shop, number, choice)
        for _ in range(6):
            point, passes = choice.choice(faults.POINTS), choice.choice([1, 1, 2])
            full = choice.random() < 0.4
            status = run_in_child(lambda: index_until(parts, shop, point, passes, full=full))  # noqa: B023
            killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
            assert shas(parts) - known.keys() <= {shop.sha()}
            assert shas(parts) >= known.keys()
            if last is not None:
                assert state_of(parts.database, last) == known[last]
            if shop.sha() in shas(parts):
                break
        report = index(parts, shop)
        known[report.sha] = state_of(parts.database, report.sha)
        last = report.sha
        assert len(known[report.sha]) == report.artifacts
        if number % 8 == 0:
            index(parts, shop, full=True)
            assert state_of(parts.database, report.sha) == known[report.sha]
    assert {sha: state_of(parts.database, sha) for sha in shas(parts)} == known
    # What killed runs left is not reachable, and the next run cleared their lineages away.
    assert count(parts.database, "lineage") == len(lineages_in_use(parts))
    assert keys_of(parts.database, shop.sha())


def lineages_in_use(parts: TestParts) -> set[int]:
    with parts.database.reader() as connection:
        return {row[0] for row in connection.execute("SELECT DISTINCT lineage_id FROM snapshot").fetchall()}
