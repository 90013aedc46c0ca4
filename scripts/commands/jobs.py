"""``fairlane jobs``: ``submit`` is in ``submitting``, ``items`` and ``report`` in ``results``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from scripts.client import Client, JobView
from scripts.local.state import DEFAULT_NAME

from . import job_tables
from .calling import AsJson, JobId, Name, Tenant, Token, Url, calling
from .results import items, report
from .showing import follow, show
from .submitting import submit

app = typer.Typer(help="Jobs of one tenant, through the API.", no_args_is_help=True)
app.command()(submit)
app.command()(items)
app.command()(report)


@app.command()
def get(
    job_id: JobId,
    *,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Show a job."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        show(client.get(job_id), as_json=as_json)


@app.command("list")
def list_jobs(
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """List the newest jobs."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        jobs = list(client.jobs(limit))
        if as_json:
            for job in jobs:
                print(json.dumps(job.as_json()))
        else:
            Console().print(job_tables.many(jobs))


@app.command()
def watch(
    job_id: JobId,
    *,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Follow a job until it has ended. Exit status 1 when it did not succeed."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        follow(client, job_id, as_json=as_json)


def _verb(act: Callable[[Client, str], JobView], what: str) -> None:
    """Register ``fairlane jobs <verb>``: these commands differ only in the call."""

    def command(
        job_id: JobId,
        *,
        url: Url = None,
        token: Token = None,
        tenant: Tenant = None,
        name: Name = DEFAULT_NAME,
        as_json: AsJson = False,
    ) -> None:
        with calling(url, token, tenant, name, as_json=as_json) as client:
            show(act(client, job_id), as_json=as_json)

    app.command(act.__name__, help=what)(command)


_verb(Client.cancel, "Cancel a job; a running one stops at its next chunk.")
_verb(Client.pause, "Pause a job; a running one stops at its next chunk.")
_verb(Client.resume, "Resume a paused job.")


@app.command()
def retry(
    job_id: JobId,
    *,
    failed_only: Annotated[
        bool,
        typer.Option(
            "--failed-only", help="Of an ended job: a new job over the records that failed."
        ),
    ] = False,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Run a failed job again, from where it stopped; or only its failed records."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        show(client.retry(job_id, failed_only=failed_only), as_json=as_json)
