"""``fairlane local up|down|status``."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer
from rich.table import Table

from fairlane_client.commands.output import console
from scripts.local import DEFAULT_NAME
from scripts.local.errors import AlreadyUp
from scripts.local.ministack import endpoint
from scripts.local.stack import LocalStack
from scripts.local.state import StackFolder, State, names
from scripts.local.steps import Steps

app = typer.Typer(help="The local stack: a local AWS with the deployed app.", no_args_is_help=True)

Name: TypeAlias = Annotated[str, typer.Option("--name", help="Which stack; several can run.")]


@app.command()
def up(
    *,
    name: Name = DEFAULT_NAME,
    workers: Annotated[int, typer.Option(min=0, max=16, help="Bulk workers to start.")] = 1,
    records: Annotated[
        bool, typer.Option("--records/--no-records", help="Load the airports as records.")
    ] = True,
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Have a search index (osmem-server).")
    ] = True,
) -> None:
    """Start the local stack: local AWS, deployed app, bulk workers, about 28,000 records."""
    out = console()
    try:
        with Steps() as steps:
            stack = LocalStack(
                name, workers=workers, records=records, search=search, steps=steps
            ).up()
    except AlreadyUp as already:
        out.print(str(already), soft_wrap=True, highlight=False)
        return
    out.print(f"API      {stack.api.url}", soft_wrap=True, highlight=False)
    out.print(f"AWS      {stack.endpoint}", soft_wrap=True, highlight=False)
    if stack.state.search_url:
        out.print(f"search   {stack.state.search_url}", soft_wrap=True, highlight=False)
    out.print(f"logs     {stack.folder.path}", soft_wrap=True, highlight=False)


@app.command()
def down(
    *,
    name: Name = DEFAULT_NAME,
    every: Annotated[bool, typer.Option("--all", help="All stacks of this checkout.")] = False,
) -> None:
    """Stop what ``up`` started, and nothing else."""
    for each in names() if every else [name]:
        stopped = LocalStack(each).down()
        print(f"{each}: " + (f"stopped {stopped} processes" if stopped else "was not up"))


@app.command()
def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Say which stacks there are and what of them runs."""
    states = {name: StackFolder(name).read() for name in names()}
    out = console()
    if as_json:
        out.print_json(data={name: _facts(state) for name, state in states.items()})
    elif not states:
        out.print("No local stack. Start one with `fairlane local up`.")
    else:
        out.print(_table(states))


def _facts(state: State) -> dict[str, object]:
    return {
        "up": state.up,
        "api": state.api_url,
        "aws": endpoint(state.port),
        "pid": state.aws.pid if state.aws and state.aws.alive() else None,
        "workers": [worker.pid for worker in state.workers if worker.alive()],
    }


def _table(states: dict[str, State]) -> Table:
    table = Table("name", "state", "bulk workers", "API", box=None)
    for name, state in states.items():
        running = sum(worker.alive() for worker in state.workers)
        table.add_row(name, "up" if state.up else "not up", str(running), state.api_url)
    return table
