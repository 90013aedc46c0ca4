"""Progress bars, live, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TransferSpeedColumn,
)

from ..models import JobView
from .output import console
from .tables import pace, waits


class Bar:
    """A job's progress, with the records a second."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[pace]}"),
            console=console(stderr=True),
        )
        self._task = self._progress.add_task("", total=None, pace="")

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

    def show(self, job: JobView) -> None:
        why = job.end_reason if job.waiting is None else waits(job.waiting)
        self._progress.update(
            self._task,
            description=f"{job.state:<9}" + (f" ({why})" if why else ""),
            pace=pace(job),
            total=job.total,
            completed=job.done,
            refresh=True,
        )


@contextmanager
def bytes_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Of a file on its way; the callable is told of the bytes of each piece."""
    columns = (TextColumn(what), BarColumn(bar_width=30), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.advance(task, size)
