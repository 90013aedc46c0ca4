"""The sender of a job starts the first worker of a lane that has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from handlers.aws.wake import AGAIN_AFTER, WakingQueue
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message
from handlers.testing.world import MemoryWorld, memory_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_ecs import ECSClient

MESSAGE = Message(job_id="1", lane=Lane.BULK, group="acme")
SERVICE = {"cluster": "cluster", "service": "service"}


@pytest.fixture
def ecs() -> ECSClient:
    return boto3.client(
        "ecs", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
    )


@pytest.fixture
def asked(ecs: ECSClient) -> Iterator[Stubber]:
    with Stubber(ecs) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def place() -> MemoryWorld:
    return memory_world()


@pytest.fixture
def queue(ecs: ECSClient, place: MemoryWorld) -> WakingQueue:
    inner = place.queues[Lane.BULK]
    return WakingQueue(inner, ecs, "cluster/service", place.runtime, place.telemetry)


def tells(asked: Stubber, desired: int) -> None:
    answer = {"services": [{"desiredCount": desired}]}
    asked.add_response("describe_services", answer, {"cluster": "cluster", "services": ["service"]})


def starts(asked: Stubber) -> None:
    asked.add_response("update_service", {}, {**SERVICE, "desiredCount": 1})


def test_c22_a_message_starts_the_first_worker(asked: Stubber, queue: WakingQueue) -> None:
    tells(asked, 0)
    starts(asked)
    assert queue.send([MESSAGE]) == frozenset()
    assert queue.depth().waiting == 1


@pytest.mark.parametrize("desired", [1, 7])
def test_workers_that_are_wanted_already_are_left_alone(
    asked: Stubber, queue: WakingQueue, desired: int
) -> None:
    tells(asked, desired)
    queue.send([MESSAGE])


def test_it_looks_once_a_minute(asked: Stubber, queue: WakingQueue, place: MemoryWorld) -> None:
    tells(asked, 1)
    for _ in range(3):
        queue.send([MESSAGE])
    asked.assert_no_pending_responses()
    place.runtime.sleep(AGAIN_AFTER)
    tells(asked, 0)
    starts(asked)
    queue.send([MESSAGE])


def test_a_worker_that_cannot_be_started_costs_the_message_nothing(
    asked: Stubber, queue: WakingQueue, place: MemoryWorld
) -> None:
    asked.add_client_error("describe_services", "AccessDeniedException")
    assert queue.send([MESSAGE]) == frozenset()
    assert queue.depth().waiting == 1
    assert place.telemetry.actions() == ["wake_failed"]
    # And the next one tries again.
    tells(asked, 0)
    starts(asked)
    queue.send([MESSAGE])


def test_a_send_that_failed_starts_nothing(
    asked: Stubber, ecs: ECSClient, place: MemoryWorld
) -> None:
    class Down:
        def send(self, messages: object) -> frozenset[int]:
            raise Transient("down")

    queue = WakingQueue(Down(), ecs, "a/b", place.runtime, place.telemetry)  # type: ignore[arg-type]
    with pytest.raises(Transient):
        queue.send([MESSAGE])
