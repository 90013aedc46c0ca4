"""The scenarios' judgement on a real run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from scripts.load.plan import Load, plan
from scripts.local import airports
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps
from scripts.verify.framework import Bench, Expectation, Information, Seen
from scripts.verify.lane_isolation import lanes, one_queue

EACH = 1000
SLO = 1000


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
def seen(bench: Bench, stack: LocalStack) -> Sequence[Seen]:
    load = loaded(stack, "lanes-one", "lanes-two", "lanes-three", "lanes-four")
    return list(lanes(bench, stack, load, SLO))


def expectations(seen: Iterable[Seen]) -> list[Expectation]:
    return [each for each in seen if isinstance(each, Expectation)]


def test_two_lanes_hold_on_any_machine(seen: Sequence[Seen]) -> None:
    assert [each for each in expectations(seen) if not each.ok] == []


def test_times_are_told_beside_the_slo(seen: Sequence[Seen]) -> None:
    told = [each for each in seen if isinstance(each, Information)]
    assert f"SLO {SLO} ms" in told[0].beside


def test_the_control_sees_that_two_lanes_are_no_shared_queue(
    bench: Bench, stack: LocalStack
) -> None:
    """On a stack that has lanes it must not pass: it would prove nothing."""
    load = loaded(stack, "control-one", "control-two")
    report = expectations(one_queue(bench, stack, load, SLO))
    wrong = [each.what for each in report if not each.ok]
    assert "every job went through the one queue" in wrong
    assert any(what.startswith("not so here: bulk jobs in line") for what in wrong)
