"""The demo on a stack that is up."""

from __future__ import annotations

import time

from scripts.load.drive import Driver
from scripts.load.plan import Load, Tenants
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps

from .report import Report, report


def run(
    stack: LocalStack, tenants: Tenants, load: Load, steps: Steps, *, slo: int, started: float
) -> Report:
    """Put the load on the stack, wait for it, and judge it.

    tenants: whose records the load changes, all of them. slo: ms. started: of the monotonic clock,
    for the report's seconds. Raises LocalError when the jobs do not end.
    """
    driver = Driver(stack, load, steps)
    with steps.step("Reading all records"):
        before = driver.ledger.records(tenants)
    driver.submit_idle()
    driver.fill()
    # While the backlog is longest: later its holder may have ended on a fast or starved machine.
    duplicate = driver.submit_duplicate()
    driver.submit_small()
    driver.await_small()
    cancelled = driver.drain()
    with steps.step("Comparing every record with what the jobs say"):
        after = driver.ledger.records(tenants)
    return report(
        driver.run(),
        duplicate,
        cancelled,
        before,
        after,
        bulk_slots=driver.ledger.bulk_slots,
        small_slots=driver.ledger.small_slots,
        slo=slo,
        seconds=time.monotonic() - started,
    )
