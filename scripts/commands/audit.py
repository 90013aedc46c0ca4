"""``fairlane audit``."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from handlers.jobs.storage.operator_log import Entry, entries
from handlers.jobs.words.errors import FairlaneError
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import deployment

from .rows import print_rows
from .tenants import AsJson, Name, Stack

COLUMNS: Final = ("when", "who", "command", "outcome")


def audit(
    *,
    days: Annotated[int, typer.Option(min=1, max=400, help="How many days to look back.")] = 7,
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Show who ran which command that changes the deployment.

    Nothing changes. A command without an outcome did not come to its end."""
    world = deployment(stack, name).world
    try:
        found = list(entries(world, days))
    except FairlaneError as error:
        raise LocalError(f"the commands of operators cannot be read: {error}") from error
    if as_json:
        print(json.dumps({"commands": [asdict(entry) for entry in found]}))
    elif not found:
        print("no command has changed anything")
    else:
        print_rows(COLUMNS, [dict(zip(COLUMNS, _cells(entry), strict=True)) for entry in found])


def _cells(entry: Entry) -> tuple[str, ...]:
    when = datetime.fromtimestamp(entry.at / 1000, tz=UTC).isoformat(timespec="seconds")
    given = " ".join(f"{name}={value}" for name, value in entry.arguments.items())
    return when, entry.who, f"{entry.command} {given}".strip(), entry.outcome or "not known"
