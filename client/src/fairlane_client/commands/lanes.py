"""``fairlane lanes``: how deep they are, and how long a tenant's jobs have waited in them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Annotated, Final

import typer
from rich.table import Table

from ..models import LaneView
from .calling import Name, Tenant, Token, Url, calling
from .output import console

NOTHING: Final = "-"


def lanes(
    *,
    once: Annotated[bool, typer.Option("--once", help="Show the lanes once and end.")] = (False),
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two requests.")] = 2.0,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, one object for each request.")
    ] = False,
) -> None:
    """Show the lanes until Ctrl-C: the messages of all tenants and the tenant's own jobs."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        if as_json:
            while True:
                print(json.dumps(described(client.lanes())), flush=True)
                if once:
                    return
                time.sleep(every)
        if once:
            console().print(table(client.lanes()))
            return
        from rich.live import Live

        with Live(table(client.lanes()), auto_refresh=False, console=console()) as live:
            while True:
                time.sleep(every)
                live.update(table(client.lanes()), refresh=True)


def described(seen: Sequence[LaneView]) -> dict[str, object]:
    return {"lanes": [lane.as_json() for lane in seen]}


def table(seen: Sequence[LaneView]) -> Table:
    """A line for each lane."""
    made = Table(
        "lane", "waiting", "running", "yours", "limit", "held", "dwell p50", "p95", "of", box=None
    )
    for lane in seen:
        yours, dwell = lane.yours, lane.yours.dwell_ms
        times = (
            (NOTHING, NOTHING, "no job")
            if dwell is None
            else (f"{dwell.p50} ms", f"{dwell.p95} ms", f"{dwell.jobs} jobs")
        )
        counts = (lane.queue.waiting, lane.queue.in_flight, yours.in_flight)
        made.add_row(lane.lane, *map(str, (*counts, yours.limit, yours.held)), *times)
    return made
