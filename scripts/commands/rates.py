"""``fairlane rates show|set``: how fast bulk work may change records."""

from __future__ import annotations

import json
from typing import Annotated, TypeAlias

import typer

from handlers.jobs.storage.rates import lane_limits, set_lane_limit
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.ports import World
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import deployment
from scripts.ops.operator_log import noted

from .rate_options import RecordsPerSecond, UnitsPerSecond, print_rates, rates_of
from .tenants import AsJson, Name, Stack

app = typer.Typer(
    help="Show and set how fast the bulk lane may change records.", no_args_is_help=True
)

Operation: TypeAlias = Annotated[
    str | None,
    typer.Option("--operation", help="Of this operation alone; of the whole lane when left out."),
]


@app.command()
def show(
    *,
    operation: Operation = None,
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Show the limits of the bulk lane, or of an operation in it."""
    world = deployment(stack, name).world
    _check(world, operation)
    try:
        _print(world, operation, as_json=as_json)
    except FairlaneError as error:
        raise LocalError(f"the limits cannot be read: {error}") from error


@app.command("set")
def set_(
    *,
    operation: Operation = None,
    records_per_second: RecordsPerSecond = None,
    write_units_per_second: UnitsPerSecond = None,
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Limit the bulk lane, or an operation in it. Running jobs follow within seconds."""
    rates = rates_of(records_per_second, write_units_per_second)
    if not rates:
        raise typer.BadParameter(
            "nothing to set: name --records-per-second or --write-units-per-second"
        )
    here = deployment(stack, name)
    world = here.world
    _check(world, operation)
    try:
        with noted(
            here,
            "rates set",
            operation=operation,
            records_per_second=records_per_second,
            write_units_per_second=write_units_per_second,
        ):
            for unit, rate in rates.items():
                set_lane_limit(world, unit, rate, operation)
        _print(world, operation, as_json=as_json)
    except FairlaneError as error:
        raise LocalError(f"some of the limits could not be set: {error}") from error


def _check(world: World, operation: str | None) -> None:
    if operation is not None and operation not in world.operations:
        known = ", ".join(sorted(world.operations))
        raise typer.BadParameter(f"--operation {operation!r}: there are: {known}")


def _print(world: World, operation: str | None, *, as_json: bool) -> None:
    rates = {unit.value: rate for unit, rate in lane_limits(world, operation).items()}
    if as_json:
        print(json.dumps({"lane": "bulk", "operation": operation, "rates": rates}))
    elif rates:
        print_rates(rates)
    else:
        print("there is no limit")
