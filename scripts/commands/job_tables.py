"""Jobs for people: one, many, and one as it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from handlers.jobs.states import State
from scripts.client import JobPreview, JobView

STYLES: Final = {State.SUCCEEDED: "green", State.FAILED: "red", State.CANCELLED: "yellow"}


def one(job: JobView) -> Table:
    """Every field that has a value, a line each."""
    table = Table(box=None, show_header=False)
    for name, value in job.as_json().items():
        table.add_row(name, _state(job) if name == "state" else Text(str(value)))
    return table


def preview(seen: JobPreview) -> Table:
    """Every field that has a value, a line each."""
    table = Table(box=None, show_header=False)
    for name, value in seen.model_dump(mode="json", exclude_none=True).items():
        table.add_row(name, Text(", ".join(value) if isinstance(value, list) else str(value)))
    return table


def many(jobs: Sequence[JobView]) -> Table:
    """A line for each job."""
    table = Table(
        "id", "operation", "subject", "lane", "state", "done", "failed", "created", box=None
    )
    for job in jobs:
        table.add_row(
            job.id,
            Text(job.operation),
            Text(job.subject),
            job.lane.value,
            _state(job),
            f"{job.done}/{'?' if job.total is None else job.total}",
            str(job.failed),
            f"{job.created_at:%H:%M:%S}",
        )
    return table


def _state(job: JobView) -> Text:
    return Text(job.state.value, style=STYLES.get(job.state, ""))


class Bar:
    """A job's progress, live, with the records a second; on standard error."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            _Rate(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("", total=None)

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
        why = job.waiting_reason or job.end_reason
        self._progress.update(
            self._task,
            description=f"{job.state.value:<9}" + (f" ({why})" if why else ""),
            total=job.total,
            completed=job.done,
            refresh=True,
        )


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")
