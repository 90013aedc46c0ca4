"""The demo for people: what is about to be shown, what happened, what to try next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.table import Table

from handlers.jobs.words.job import Lane
from scripts.load.plan import Load
from scripts.verify.listing import listing

from .report import Kept, Report

WIDTH: Final = 80
"""Columns of a text that is read."""


def opening(load: Load, *, tenants: int, bulk_slots: int) -> str:
    """What is about to be shown."""
    records = sum(len(job.ids) for job in load.once)
    return f"""\
Fairlane runs bulk jobs on AWS that never make small jobs wait. This demo
deploys it to a local AWS on this machine, with {records:,} airports as the
records of {tenants} tenants, and then

  1. sends {len(load.idle)} small jobs while nothing else runs, to see how soon they start;
  2. fills the {bulk_slots} bulk slots and a line before them with jobs over all records;
  3. asks for a job on a subject that another job has, which has to be refused;
  4. sends {len(load.small)} small jobs, which should not have to stand in that line;
  5. cancels the bulk jobs that still wait, which may change nothing any more;
  6. reads every record, to see that each job changed each of its own once.

It takes a minute or two, longer on a slow machine, and shows the same there.
"""


def show(report: Report, console: Console) -> None:
    """Print what happened, and at the end what to try next or what ``--keep`` left up."""
    console.print()
    for line in _story(report):
        console.print(line, highlight=False, width=min(WIDTH, console.width))
    console.print()
    console.print(_lanes(report))
    console.print()
    console.print("[bold]Claims[/], of order, counts and ratios within this run")
    console.print(listing(report.claims))
    console.print()
    console.print("[bold]Times[/] on this machine; no claim depends on them")
    console.print(listing((), report.information))
    console.print()
    if report.ok:
        console.print(f"[green]Every claim holds.[/] {report.seconds:g} s in all.")
    else:
        failed = sum(not claim.ok for claim in report.claims)
        console.print(f"[red]Claims that do not hold: {failed}[/]")
    if report.kept:
        _kept(report.kept, console)
    else:
        console.print(NEXT, highlight=False)


NEXT: Final = """
Try next
  .venv/bin/fairlane demo --keep             the same, and its API stays up
  .venv/bin/fairlane verify lane-isolation   the same jobs, and all in one queue
  docs/protocol.md                           why no record is changed twice"""


def _story(report: Report) -> Iterator[str]:
    small, bulk, order = report.lanes[Lane.SMALL], report.lanes[Lane.BULK], report.order
    shared = report.shared_queue.dwell_ms_of_small
    yield (
        f"[bold]What happened.[/] {small.jobs} small jobs came beside {bulk.jobs} bulk jobs of "
        f"{bulk.items:,} records. When one came, {order.ahead / max(order.came, 1):.0f} bulk jobs "
        f"stood in line on average, and it started before {order.percent:g} % of them. "
        f"95 % of the small jobs started within {small.dwell_ms.p95:,} ms; in one queue for all "
        f"jobs it would have been {shared.p95:,} ms. The second job on one subject was answered "
        f"with {report.duplicate.status}. {report.exactly_once.records:,} records were compared: "
        f"{report.exactly_once.wrong} are not as the jobs say."
    )


def _lanes(report: Report) -> Table:
    table = Table(title="Dwell in ms: from when a job could start until it did")
    table.add_column("")
    for name in ("slots", "jobs", "records", "p50", "p95", "max"):
        table.add_column(name, justify="right")
    small, bulk, idle = report.lanes[Lane.SMALL], report.lanes[Lane.BULK], report.idle
    shared = report.shared_queue
    for name, slots, of, dwell in (
        ("small, before", small.slots, idle, idle.dwell_ms),
        ("small, beside bulk", small.slots, small, small.dwell_ms),
        ("bulk", bulk.slots, bulk, bulk.dwell_ms),
        ("small, one queue *", shared.slots, small, shared.dwell_ms_of_small),
    ):
        counts = (str(slots), str(of.jobs), f"{of.items:,}")
        table.add_row(name, *counts, *(f"{ms:,}" for ms in (dwell.p50, dwell.p95, dwell.max)))
    table.caption = (
        "* computed of this run: every job comes when it did and takes the time it took (cancelled "
        "ones that of as many records), first come, first served, before the slots of both lanes"
    )
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
