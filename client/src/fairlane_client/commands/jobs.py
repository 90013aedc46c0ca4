"""``fairlane jobs``: ``submit`` is in ``submitting``, ``items`` and ``report`` in ``results``."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer

from ..client import Client
from ..models import JobView
from ..words import State
from . import ids
from .calling import AsJson, JobId, Name, Tenant, Token, Url, calling
from .pairs import labels
from .results import items, report
from .showing import Timeout, follow, show, show_many
from .submitting import submit

app = typer.Typer(
    help="Create, list and control a tenant's jobs through the API.", no_args_is_help=True
)
app.command()(submit)
app.command()(items)
app.command()(report)


def _moment(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        example = "2026-01-31, 2026-01-31T09:30 or 2026-01-31T09:30:00+01:00"
        raise typer.BadParameter(f"{option} {text!r} is no time such as {example}") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@app.command()
def get(
    job_id: JobId,
    *,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Show a job."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        show(client.get(ids.whole(client, job_id)), as_json=as_json)


@app.command("list")
def list_jobs(  # noqa: PLR0913  the options of a command are its parameters
    *,
    limit: Annotated[
        int, typer.Option(min=1, help="The largest number of jobs, newest first.")
    ] = 20,
    state: Annotated[
        list[State] | None,
        typer.Option(
            metavar="STATE",  # all of them are too wide for a terminal
            help=f"List jobs in this state: {', '.join(State)}. Repeat it for several states.",
        ),
    ] = None,
    operation: Annotated[str | None, typer.Option(help="List jobs with this operation.")] = None,
    subject: Annotated[str | None, typer.Option(help="List jobs with this subject.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=VALUE",
            help="List jobs with this label; repeat it for jobs that have all of several.",
        ),
    ] = None,
    created_after: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="List jobs created at this time or later; UTC by default."
        ),
    ] = None,
    created_before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="List jobs created before this time; UTC by default."),
    ] = None,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """List the newest jobs. A terminal shows the first characters of each id, which the other
    commands accept."""
    after = _moment("--created-after", created_after)
    before = _moment("--created-before", created_before)
    with calling(url, token, tenant, name, as_json=as_json) as client:
        jobs = client.jobs(
            limit,
            state=state or (),
            operation=operation,
            subject=subject,
            label=labels(label or []),
            created_after=after,
            created_before=before,
        )
        if as_json:
            for job in jobs:
                print(json.dumps(job.as_json()))
        else:
            show_many(list(jobs))


@app.command()
def watch(
    job_id: JobId,
    *,
    timeout: Timeout = None,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Follow a job until it has ended. Exit status 0: it succeeded; 3: it succeeded, but records
    failed; 4: it failed; 5: it was cancelled; 8: the time-out came first."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        follow(client, ids.whole(client, job_id), timeout, as_json=as_json)


def _verb(act: Callable[[Client, str], JobView], what: str) -> None:
    """Register ``fairlane jobs <verb>``: these commands differ only in the call."""

    def command(
        job_id: JobId,
        *,
        url: Url = None,
        token: Token = None,
        tenant: Tenant = None,
        name: Name = None,
        as_json: AsJson = False,
    ) -> None:
        with calling(url, token, tenant, name, as_json=as_json) as client:
            show(act(client, ids.whole(client, job_id)), as_json=as_json)

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
        typer.Option("--failed-only", help="Create a job over the records that failed."),
    ] = False,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Resume a failed job from its checkpoint, or try only its failed records again."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        found = client.retry(ids.whole(client, job_id), failed_only=failed_only)
        show(found, as_json=as_json)
