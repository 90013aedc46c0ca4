"""A worker of a team's own and jobs share one lock: ``fairlane.lease``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fairlane.lease import LeaseLost, SubjectBusy, SubjectLease, take
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Busy, Created, SubmitResult, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.words.ports import World
from tests.support import aws
from tests.support.world import moto_world

TENANT, SUBJECT = "acme", "products"
CONTROL = aws.CONTROL
RECORDS = aws.RECORDS


@dataclass
class Place:
    """One lock, a clock that can be ahead, and a record."""

    world: World
    ahead: float = 0

    def take(self, holder: str = "sync", subject: str = SUBJECT) -> SubjectLease:
        return take(
            aws.clients().dynamodb,
            control_table=CONTROL,
            tenant=TENANT,
            subject=subject,
            holder=holder,
            clock=lambda: time.time() + self.ahead,
        )

    def submit(self) -> SubmitResult:
        params = {"field": "price", "add": 1}
        body = {"operation": "adjust_number", "subject": SUBJECT, "params": params, "ids": ["a"]}
        request = accept(parse(json.dumps(body)), self.world.operations, max_ids=10)
        return submit(self.world, TENANT, request)

    def write(self, price: int, *checks: Any) -> None:
        """As the worker would: its own transaction."""
        put: Any = {
            "TableName": RECORDS,
            "Item": {"tenant": {"S": TENANT}, "id": {"S": "a"}, "price": {"N": str(price)}},
        }
        aws.clients().dynamodb.transact_write_items(TransactItems=[*checks, {"Put": put}])

    def price(self) -> object:
        return self.world.records.read(TENANT, ["a"])["a"].fields["price"]


@pytest.fixture
def place() -> Iterator[Place]:
    with moto_world() as world:
        yield Place(world)


def test_a_worker_is_refused_the_subject_of_a_job(place: Place) -> None:
    made = place.submit()
    assert isinstance(made, Created)
    with pytest.raises(SubjectBusy) as refusal:
        place.take()
    assert refusal.value.holder == made.job.id
    place.take(subject="others").release()


def test_a_job_is_refused_the_subject_of_a_worker_until_it_is_released(place: Place) -> None:
    with place.take() as lease:
        assert place.submit() == Busy(lease.holder, None)
        with pytest.raises(SubjectBusy):
            place.take("other")
        lease.heartbeat()
        place.write(11, lease.fence_check())
    assert isinstance(place.submit(), Created)
    assert place.price() == 11


def lost_to_a_job(place: Place) -> SubjectLease:
    """The lease of a worker that has been asleep since: its time is over, recovery freed the
    subject, and a job has it."""
    place.ahead = -1000
    lease = place.take()
    place.write(10, lease.fence_check())
    place.ahead = 0
    assert place.submit() == Busy(lease.holder, None)
    Recovery(place.world).run()
    assert isinstance(place.submit(), Created)
    return lease


def test_recovery_leaves_the_lease_of_a_live_worker(place: Place) -> None:
    lease = place.take()
    Recovery(place.world).run()
    lease.heartbeat()
    assert place.submit() == Busy(lease.holder, None)


def test_a_worker_that_lost_its_subject_to_a_job_can_write_nothing(place: Place) -> None:
    lease = lost_to_a_job(place)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        place.write(99, lease.fence_check())
    assert place.price() == 10
    with pytest.raises(LeaseLost):
        lease.heartbeat()
    lease.release()  # not the job's
    with pytest.raises(SubjectBusy):
        place.take()


def test_control_without_the_check_the_late_worker_writes(place: Place) -> None:
    """What the check is for: the lease alone keeps nobody from writing."""
    lost_to_a_job(place)
    place.write(99)
    assert place.price() == 99


def test_another_worker_takes_over_after_the_lease_and_the_grace(place: Place) -> None:
    first = place.take()
    place.ahead = 100
    with pytest.raises(SubjectBusy):
        place.take("second")
    place.ahead = 130
    second = place.take("second")
    assert second.fence > first.fence
    with pytest.raises(LeaseLost):
        first.heartbeat()
    second.heartbeat()


def test_a_heartbeat_keeps_the_subject(place: Place) -> None:
    first = place.take()
    place.ahead = 100
    first.heartbeat()
    place.ahead = 130
    with pytest.raises(SubjectBusy):
        place.take("second")


def test_a_lease_needs_a_time(place: Place) -> None:
    with pytest.raises(ValueError, match="ttl_seconds"):
        take(
            aws.clients().dynamodb,
            control_table=CONTROL,
            tenant=TENANT,
            subject=SUBJECT,
            holder="x",
            ttl_seconds=0,
        )
