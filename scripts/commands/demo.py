"""``fairlane demo``."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer

from fairlane_client.commands.output import console
from scripts.demo.keep import kept
from scripts.demo.run import run
from scripts.demo.show import opening, show
from scripts.load import own
from scripts.load.plan import plan
from scripts.local.airports import airports_by_tenant
from scripts.local.steps import Steps
from scripts.verify.lane_isolation import SLOTS, TWO_LANES, slo_ms

from .comparing import comparing
from .needs import airports_of_checkout

BULK_ITEMS: Final = 2100
"""Records of a bulk job at the most: seconds of work, for those that run are waited for at the
end."""


@comparing()
def demo(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the stack up and print how to use it.")
    ] = False,
    iam: Annotated[
        bool,
        typer.Option("--iam", help="Refuse functions and workers what their roles do not allow."),
    ] = False,
    small_jobs: Annotated[int, typer.Option(min=1, max=500, help="Small jobs to submit.")] = 50,
) -> None:
    """Show that small jobs start at once while bulk jobs fill every bulk slot.

    The demo starts a local stack of its own and loads 28,000 airports. Exit status 1: a claim does
    not hold; 2: trouble.
    """
    airports_of_checkout("demo")
    started = time.monotonic()
    tenants = {tenant: list(airports) for tenant, airports in airports_by_tenant().items()}
    load = plan(tenants, part=BULK_ITEMS, passes=1, small_jobs=small_jobs)
    steps = Steps()
    steps.say(opening(load, tenants=len(tenants), bulk_slots=SLOTS))
    with (
        steps,
        own.taken_down(
            own.up("demo", steps=steps, settings=TWO_LANES, iam=iam), steps=steps, keep=keep
        ) as stack,
    ):
        report = run(stack, tenants, load, steps, slo=slo_ms(TWO_LANES), started=started)
        if keep:
            first = load.small[0]
            report = report.model_copy(update={"kept": kept(stack, first.tenant, first.ids)})
    if as_json:
        print(report.model_dump_json(exclude_none=True))
    else:
        show(report, console())
    raise typer.Exit(0 if report.ok else 1)
