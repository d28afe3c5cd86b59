"""How far a long command is, on stderr, and only where stderr is a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kb.cli.terminal import is_terminal


class TerminalProgress:
    """Called with (stage, done, total) as work goes on; draws one line per stage, gone at the end."""

    def __init__(self) -> None:
        self._stages: dict[str, TaskID] = {}
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not is_terminal(sys.stderr),
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def __call__(self, stage: str, done: int, total: int | None = None) -> None:
        """The stage stands at `done` of `total` (None while nobody knows)."""
        task = self._stages.get(stage)
        if task is None:
            task = self._stages[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(task, completed=done, total=total)
