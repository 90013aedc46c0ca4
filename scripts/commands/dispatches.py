"""``fairlane dispatches list|replay``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import typer

from handlers.jobs.lifecycle.dispatch import (
    UnsentDispatch,
    replay_dispatch,
    unsent_of_all,
    unsent_of_job,
)
from scripts.local import DEFAULT_NAME
from scripts.ops.deployment import Deployment, deployment
from scripts.ops.operator_log import noted

from .outbox import AsJson, Name, OfJob, Stack, asking, say_replayed, show, standing

app = typer.Typer(
    help="List and replay dispatches: messages of jobs that are not in their queue yet.",
    no_args_is_help=True,
)

COLUMNS: Final = ("job", "number", "state", "lane", "tries", "error")


@app.command("list")
def list_(
    *, job: OfJob = None, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Show open and parked dispatches, each with its last error. Nothing changes."""
    here = deployment(stack, name)
    with asking("dispatches"):
        rows = [_row(unsent) for unsent in _unsent(here, job)]
    show("dispatches", rows, COLUMNS, as_json=as_json)


@app.command()
def replay(
    *, job: OfJob = None, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Let recovery send parked dispatches again, with fresh tries."""
    here = deployment(stack, name)
    with asking("dispatches"), noted(here, "dispatches replay", job=job) as note:
        parked = [unsent for unsent in _unsent(here, job) if unsent.parked]
        replayed = sum(replay_dispatch(here.world, unsent) for unsent in parked)
        note.outcome = f"{replayed} replayed"
    say_replayed("dispatches will be sent again", replayed, as_json=as_json)


def _unsent(here: Deployment, job: str | None) -> Iterable[UnsentDispatch]:
    return unsent_of_all(here.world) if job is None else unsent_of_job(here.world, job)


def _row(unsent: UnsentDispatch) -> dict[str, Any]:
    return {
        "job": unsent.job_id,
        "number": unsent.number,
        "tenant": unsent.tenant,
        "lane": unsent.lane,
        "tries": unsent.tries,
        **standing(parked=unsent.parked, since=unsent.since),
        "error": unsent.error,
    }
