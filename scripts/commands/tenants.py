"""``fairlane tenants show|set``."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.table import Table

from fairlane_client.commands.output import console
from handlers.jobs.lifecycle.admission import admit_held
from handlers.jobs.lifecycle.stop_tenant import Stopped, pause_jobs
from handlers.jobs.storage.rates import set_tenant_limit, tenant_limits
from handlers.jobs.transitions.quotas import (
    Use,
    known_tenant,
    set_most_active,
    set_slots,
    usage,
)
from handlers.jobs.transitions.shares import read_share, set_weight
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.job import Lane
from handlers.jobs.words.ports import World
from handlers.jobs.words.turns import MAX_WEIGHT
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import deployment
from scripts.ops.operator_log import noted

from .rate_options import RecordsPerSecond, UnitsPerSecond, print_rates, rates_of
from .tenant_option import tenant_text

app = typer.Typer(
    help="Show and set how many jobs a tenant may have at once.", no_args_is_help=True
)

DEFAULT: Final = "default"
OR_DEFAULT: Final = f"or '{DEFAULT}' for the deployment's."

Tenant: TypeAlias = Annotated[
    str,
    typer.Option("--tenant", callback=tenant_text, help="The tenant whose limits it is about."),
]
Stack: TypeAlias = Annotated[
    str | None,
    typer.Option("--stack", help="The CloudFormation stack; a local stack when left out."),
]
Name: TypeAlias = Annotated[str, typer.Option("--name", help="The name of the local stack.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command()
def show(
    *, tenant: Tenant, stack: Stack = None, name: Name = DEFAULT_NAME, as_json: AsJson = False
) -> None:
    """Show how many jobs a tenant has, and how many it may have."""
    world = deployment(stack, name).world
    try:
        _print(world, tenant, as_json=as_json)
    except FairlaneError as error:
        raise LocalError(f"the tenant's counts cannot be read: {error}") from error


@app.command("set")
def set_(  # noqa: PLR0913  one for each option
    *,
    tenant: Tenant,
    small: Annotated[
        str | None, typer.Option(help=f"Limit of jobs in the small lane, {OR_DEFAULT}")
    ] = None,
    bulk: Annotated[
        str | None, typer.Option(help=f"Limit of jobs in the bulk lane, {OR_DEFAULT}")
    ] = None,
    max_active: Annotated[
        str | None,
        typer.Option("--max-active", help=f"Limit of jobs that have not ended, {OR_DEFAULT}"),
    ] = None,
    records_per_second: RecordsPerSecond = None,
    write_units_per_second: UnitsPerSecond = None,
    pause: Annotated[
        bool, typer.Option("--pause", help="With a limit of 0: pause the jobs it is about, too.")
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="The tenant has not had a job yet: do not ask.")
    ] = False,
    weight: Annotated[
        str | None,
        typer.Option(help=f"Its share of a full bulk lane, 1 to {MAX_WEIGHT}, {OR_DEFAULT}"),
    ] = None,
    stack: Stack = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Give a tenant limits of its own. They hold from its next job on, without a deployment; rates
    hold for its running bulk jobs, too, within seconds.

    Jobs above a lower limit run on. A higher limit admits held jobs: the first ten at once, the
    others by recovery within the next minutes.

    A limit of 0 stops the tenant: with --small or --bulk its new jobs of the lane are held, with
    --max-active they are refused (403 tenant_stopped). Jobs that have begun end, unless --pause
    pauses them. A paused job goes on when its client resumes it."""
    chosen = {Lane.SMALL: small, Lane.BULK: bulk}
    rates = rates_of(records_per_second, write_units_per_second)
    if max_active is None and weight is None and not any(chosen.values()) and not rates:
        raise typer.BadParameter(
            "nothing to set: name --small, --bulk, --max-active, --weight or a rate a second"
        )
    slots = {lane: _limit(f"--{lane}", text) for lane, text in chosen.items() if text is not None}
    most = None if max_active is None else _limit("--max-active", max_active)
    share = None if weight is None else _limit("--weight", weight, least=1)
    if share is not None and share > MAX_WEIGHT:
        raise typer.BadParameter(f"--weight {share} is more than {MAX_WEIGHT}")
    stopped = set(Lane) if most == 0 else {lane for lane, limit in slots.items() if limit == 0}
    if pause and not stopped:
        raise typer.BadParameter("--pause goes with a limit of 0: without one, jobs start again")
    here = deployment(stack, name)
    world = here.world
    try:
        if not new and not known_tenant(world, tenant):
            raise typer.BadParameter(
                f"--tenant {tenant!r} has never had a job or a limit here; nothing was set. If the "
                "name is right, add --new"
            )
        with noted(
            here,
            "tenants set",
            tenant=tenant,
            small=small,
            bulk=bulk,
            max_active=max_active,
            weight=weight,
            records_per_second=records_per_second,
            write_units_per_second=write_units_per_second,
            pause=pause,
        ):
            if max_active is not None:
                set_most_active(world, tenant, most)
            if weight is not None:
                set_weight(world, tenant, share)
            for unit, rate in rates.items():
                set_tenant_limit(world, tenant, unit, rate)
            for lane, limit in slots.items():
                set_slots(world, tenant, lane, limit)
                admit_held(world, tenant, lane)
            jobs = pause_jobs(world, tenant, stopped, held=most == 0) if pause else None
        _print(world, tenant, as_json=as_json, jobs=jobs)
    except FairlaneError as error:
        raise LocalError(f"some of the limits could not be set: {error}") from error


def _limit(option: str, text: str, *, least: int = 0) -> int | None:
    if text == DEFAULT:
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise typer.BadParameter(
            f"{option} {text!r} is not a number of at least {least}, {OR_DEFAULT}"
        )
    return int(text)


def _print(world: World, tenant: str, *, as_json: bool, jobs: Stopped | None = None) -> None:
    seen = usage(world, tenant)
    lanes = {lane.value: _row(use) for lane, use in seen.lanes.items()}
    active = _row(seen.active)
    del active["held"]  # of lanes only
    rates = {unit.value: rate for unit, rate in tenant_limits(world, tenant).items()}
    weight = read_share(world, tenant).weight
    if as_json:
        rows = {
            "tenant": tenant,
            "lanes": lanes,
            "active": active,
            "rates": rates,
            "weight": weight,
            **({} if jobs is None else {"paused": jobs.paused, "not_paused": jobs.left}),
        }
        print(json.dumps(rows))
        return
    table = Table("", "now", "held", "limit", "whose", box=None)
    for what, row in {**lanes, "active": active}.items():
        whose = "its own" if row["own"] else "the deployment's"
        table.add_row(what, *(str(row.get(n, "")) for n in ("count", "held", "limit")), whose)
    console().print(table)
    print_rates(rates)
    console().print(f"weight in a full bulk lane: {weight}")
    if not known_tenant(world, tenant):
        console().print("the tenant has never had a job here: is its name right?")
    if jobs is not None:
        console().print(f"{len(jobs.paused)} jobs are paused, or pause at their next chunk")
        for job_id in jobs.left:
            console().print(f"not paused: job {job_id}")


def _row(use: Use) -> dict[str, Any]:
    return {"count": use.count, "held": use.held, "limit": use.limit, "own": use.own}
