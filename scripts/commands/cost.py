"""``fairlane cost``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fairlane_client.commands.output import console
from infra.settings import CONTEXT_KEY, DeploySettings
from scripts.ops.cost import PRICED, Load, Row, estimate


def cost(
    *,
    small_jobs: Annotated[
        float, typer.Option("--small-jobs", min=0, help="Small jobs a day, of ten records.")
    ] = 10_000,
    bulk_jobs: Annotated[float, typer.Option("--bulk-jobs", min=0, help="Bulk jobs a day.")] = 10,
    items: Annotated[
        float, typer.Option("--items", min=1, help="Records of one bulk job.")
    ] = 100_000,
    cdk_json: Annotated[
        Path,
        typer.Option("--cdk-json", exists=True, dir_okay=False, help="The deployment's settings."),
    ] = Path("cdk.json"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Estimate what the deployment of cdk.json costs in a month: idle, and with so many jobs."""
    rows = estimate(_settings(cdk_json), Load(small_jobs, bulk_jobs, items))
    if as_json:
        total = {"idle": sum(row.idle for row in rows), "load": sum(row.load for row in rows)}
        print(json.dumps({"priced": PRICED, **total, "parts": [asdict(row) for row in rows]}))
    else:
        _show(rows)


def _settings(path: Path) -> DeploySettings:
    try:
        context = json.loads(path.read_text(encoding="utf-8"))["context"]
        return DeploySettings.read(context.get(CONTEXT_KEY))
    except (ValueError, KeyError) as error:
        raise typer.BadParameter(f"{path} has no usable settings: {error}") from error


def _show(rows: list[Row]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("part", no_wrap=True)
    for name in ("idle", "jobs add"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("formula")
    for row in rows:
        table.add_row(row.part, f"{row.idle:,.2f}", f"{row.load:,.2f}", row.formula)
    idle, load = sum(row.idle for row in rows), sum(row.load for row in rows)
    table.add_row("[bold]total", f"[bold]{idle:,.2f}", f"[bold]{load:,.2f}", "")
    out = console()
    out.print(table)
    out.print(
        f"\n{idle + load:,.2f} dollars a month: idle, and what the jobs add. Prices are those of "
        f"us-east-1 of {PRICED}; a bill decides. Not in it: free tiers, taxes, support, traffic to "
        "the internet, your own storage.",
        highlight=False,
    )
