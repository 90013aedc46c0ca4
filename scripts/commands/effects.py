"""``fairlane effects list|replay``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.console import Console
from rich.table import Table

from handlers.jobs.errors import FairlaneError
from handlers.jobs.replay import Undone, of_all, of_job, unpark
from scripts.local.errors import LocalError
from scripts.local.state import DEFAULT_NAME
from scripts.ops.deployment import Deployment, deployment

app = typer.Typer(
    help="What must still happen outside because chunks committed.", no_args_is_help=True
)

SHOWN: Final = 100
"""Rows of the table; --json has them all."""

Stack: TypeAlias = Annotated[
    str | None, typer.Option("--stack", help="A CloudFormation stack; the local one if left out.")
]
Name: TypeAlias = Annotated[str, typer.Option("--name", help="Which local stack.")]
OfJob: TypeAlias = Annotated[str | None, typer.Option("--job", help="Only this job's.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="As one JSON object.")]


@app.command("list")
def list_(
    *, job: OfJob = None, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Show open and parked effects, with what went wrong last; changes nothing."""
    with _asking():
        rows = [_row(undone) for undone in _undone(deployment(stack, name), job)]
    counts = Counter(str(row["state"]) for row in rows)
    if as_json:
        print(json.dumps({"open": counts["open"], "parked": counts["parked"], "effects": rows}))
        return
    print(f"{counts['parked']} parked, {counts['open']} open")
    _table(rows[:SHOWN])
    if len(rows) > SHOWN:
        print(f"and {len(rows) - SHOWN} more; --json shows all")


@app.command()
def replay(
    *, job: OfJob = None, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Let recovery run parked effects again, from their first try."""
    here = deployment(stack, name)
    with _asking():
        parked = [undone.effect for undone in _undone(here, job) if undone.effect.parked]
        replayed = sum(unpark(here.world, effect) for effect in parked)
    if as_json:
        print(json.dumps({"replayed": replayed}))
    else:
        print(f"{replayed} effects will run again within about a minute")


def _undone(here: Deployment, job: str | None) -> Iterable[Undone]:
    return of_all(here.world) if job is None else of_job(here.world, job)


@contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except FairlaneError as error:
        raise LocalError(f"the effects cannot be read: {error}") from error


def _row(undone: Undone) -> dict[str, Any]:
    effect = undone.effect
    return {
        "job": effect.job_id,
        "position": effect.position,
        "tenant": effect.tenant,
        "operation": effect.operation,
        "state": "parked" if effect.parked else "open",
        "sinks": {s: None if ids is None else len(ids) for s, ids in effect.todo.items()},
        "records": len(effect.versions),
        "tries": effect.tries,
        "since" if effect.parked else "next": _time(undone.since),
        "error": undone.error,
    }


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, tz=UTC).isoformat(timespec="seconds")


def _table(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    table = Table("job", "position", "state", "sinks", "records", "tries", "error")
    for row in rows:
        sinks = ", ".join(row["sinks"])
        plain = [str(row[name]) for name in ("records", "tries", "error")]
        table.add_row(row["job"], str(row["position"]), row["state"], sinks, *plain)
    Console().print(table)
