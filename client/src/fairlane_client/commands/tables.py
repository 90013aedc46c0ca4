"""Jobs for people: one, and many. A table fits 80 columns; in a pipe a line is never broken."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from rich.table import Column, Table
from rich.text import Text

from ..models import JobPreview, JobView, WaitView
from ..words import State
from . import ids

SLOW: Final = 10
"""Records a second below which tenths matter."""
STYLES: Final[Mapping[str, str]] = {
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELLED: "yellow",
}


def _text(value: object) -> Text:
    """A field's value, in words when it has several; what stands deeper is JSON, as it is sent."""
    match value:
        case dict():
            return Text(", ".join(f"{name} {_plain(each)}" for name, each in value.items()))
        case list():
            return Text("; ".join(_text(each).plain for each in value))
        case _:
            return Text(str(value))


def _plain(value: object) -> str:
    match value:
        case bool() | dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def one(job: JobView) -> Table:
    """Every field that has a value, a line each."""
    table = Table(box=None, show_header=False)
    for name, value in job.as_json().items():
        table.add_row(name, _state(job) if name == "state" else _text(value))
    return table


def preview(seen: JobPreview) -> Table:
    """Every field that has a value, a line each."""
    table = Table(box=None, show_header=False)
    for name, value in seen.as_json().items():
        table.add_row(name, _text(value))
    return table


WIDE: Final = 100
"""Columns from which a list has room for everything."""


def many(jobs: Sequence[JobView], *, whole_ids: bool, width: int) -> Table:
    """A line for each job; long names go on in the next. Ids are cut to what tells them apart, or
    whole. width: of the console; a narrow one has no room for the lane."""
    shown = [job.id for job in jobs] if whole_ids else ids.short(job.id for job in jobs)
    wide = width >= WIDE
    table = Table(
        Column("id", no_wrap=True, min_width=max(map(len, shown), default=0)),
        Column("operation", overflow="fold"),
        Column("subject", overflow="fold"),
        *([Column("lane", no_wrap=True)] if wide else []),
        Column("state", no_wrap=True),
        Column("done", justify="right", no_wrap=True),
        Column("failed", justify="right", no_wrap=True),
        Column("skipped", justify="right", no_wrap=True),
        Column("created", no_wrap=True),
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for job, id_ in zip(jobs, shown, strict=True):
        table.add_row(
            id_,
            Text(job.operation),
            Text(job.subject),
            *([job.lane] if wide else []),
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
    return Text(job.state, style=STYLES.get(job.state, ""))


def waits(wait: WaitView) -> str:
    """Why a job waits, how many are before it and how long it should take, in a few words."""
    parts = [str(wait.reason).replace("_", " ")]
    if wait.ahead is not None:
        parts.append(f"{wait.ahead} ahead")
    parts += [
        each.sink if each.last_answer is None else f"{each.sink}: {each.last_answer}"
        for each in wait.sinks or ()
    ]
    if wait.expected_start is not None:
        left = wait.expected_start - datetime.now(UTC)
        if left > timedelta(seconds=1):
            parts.append(f"about {timedelta(seconds=round(left.total_seconds()))}")
    return ", ".join(parts)


def pace(job: JobView) -> str:
    """Records a second so far and, while it runs, the time that is left if it goes on like that:
    what the API knows, also for a watch that begins late."""
    known = job.progress
    if known is None or known.per_second is None:
        return ""
    rate = f"{known.per_second:,.0f}/s" if known.per_second >= SLOW else f"{known.per_second:.1f}/s"
    if known.eta_seconds is None:
        return rate
    return f"{rate}  {timedelta(seconds=known.eta_seconds)} left"
