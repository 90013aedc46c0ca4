"""Progress of long work: a line per step, with a bar when the step can be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)


class Steps:
    """Shown on standard error, so that a command's output can be piped; ``quiet`` shows nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=quiet,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        """A line that stays, in rich's markup."""
        if not self._progress.disable:
            self._progress.console.print(line)

    @contextmanager
    def step(self, what: str, total: int = 1) -> Iterator[Callable[[int], None]]:
        """A step of ``total`` units; the value given advances it. It is complete when the block
        ends without an error."""
        task = self._progress.add_task(what, total=total)
        yield lambda count: self._progress.advance(task, count)
        self._progress.update(task, completed=total)
