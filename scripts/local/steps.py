"""Progress of long work: a line per step, with a bar when the step can be counted."""

from __future__ import annotations

import time
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
    """Shown on standard error, so that a command's output can be piped: bars that move on a
    terminal, elsewhere a line as each step ends. ``quiet`` shows nothing."""

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._quiet = quiet
        self._live = self._console.is_terminal
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=quiet or not self._live,
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

    def say(self, text: str) -> None:
        """A text between two steps."""
        if not self._quiet:
            self._console.print(text, highlight=False, markup=False)

    @contextmanager
    def step(self, what: str, total: int = 1) -> Iterator[Callable[[int], None]]:
        """A step of ``total`` units; the value given advances it. It is complete when the block
        ends without an error."""
        start = time.monotonic()
        task = self._progress.add_task(what, total=total)
        try:
            yield lambda count: self._progress.advance(task, count)
        except BaseException:
            self._ended("✗", what, total, start)
            raise
        self._progress.update(task, completed=total)
        self._ended("✓", what, total, start)

    def _ended(self, mark: str, what: str, total: int, start: float) -> None:
        """Where nothing moves, the end of a step is all there is to see of it."""
        if self._live:
            return
        counted = f" ({total:,})" if total > 1 else ""
        self.say(f"{mark} {what}{counted}: {time.monotonic() - start:.1f} s")
