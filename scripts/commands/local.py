"""``fairlane local up|deploy|down|status``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from fairlane_client.commands.output import console
from scripts.local import DEFAULT_NAME
from scripts.local.errors import AlreadyUp, LocalError
from scripts.local.ministack import endpoint
from scripts.local.project import PROJECT, is_checkout
from scripts.local.stack import LocalStack
from scripts.local.state import ROOT, StackFolder, State, names
from scripts.local.steps import Steps

from .rows import print_rows

COLUMNS: Final = ("name", "state", "bulk workers", "API")

app = typer.Typer(
    help="Start, update and stop local stacks: a local AWS with the deployed app.",
    no_args_is_help=True,
)

Name: TypeAlias = Annotated[
    str, typer.Option("--name", help="The name of the stack; several can run.")
]
Settings: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="A JSON file of settings that override those of scripts/local/settings.py."),
]


@app.command()
def up(
    *,
    name: Name = DEFAULT_NAME,
    workers: Annotated[int, typer.Option(min=0, max=16, help="Bulk workers to start.")] = 1,
    records: Annotated[
        Path | None,
        typer.Option(help="A file of records to load, one JSON object a line."),
    ] = None,
    empty: Annotated[
        bool, typer.Option("--empty", "--no-records", help="Load no records.")
    ] = False,
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Run a search index (osmem-server).")
    ] = True,
    iam: Annotated[
        bool,
        typer.Option("--iam", help="Refuse functions and workers what their roles do not allow."),
    ] = False,
    settings: Settings = None,
) -> None:
    """Start a local stack: local AWS, the deployed app of this folder's cdk.json, bulk workers.

    A checkout of Fairlane has about 28,000 records, another app those of --records. If the stack
    is up, start those of its processes again that have ended."""
    if records and empty:
        raise typer.BadParameter("--records and --empty exclude each other")
    out = console()
    with Steps() as steps:
        stack = LocalStack(
            name,
            workers=workers,
            records=records or (is_checkout(PROJECT) and not empty),
            search=search,
            settings=_read(settings),
            supervised=True,
            iam=iam,
            steps=steps,
        )
        stack.with_cdk_json = True
        try:
            stack.up()
        except AlreadyUp as already:
            said = stack.heal() or [str(already)]
        else:
            said = _addresses(stack)
    for line in said:
        out.print(line, soft_wrap=True, highlight=False)


@app.command()
def deploy(*, name: Name = DEFAULT_NAME, settings: Settings = None) -> None:
    """Update a running stack to the code and settings of this folder; data and address stay."""
    with Steps() as steps:
        stack = LocalStack(name, settings=_read(settings), steps=steps)
        stack.with_cdk_json = True
        changed = stack.deploy()
    said = "the app is deployed" if changed else "the app has not changed"
    workers = stack.state.wanted
    again = f"{workers} bulk worker{'' if workers == 1 else 's'} started again"
    print(f"{name}: {said}; {again}\n{stack.api.url}")


@app.command()
def down(
    *,
    name: Name = DEFAULT_NAME,
    every: Annotated[bool, typer.Option("--all", help="Stop all stacks of this folder.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Write the records to a file first, and keep the logs.")
    ] = False,
) -> None:
    """Stop the processes that ``up`` started and delete the stack's data."""
    out = console()
    for each in names() if every else [name]:
        held = _held(each, logs=not keep)
        file = ROOT / f"{each}.records.jsonl"
        stopped = LocalStack(each).down(keep=file if keep else None)
        if not stopped and not held:
            print(f"{each}: was not up")
            continue
        said = f"{each}: stopped {stopped} processes; deleted {held or 'what was left'}"
        out.print(said, highlight=False, markup=False)
        if keep:
            print(f"The records are kept. Load them again:\nfairlane local up --records {file}")


@app.command()
def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the local stacks and what runs of each."""
    states = {name: StackFolder(name).read() for name in names()}
    out = console()
    if as_json:
        out.print_json(data={name: _facts(state) for name, state in states.items()})
    elif not states:
        out.print("No local stack. Start one with `fairlane local up`.")
    else:
        print_rows(COLUMNS, [_row(name, state) for name, state in states.items()])


def _read(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LocalError(f"--settings: {file} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise LocalError(f"--settings: {file} must hold one JSON object")
    return found


def _addresses(stack: LocalStack) -> list[str]:
    search = [f"search   {stack.state.search_url}"] if stack.state.search_url else []
    return [
        f"API      {stack.api.url}",
        f"AWS      {stack.endpoint}",
        *search,
        f"logs     {stack.folder.path}",
    ]


def _held(name: str, *, logs: bool) -> str:
    """What a stack that is up holds, in words."""
    if not StackFolder(name).read().up:
        return ""
    counts = LocalStack(name).attach().holdings()
    held = ", ".join(
        f"{count:,} {what.removesuffix('s') if count == 1 else what}"
        for what, count in counts.items()
    )
    rest = ", the tokens' key and the logs" if logs else " and the tokens' key"
    return f"{held}, the search index{rest}"


def _facts(state: State) -> dict[str, object]:
    return {
        "up": state.up,
        "api": state.api_url,
        "aws": endpoint(state.port),
        "database": endpoint(state.database_port),
        "pid": state.aws.pid if state.aws and state.aws.alive() else None,
        "workers": [worker.pid for worker in state.workers if worker.alive()],
        "workers_wanted": state.wanted,
        "supervisor": bool(state.supervisor and state.supervisor.alive()),
        "search": bool(state.search and state.search.alive()),
    }


def _row(name: str, state: State) -> dict[str, str]:
    running = sum(worker.alive() for worker in state.workers)
    cells = (name, _state(state), f"{running} of {state.wanted}", state.api_url)
    return dict(zip(COLUMNS, cells, strict=True))


def _state(state: State) -> str:
    """Up, or what of it is not."""
    parts = {"search": state.search, "supervisor": state.supervisor}
    dead = [what for what, process in parts.items() if process and not process.alive()]
    if not state.up:
        return "not up"
    return f"up, but {' and '.join(dead)}" + " ended" if dead else "up"
