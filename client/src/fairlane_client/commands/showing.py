"""What the commands print of jobs: for programs JSON, one object a line; for people tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from ..client import Client
from ..models import JobPreview, JobView
from .calling import ended_with
from .exits import of_job
from .output import console, say

Timeout: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--timeout", min=0, metavar="SECONDS", help="Stop waiting after this time; the job goes on."
    ),
]


def show(job: JobView, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(job.as_json()))
    else:
        from . import tables

        console().print(tables.one(job))


def show_many(jobs: Sequence[JobView]) -> None:
    from . import tables

    out = console()
    out.print(tables.many(jobs, whole_ids=not out.is_terminal, width=out.width))


def show_preview(preview: JobPreview, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(preview.as_json()))
    else:
        from . import tables

        console().print(tables.preview(preview))


def follow(client: Client, job_id: str, timeout: float | None, *, as_json: bool) -> None:
    """Until the job has ended; raises Exit with the status that its end has."""
    job = (_as_json if as_json else _as_bar)(client, job_id, timeout)
    say(ending(job))
    ended_with(of_job(job))


def _as_json(client: Client, job_id: str, timeout: float | None) -> JobView:
    last: JobView | None = None
    for seen in client.watch(job_id, timeout=timeout):
        if seen != last:
            print(json.dumps(seen.as_json()), flush=True)
        last = seen
    assert last is not None
    return last


def _as_bar(client: Client, job_id: str, timeout: float | None) -> JobView:
    from .bar import Bar

    last: JobView | None = None
    with Bar() as bar:
        for seen in client.watch(job_id, timeout=timeout):
            bar.show(seen)
            last = seen
    assert last is not None
    return last


def ending(job: JobView) -> str:
    """The last line: failed, skipped and refused records apart."""
    why = f" ({job.end_reason})" if job.end_reason else ""
    counts = [f"{job.succeeded} of {'?' if job.total is None else job.total} records changed"]
    counts += [
        f"{count} {what}"
        for what, count in (
            ("failed", job.failed),
            ("skipped", job.skipped),
            ("refused outside", job.refused),
        )
        if count
    ]
    more = f"; `fairlane jobs items {job.id}` lists them" if len(counts) > 1 else ""
    return f"{job.state}{why}: {', '.join(counts)}{more}{_on_their_way(job)}"


def _on_their_way(job: JobView) -> str:
    """What sinks have still to hear of a job that has ended."""
    if job.effects is None or not (left := job.effects.open + job.effects.parked):
        return ""
    chunks = "1 chunk" if left == 1 else f"{left} chunks"
    parked = f" ({job.effects.parked} parked until a replay)" if job.effects.parked else ""
    return f"; the changes of {chunks} have not reached all sinks yet{parked}"
