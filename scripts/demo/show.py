"""The report for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from handlers.jobs.model import Lane
from scripts.load.measures import Dwell

from .report import Kept, Report


def show(report: Report, console: Console) -> None:
    """Print the report's tables, and at the end what ``--keep`` left up."""
    console.print()
    console.print(_lanes(report))
    console.print()
    console.print(_claims(report))
    console.print()
    console.print(_information(report))
    if report.ok:
        console.print(f"[green]Every claim holds.[/] {report.seconds:g} s in all.")
    else:
        failed = sum(not claim.ok for claim in report.claims)
        console.print(f"[red]Claims that do not hold: {failed}[/]")
    if report.kept:
        _kept(report.kept, console)


def _lanes(report: Report) -> Table:
    table = Table(title="Dwell: from when a job could start to when it did, ms")
    table.add_column("")
    for name in ("slots", "jobs", "items", "p50", "p95", "max"):
        table.add_column(name, justify="right")
    idle = report.idle
    table.add_row(
        "small lane, idle",
        str(report.lanes[Lane.SMALL].slots),
        str(idle.jobs),
        f"{idle.items:,}",
        *_numbers(idle.dwell_ms),
    )
    for lane in (Lane.SMALL, Lane.BULK):
        of = report.lanes[lane]
        counts = (str(of.slots), str(of.jobs), f"{of.items:,}")
        table.add_row(f"{lane.value} lane", *counts, *_numbers(of.dwell_ms))
    shared, small = report.shared_queue, report.lanes[Lane.SMALL]
    table.add_section()
    table.add_row(
        "small jobs, had all shared one queue (computed)",
        str(shared.slots),
        str(small.jobs),
        f"{small.items:,}",
        *_numbers(shared.dwell_ms_of_small),
    )
    table.caption = (
        "Computed from this run: every job arrives when it did and takes the time it took, first "
        "come, first served, before as many slots as both lanes have together."
    )
    return table


def _numbers(dwell: Dwell) -> tuple[str, str, str]:
    return f"{dwell.p50:,}", f"{dwell.p95:,}", f"{dwell.max:,}"


def _claims(report: Report) -> Table:
    table = Table("", "what", "expected", "saw", title="Claims")
    for claim in report.claims:
        mark = "[green]✓" if claim.ok else "[red]✗"
        table.add_row(mark, claim.what, claim.expected, claim.saw)
    return table


def _information(report: Report) -> Table:
    table = Table("what", "saw", "beside", title="Times on this machine, which decide nothing")
    for each in report.information:
        table.add_row(each.what, each.saw, each.beside)
    return table


def _kept(kept: Kept, console: Console) -> None:
    lines = (
        "",
        f"The stack is up. API    {kept.api}",
        f"Token of tenant {kept.tenant}:",
        kept.token,
        "",
        *kept.curl,
        "",
        f"Stop it: {kept.stop}",
    )
    for line in lines:
        # Unbroken and unadorned, so that it can be copied.
        console.print(line, soft_wrap=True, highlight=False, markup=False)
