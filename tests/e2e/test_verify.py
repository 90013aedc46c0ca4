"""The scenarios' judgement on a real run. What they say about times is not asserted here."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from scripts.load.plan import Load, plan
from scripts.local import airports
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps
from scripts.verify.framework import Bench, Expectation
from scripts.verify.lane_isolation import lanes, one_queue

EACH = 1000
SLO = 1000
TIMED = ("p95 dwell", "longest time", "work in the bulk slots", "bulk jobs waiting", "the time to")


def loaded(stack: LocalStack, *tenants: str) -> Load:
    """A load over airports that only these tenants have."""
    some = dict(list(airports.airports_by_tenant()["asia"].items())[:EACH])
    records = dict.fromkeys(tenants, some)
    airports.load(stack.clients.dynamodb, stack.deployed.outputs["RecordsTable"], tenants=records)
    ids = {tenant: list(some) for tenant in tenants}
    return plan(ids, small_jobs=6, pace=0.02)


@pytest.fixture(scope="module")
def bench(stack: LocalStack) -> Bench:
    return Bench(Steps(quiet=True))


@pytest.fixture(scope="module")
def seen(bench: Bench, stack: LocalStack) -> Sequence[Expectation]:
    load = loaded(stack, "lanes-one", "lanes-two", "lanes-three", "lanes-four")
    return list(lanes(bench, stack, load, SLO))


def test_lanes_keep_what_needs_no_clock(seen: Sequence[Expectation]) -> None:
    untimed = [each for each in seen if not each.what.startswith(TIMED)]
    assert len(untimed) == len(seen) - len(TIMED)
    assert [each for each in untimed if not each.ok] == []


def test_the_control_sees_that_two_lanes_are_no_shared_queue(
    bench: Bench, stack: LocalStack
) -> None:
    """On a stack that has lanes it must not pass: it would prove nothing."""
    load = loaded(stack, "control-one", "control-two")
    report = list(one_queue(bench, stack, load, SLO))
    assert not report[0].ok
    assert report[0].what == "every job went through the one queue"
