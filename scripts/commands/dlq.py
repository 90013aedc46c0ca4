"""``fairlane dlq list|redrive``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Final, TypeAlias

import typer
from rich.table import Table

from fairlane_client.commands.output import console
from handlers.jobs.lifecycle.dead_letters import Fate, Letter, Redriven, read_letter, redrive
from handlers.jobs.words.errors import FairlaneError, ReceiptExpired
from handlers.jobs.words.job import Lane
from handlers.jobs.words.ports import LaneQueue
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import Deployment, deployment

app = typer.Typer(
    help="List and redrive dead letters, each with the state of its job.", no_args_is_help=True
)

LOOKING: Final = 60
"""Seconds a dead letter is hidden from others while this command has it."""
MOST: Final = 10_000

Stack: TypeAlias = Annotated[
    str | None,
    typer.Option("--stack", help="The CloudFormation stack; a local stack when left out."),
]
Name: TypeAlias = Annotated[str, typer.Option("--name", help="The name of the local stack.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("list")
def list_(*, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Show every dead letter with the state of its job. Nothing changes."""
    here = deployment(stack, name)
    letters = list(_letters(here))
    _put_back([(queue, letter) for _, queue, letter in letters])
    rows = [_row(lane, letter) for lane, _, letter in letters]
    if as_json:
        print(json.dumps({"dead_letters": rows}))
        return
    _table(rows, ["lane", "job", "state", "reason", "never_started", "tenant", "problem"])


@app.command("redrive")
def redrive_(
    *,
    job: Annotated[
        str | None, typer.Option("--job", help="Redrive only the dead letters of this job.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Run also jobs again that would fail again.")
    ] = False,
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Redrive dead letters: a failed job runs again, an unfinished job gets its message back, and
    the letter of a finished job is deleted. A job that would fail again for the same reason, such
    as a bad upload, is refused unless forced. A refused letter stays and its reason is shown; the
    exit status is then 1."""
    here = deployment(stack, name)
    rows = []
    staying = []
    for lane, queue, letter in _letters(here):
        if job is not None and (letter.pointer is None or letter.pointer.job_id != job):
            staying.append((queue, letter))
            continue
        try:
            redriven = redrive(here.world, queue, letter, force=force)
        except FairlaneError as error:
            # One letter that cannot be settled must not keep the others, nor hide what became of
            # those before it.
            redriven = Redriven(Fate.REFUSED, str(error))
        if redriven.fate is Fate.REFUSED:
            staying.append((queue, letter))
        rows.append({**_row(lane, letter), "fate": redriven.fate.value, "why": redriven.why})
    _put_back(staying)
    if as_json:
        print(json.dumps({"redriven": rows}))
    else:
        _table(rows, ["lane", "job", "state", "fate", "why"])
    raise typer.Exit(1 if any(row["fate"] == Fate.REFUSED.value for row in rows) else 0)


def _letters(here: Deployment) -> Iterator[tuple[Lane, LaneQueue, Letter]]:
    """Every dead letter once; each stays hidden from this loop until it is settled or shown."""
    for lane, queue in here.dead_letters.items():
        seen: set[str] = set()
        while len(seen) < MOST:
            deliveries = [d for d in queue.receive(10, 1) if d.message_id not in seen]
            if not deliveries:
                break
            for delivery in deliveries:
                seen.add(delivery.message_id)
                try:
                    queue.set_visibility(delivery.receipt, LOOKING)
                    yield lane, queue, read_letter(here.world, delivery)
                except FairlaneError as error:
                    raise LocalError(f"dead letter {delivery.message_id}: {error}") from error


def _put_back(letters: Sequence[tuple[LaneQueue, Letter]]) -> None:
    """Visible again at once: only now, or the loop would receive them over and over."""
    for queue, letter in letters:
        with suppress(ReceiptExpired):  # it is visible already: there are very many
            queue.set_visibility(letter.delivery.receipt, 0)


def _row(lane: Lane, letter: Letter) -> dict[str, str]:
    job, delivery = letter.job, letter.delivery
    return {
        "lane": lane.value,
        "message": delivery.message_id,
        "job": letter.pointer.job_id if letter.pointer else "",
        "tenant": job.tenant if job else "",
        "state": job.state.value if job else "",
        "reason": (job.end_reason.value if job and job.end_reason else ""),
        "never_started": "yes" if letter.never_started else "",
        "problem": letter.problem,
    }


def _table(rows: list[dict[str, str]], columns: list[str]) -> None:
    if not rows:
        print("no dead letters")
        return
    table = Table(*columns)
    for row in rows:
        table.add_row(*(row[column] for column in columns))
    console().print(table)
