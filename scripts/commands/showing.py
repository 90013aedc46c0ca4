"""What the commands print of jobs: for programs JSON, one object a line; for people tables."""

from __future__ import annotations

import json

import typer
from rich.console import Console

from handlers.jobs.words.states import State
from scripts.client import Client, JobPreview, JobView

from . import job_tables


def say(text: str) -> None:
    """Beside what is printed: on standard error."""
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


def show(job: JobView, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(job.as_json()))
    else:
        Console().print(job_tables.one(job))


def show_preview(preview: JobPreview, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(preview.model_dump(mode="json")))
    else:
        Console().print(job_tables.preview(preview))


def follow(client: Client, job_id: str, *, as_json: bool) -> None:
    """Until the job has ended; raises Exit with status 1 when it did not succeed."""
    job: JobView | None = None
    if as_json:
        for seen in client.watch(job_id):
            if seen != job:
                print(json.dumps(seen.as_json()), flush=True)
            job = seen
    else:
        with job_tables.Bar() as bar:
            for seen in client.watch(job_id):
                bar.show(seen)
                job = seen
    if job is None or job.state is not State.SUCCEEDED:
        raise typer.Exit(1)
