"""The ``fairlane`` command: the client's own commands, and those that are installed beside it."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from .. import __version__
from .lazy import STYLE, Command, Commands, points

OWN: Final = (
    Command(
        "jobs",
        "fairlane_client.commands.jobs:app",
        "Create, list and control a tenant's jobs through the API.",
    ),
    Command(
        "lanes",
        "fairlane_client.commands.lanes:lanes",
        "Show the lanes until Ctrl-C: the messages of all tenants and the tenant's own jobs.",
    ),
)


class Fairlane(Commands):
    own = OWN


app = typer.Typer(
    cls=Fairlane,
    help="Bulk jobs with lanes: submit them, watch them, and operate what runs them.",
    no_args_is_help=True,
    **{**STYLE, "add_completion": True},
)


def _version(asked: bool) -> None:  # noqa: FBT001  typer's own signature
    if not asked:
        return
    print(f"fairlane-client {__version__}")
    for point in points():
        if point.dist is not None:
            print(f"{point.dist.name} {point.dist.version}")
    raise typer.Exit


@app.callback()
def fairlane(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print versions.")
    ] = False,
) -> None:
    """Options of the command itself."""
