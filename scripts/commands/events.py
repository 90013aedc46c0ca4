"""``fairlane events list|replay|key``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

import typer
from botocore.exceptions import BotoCoreError, ClientError

from handlers.bootstrap import secret_reader
from handlers.effects.secret import tenant_key
from handlers.jobs.events.delivery import (
    UndeliveredEvent,
    replay_event,
    undelivered_of_all,
    undelivered_of_job,
)
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import Deployment, deployment
from scripts.ops.operator_log import noted

from .outbox import AsJson, Name, OfJob, Stack, asking, say_replayed, show, standing
from .tenant_option import tenant_text

app = typer.Typer(
    help="List and replay events of jobs that no listener has taken yet; show a tenant's key.",
    no_args_is_help=True,
)

COLUMNS: Final = ("job", "event", "state", "listener", "to", "tries", "error")


@app.command("list")
def list_(
    *, job: OfJob = None, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Show open and parked events, each with its last error. Nothing changes."""
    here = deployment(stack, name)
    with asking("events"):
        rows = [_row(untold) for untold in _untold(here, job)]
    show("events", rows, COLUMNS, as_json=as_json)


@app.command()
def replay(
    *, job: OfJob = None, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Let recovery send parked events again, with fresh tries."""
    here = deployment(stack, name)
    with asking("events"), noted(here, "events replay", job=job) as note:
        parked = [untold.event for untold in _untold(here, job) if untold.parked]
        replayed = sum(replay_event(here.world, event) for event in parked)
        note.outcome = f"{replayed} replayed"
    say_replayed("events will be sent again", replayed, as_json=as_json)


@app.command()
def key(
    tenant: Annotated[
        str,
        typer.Option("--tenant", callback=tenant_text, help="The tenant that receives the events."),
    ],
    *,
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Print the key that signs the events sent to a tenant's addresses. Hand it to that tenant."""
    effects = deployment(stack, name).settings.effects
    if not effects.notify:
        raise LocalError("this deployment sends no events to addresses: set effects.notify")
    try:
        secret = secret_reader(effects)()
    except (BotoCoreError, ClientError) as error:
        raise LocalError(f"the secret cannot be read: {error}") from error
    print(tenant_key(secret.encode(), tenant).decode())


def _untold(here: Deployment, job: str | None) -> Iterable[UndeliveredEvent]:
    return undelivered_of_all(here.world) if job is None else undelivered_of_job(here.world, job)


def _row(untold: UndeliveredEvent) -> dict[str, Any]:
    event = untold.event
    return {
        "job": event.job_id,
        "event": event.what.value,
        "sequence": event.fence,
        "tenant": event.tenant,
        "listener": event.listener,
        **({} if event.to is None else {"to": event.to}),
        "tries": event.tries,
        **standing(parked=untold.parked, since=untold.since),
        "error": untold.error,
    }
