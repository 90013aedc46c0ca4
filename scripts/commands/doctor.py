"""``fairlane doctor``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.table import Table
from rich.text import Text

from fairlane_client.commands.output import console
from handlers.jobs.words.errors import FairlaneError
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import attached, deployment, outputs_of
from scripts.ops.doctor import reading
from scripts.ops.doctor.finding import Finding, Grade, unreadable
from scripts.ops.doctor.grants import check_grants
from scripts.ops.doctor.jobs import check_jobs
from scripts.ops.doctor.local import check_processes
from scripts.ops.doctor.stack import check_stack

from .comparing import DIFFERENT, comparing
from .outbox import AsJson, Name, Stack

SETTINGS: Final = "settings"
ORDER: Final = (Grade.WRONG, Grade.UNREADABLE, Grade.NOTE, Grade.OK)


@comparing()
def doctor(*, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False) -> None:
    """Say what is wrong with a stack. Exit status 1: something is wrong; 2: trouble.

    It looks at settings, timing relations, grants, versions, what is late, parked, stuck or held,
    and at the workers. Nothing changes."""
    try:
        findings = list(_findings(stack, name))
    except (ClientError, BotoCoreError, FairlaneError) as error:
        raise LocalError(f"the stack cannot be looked at: {error}") from error
    counts = {grade: sum(each.grade is grade for each in findings) for grade in Grade}
    if as_json:
        print(
            json.dumps({"healthy": not counts[Grade.WRONG], "findings": [*map(asdict, findings)]})
        )
    else:
        _show(findings)
        print(f"{counts[Grade.WRONG]} things are wrong" if counts[Grade.WRONG] else "healthy")
    raise typer.Exit(DIFFERENT if counts[Grade.WRONG] else 0)


def _findings(stack: str | None, name: str) -> Iterator[Finding]:
    local = None if stack is not None else attached(name)
    known = local.deployed.stack if local is not None else str(stack)
    outputs = outputs_of(known)
    seen = reading.read(reading.resources_of(known), outputs, service=local is None)
    about_stack = list(check_stack(seen))
    yield from about_stack
    rights, problems = reading.rights_of(seen)
    yield from problems
    yield from check_grants(rights, reading.places_of(seen, outputs["ControlTable"]))
    if local is not None:
        yield from check_processes(local.state, name)
    if any(each.check == SETTINGS and each.grade is Grade.WRONG for each in about_stack):
        yield unreadable("jobs", "they are looked at when the settings are right")
        return
    here = deployment(stack, name)
    yield from check_jobs(here.world, here.dead_letters)


def _show(findings: list[Finding]) -> None:
    table = Table("", "check", "what", "do", box=None)
    for each in sorted(findings, key=lambda one: ORDER.index(one.grade)):
        table.add_row(*(Text(cell) for cell in (each.grade, each.check, each.what, each.do)))
    console().print(table)
