"""The options by which operators set rate limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

import typer

from fairlane_client.commands.output import console
from handlers.jobs.words.rates import MAX_RATE, Unit

NONE: Final = "none"
OR_NONE: Final = f"a second, all workers together, or '{NONE}' for no limit."

RecordsPerSecond: TypeAlias = Annotated[
    str | None,
    typer.Option("--records-per-second", help=f"Records that bulk jobs change {OR_NONE}"),
]
UnitsPerSecond: TypeAlias = Annotated[
    str | None,
    typer.Option("--write-units-per-second", help=f"Write units that bulk jobs use {OR_NONE}"),
]


def rates_of(records: str | None, units: str | None) -> Mapping[Unit, int | None]:
    """What was named on the command line; None: no limit from now on."""
    named = {Unit.RECORDS: records, Unit.WRITE_UNITS: units}
    return {unit: _rate(unit, text) for unit, text in named.items() if text is not None}


def _rate(unit: Unit, text: str) -> int | None:
    if text == NONE:
        return None
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MAX_RATE:
        option = f"--{unit.value.replace('_', '-')}-per-second"
        raise typer.BadParameter(
            f"{option} {text!r} is not a number from 1 to {MAX_RATE}, or '{NONE}'"
        )
    return int(text)


def print_rates(rates: Mapping[str, int]) -> None:
    """One line for each limit."""
    for unit, rate in rates.items():
        console().print(f"at most {rate} {unit.replace('_', ' ')} a second in the bulk lane")
