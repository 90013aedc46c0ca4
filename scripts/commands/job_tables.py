"""Jobs for people: one, many, and one as it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
)
from rich.table import Column, Table
from rich.text import Text

from handlers.jobs.words.states import State
from scripts.client import JobPreview, JobView

ID_WIDTH: Final = 32
"""Characters of a job's id."""
SLOW: Final = 10
"""Records a second below which tenths matter."""
STYLES: Final = {State.SUCCEEDED: "green", State.FAILED: "red", State.CANCELLED: "yellow"}


def _text(value: object) -> Text:
    """A field's value, in words when it has several."""
    match value:
        case dict():
            return Text(", ".join(f"{name} {each}" for name, each in value.items()))
        case list():
            return Text(", ".join(map(str, value)))
        case _:
            return Text(str(value))


def one(job: JobView) -> Table:
    """Every field that has a value, a line each."""
    table = Table(box=None, show_header=False)
    for name, value in job.as_json().items():
        table.add_row(name, _state(job) if name == "state" else _text(value))
    return table


def preview(seen: JobPreview) -> Table:
    """Every field that has a value, a line each."""
    table = Table(box=None, show_header=False)
    for name, value in seen.model_dump(mode="json", exclude_none=True).items():
        table.add_row(name, _text(value))
    return table


def many(jobs: Sequence[JobView]) -> Table:
    """A line for each job, more where it is narrow: an id is whole, so that it can be copied."""
    table = Table(Column("id", no_wrap=True, min_width=ID_WIDTH), box=None)
    for name in ("operation", "subject", "lane", "state", "done", "failed", "skipped", "created"):
        table.add_column(name, overflow="fold")
    for job in jobs:
        table.add_row(
            job.id,
            Text(job.operation),
            Text(job.subject),
            job.lane.value,
            _state(job),
            f"{job.done}/{'?' if job.total is None else job.total}",
            str(job.failed),
            str(job.skipped),
            f"{job.created_at:%H:%M:%S}",
        )
    return table


def items(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A line for each record."""
    table = Table(box=None)
    table.add_column("outcome", no_wrap=True)
    table.add_column("id", overflow="fold")
    table.add_column("reason", overflow="fold")
    table.add_column("sink")
    for row in rows:
        sink = Text(row.get("sink", ""))
        table.add_row(row["outcome"], Text(row["id"]), Text(row["reason"]), sink)
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
            TextColumn("{task.fields[pace]}"),
            console=Console(stderr=True),
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
        why: str | None = job.waiting_reason or job.end_reason
        if job.queue_position is not None:
            why = f"{why}, {job.queue_position} in line"
        self._progress.update(
            self._task,
            description=f"{job.state.value:<9}" + (f" ({why})" if why else ""),
            pace=pace(job),
            total=job.total,
            completed=job.done,
            refresh=True,
        )


def pace(job: JobView) -> str:
    """Records a second so far and, while it runs, the time that is left if it goes on like that:
    what the API knows, also for who begins to watch late."""
    known = job.progress
    if known is None or known.per_second is None:
        return ""
    rate = f"{known.per_second:,.0f}/s" if known.per_second >= SLOW else f"{known.per_second:.1f}/s"
    if known.eta_seconds is None:
        return rate
    return f"{rate}  {timedelta(seconds=known.eta_seconds)} left"
