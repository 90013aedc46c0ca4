"""``fairlane dlq list|redrive|set-aside|put-back``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, TypeAlias

import typer

from handlers.jobs.lifecycle.dead_letters import Fate, Letter, Redriven, redrive
from handlers.jobs.lifecycle.set_aside import NotKept, letters_aside, put_back, set_aside
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.job import Lane
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import Deployment, deployment
from scripts.ops.letters import letters_of, show_again
from scripts.ops.operator_log import noted

from .rows import print_rows

app = typer.Typer(
    help="List, redrive and set aside dead letters, each with the state of its job.",
    no_args_is_help=True,
)

ASIDE: Final = "set_aside"

Stack: TypeAlias = Annotated[
    str | None,
    typer.Option("--stack", help="The CloudFormation stack; a local stack when left out."),
]
Name: TypeAlias = Annotated[str, typer.Option("--name", help="The name of the local stack.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("list")
def list_(
    *,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Show the messages' bodies; --json always does.")
    ] = False,
    aside: Annotated[
        bool, typer.Option("--aside", help="Show the letters that were set aside instead.")
    ] = False,
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Show every dead letter with its message's id and the state of its job. Nothing changes."""
    here = deployment(stack, name)
    if aside:
        _show_aside(here, bodies=bodies, as_json=as_json)
        return
    letters = list(letters_of(here))
    show_again([(queue, letter) for _, queue, letter in letters])
    rows = [_row(lane, letter) for lane, _, letter in letters]
    if as_json:
        print(json.dumps({"dead_letters": rows}))
        return
    columns = ["lane", "message", "job", "state", "reason", "never_started", "tenant", "problem"]
    _table(rows, [*columns, *(["body"] if bodies else [])])


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
    with noted(here, "dlq redrive", job=job, force=force) as note:
        for lane, queue, letter in letters_of(here):
            if job is not None and (letter.pointer is None or letter.pointer.job_id != job):
                staying.append((queue, letter))
                continue
            try:
                redriven = redrive(here.world, queue, letter, force=force)
            except FairlaneError as error:
                # One letter that cannot be settled must not keep the others, nor hide what became
                # of those before it.
                redriven = Redriven(Fate.REFUSED, str(error))
            if redriven.fate is Fate.REFUSED:
                staying.append((queue, letter))
            rows.append({**_row(lane, letter), "fate": redriven.fate.value, "why": redriven.why})
        show_again(staying)
        note.outcome = _counted(rows)
    if as_json:
        print(json.dumps({"redriven": rows}))
    else:
        _table(rows, ["lane", "job", "state", "fate", "why"])
    raise typer.Exit(1 if any(row["fate"] == Fate.REFUSED.value for row in rows) else 0)


@app.command("set-aside")
def set_aside_(
    *,
    message: Annotated[
        str | None, typer.Option("--message", help="The letter with this message id.")
    ] = None,
    job: Annotated[str | None, typer.Option("--job", help="Every dead letter of this job.")] = None,
    why: Annotated[str, typer.Option("--why", help="A note for whoever finds it later.")] = "",
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Take dead letters out of the queue, so that its alarm falls silent, and keep them. Their jobs
    stay as they are. `dlq list --aside` shows them, `dlq put-back` undoes it. Exit status 1: a
    letter could not be kept, or there is none."""
    if (message is None) == (job is None):
        raise typer.BadParameter("name the letters: --message or --job, one of them")
    here = deployment(stack, name)
    rows, staying = [], []
    with noted(here, "dlq set-aside", message=message, job=job, why=why or None) as note:
        for lane, queue, letter in letters_of(here):
            if not _is_meant(letter, message, job):
                staying.append((queue, letter))
                continue
            row = {**_row(lane, letter), "fate": ASIDE, "why": why}
            try:
                set_aside(here.world, lane, queue, letter, why=why)
            except (FairlaneError, NotKept) as error:
                staying.append((queue, letter))
                row |= {"fate": Fate.REFUSED.value, "why": str(error)}
            rows.append(row)
        show_again(staying)
        note.outcome = _counted(rows)
    if as_json:
        print(json.dumps({"set_aside": rows}))
    else:
        _table(rows, ["lane", "message", "job", "state", "fate", "why"])
    raise typer.Exit(0 if rows and all(row["fate"] == ASIDE for row in rows) else 1)


@app.command("put-back")
def put_back_(
    *,
    message: Annotated[str, typer.Option("--message", help="The id it had in the queue.")],
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
) -> None:
    """Send a letter that was set aside to the dead-letter queue again, from where it can be
    redriven. It gets a new message id."""
    here = deployment(stack, name)
    try:
        found = [
            aside
            for lane in here.dead_letters
            for aside in letters_aside(here.world, lane)
            if aside.message_id == message
        ]
        if not found:
            raise LocalError(f"no letter with the message id {message!r} was set aside")
        with noted(here, "dlq put-back", message=message):
            for aside in found:
                put_back(here.world, here.dead_letters[aside.lane], aside)
    except (FairlaneError, NotKept) as error:
        raise LocalError(f"the letter cannot be put back: {error}") from error
    print("the letter is a dead letter again")


def _is_meant(letter: Letter, message: str | None, job: str | None) -> bool:
    if message is not None:
        return letter.delivery.message_id == message
    return letter.pointer is not None and letter.pointer.job_id == job


def _show_aside(here: Deployment, *, bodies: bool, as_json: bool) -> None:
    try:
        found = [aside for lane in here.dead_letters for aside in letters_aside(here.world, lane)]
    except FairlaneError as error:
        raise LocalError(f"the letters that were set aside cannot be read: {error}") from error
    rows = [
        {
            "lane": aside.lane.value,
            "message": aside.message_id,
            "job": aside.job_id,
            "since": datetime.fromtimestamp(aside.at / 1000, tz=UTC).isoformat(timespec="seconds"),
            "why": aside.why,
            "body": aside.body,
        }
        for aside in found
    ]
    if as_json:
        print(json.dumps({"set_aside": rows}))
        return
    _table(rows, ["lane", "message", "job", "since", "why", *(["body"] if bodies else [])])


def _counted(rows: Sequence[Mapping[str, str]]) -> str:
    counts = Counter(row["fate"] for row in rows)
    return ", ".join(f"{count} {fate}" for fate, count in counts.items()) or "no dead letters"


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
        "body": delivery.body,
    }


def _table(rows: list[dict[str, str]], columns: list[str]) -> None:
    if not rows:
        print("no dead letters")
        return
    print_rows(columns, rows)
