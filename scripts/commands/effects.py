"""``fairlane effects list|replay``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import typer

from handlers.jobs.lifecycle.replay_effects import (
    OpenEffect,
    open_effects_of_all,
    open_effects_of_job,
    replay_one,
)
from scripts.local import DEFAULT_NAME
from scripts.ops.deployment import Deployment, deployment
from scripts.ops.operator_log import noted

from .outbox import AsJson, Name, OfJob, Stack, asking, say_replayed, show, standing

app = typer.Typer(
    help="List and replay effects: changes that sinks have not heard of yet.", no_args_is_help=True
)

COLUMNS: Final = ("job", "position", "state", "sinks", "records", "tries", "error")


@app.command("list")
def list_(
    *, job: OfJob = None, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Show open and parked effects, each with its last error. Nothing changes."""
    here = deployment(stack, name)
    with asking("effects"):
        rows = [_row(undone) for undone in _undone(here, job)]
    show("effects", rows, COLUMNS, as_json=as_json)


@app.command()
def replay(
    *, job: OfJob = None, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Let recovery run parked effects again, with fresh tries."""
    here = deployment(stack, name)
    with asking("effects"), noted(here, "effects replay", job=job) as note:
        parked = [undone.effect for undone in _undone(here, job) if undone.effect.parked]
        replayed = sum(replay_one(here.world, effect) for effect in parked)
        note.outcome = f"{replayed} replayed"
    say_replayed("effects will run again", replayed, as_json=as_json)


def _undone(here: Deployment, job: str | None) -> Iterable[OpenEffect]:
    return open_effects_of_all(here.world) if job is None else open_effects_of_job(here.world, job)


def _row(undone: OpenEffect) -> dict[str, Any]:
    effect = undone.effect
    return {
        "job": effect.job_id,
        "position": effect.position,
        "tenant": effect.tenant,
        "operation": effect.operation,
        "sinks": {s: None if ids is None else len(ids) for s, ids in effect.todo.items()},
        "records": len(effect.versions),
        "tries": effect.tries,
        **standing(parked=effect.parked, since=undone.since),
        "error": undone.error,
    }
