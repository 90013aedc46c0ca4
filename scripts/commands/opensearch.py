"""``fairlane opensearch up|down|status``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from fairlane_client.commands.output import console
from scripts.local.errors import AlreadyUp
from scripts.local.steps import Steps
from scripts.opensearch.node import ADDRESS, OpenSearchNode, Way

app = typer.Typer(
    help="Start and stop a real OpenSearch node for the checks of queries.", no_args_is_help=True
)


@app.command()
def up(
    *,
    way: Annotated[
        Way, typer.Option("--with", help="auto: Docker when its daemon answers, else Java.")
    ] = Way.AUTO,
) -> None:
    """Start an empty node on loopback and wait until it serves."""
    try:
        with Steps() as steps:
            node = OpenSearchNode(way=way, steps=steps).up()
    except AlreadyUp as already:
        print(already)
        return
    if node.given:
        print(f"{ADDRESS} names a node, and it answers. Nothing was started.")
        return
    print(f"OpenSearch  {node.url}")
    print(f"log         {node.log}")
    print(f"\nexport {ADDRESS}={node.url}  # for the commands that shall use it")


@app.command()
def down() -> None:
    """Stop the node that ``up`` started and delete its data."""
    stopped = _ours().down()
    print("stopped" if stopped else "was not up")


@app.command()
def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show whether the node runs, how and where."""
    node = _ours()
    running = node.running()
    state = node.state
    if as_json:
        facts = {"up": running, "url": state.url, "how": state.how}
        pid = state.process.pid if state.process else None
        console().print_json(data={**facts, "pid": pid, "log": str(node.log)})
    elif running:
        print(f"up at {state.url} ({state.how}; log: {node.log})")
    else:
        print("not up. Start it with `fairlane opensearch up`.")


def _ours() -> OpenSearchNode:
    """The node of this checkout, whatever the environment names: often it names just that one."""
    return OpenSearchNode(environ={k: v for k, v in os.environ.items() if k != ADDRESS})
