"""An attempt whose beginning got no reply never takes another's for its own."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from handlers.aws.job_store import DynamoStore
from handlers.aws.protection import Protection
from handlers.jobs.words.errors import OutcomeUnknown
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from handlers.slots import Slot
from handlers.testing.telemetry import MemoryTelemetry
from tests.support.sqs import sqs_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from handlers.jobs.words.writes import Write
    from tests.handlers.deployment import Deployment

BULK: Final = 101
"""More records than a small job has."""


class Died(BaseException):
    """The process is gone."""


@dataclass
class Twin:
    """Somebody of the same name who begins while a first beginning is on its way, and dies before
    its first commit. The first one's request is lost, and so is every reply to it."""

    run: Callable[[], object]
    begun: list[str] = field(default_factory=list)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        transact = DynamoStore.transact

        def watched(store: DynamoStore, action: str, writes: Sequence[Write]) -> None:
            if action == "begin":
                self.begun.append(action)
                if len(self.begun) == 1:
                    with suppress(Died):
                        self.run()
                    raise OutcomeUnknown
            if action == "commit_chunk" and len(self.begun) == 2:
                raise Died
            transact(store, action, writes)

        monkeypatch.setattr(DynamoStore, "transact", watched)


def of_the_twin(stack: Deployment, job_id: str) -> None:
    """It is still the twin's, and nothing was changed in its name."""
    job = stack.job(job_id)
    assert (job.state, job.attempt, job.position) == (State.RUNNING, 1, 0)
    assert stack.prices(["r00000"]) == {10}


def test_an_invocation_that_comes_twice_under_one_request_id(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = stack.created(stack.fill(1))
    [delivery] = stack.receive()
    record = sqs_record(delivery)
    twin = Twin(lambda: stack.invoke([record]))
    twin.watch(monkeypatch)
    assert stack.invoke([record]) == [delivery.message_id]
    assert len(twin.begun) > 1
    of_the_twin(stack, id_)


def test_a_slot_that_is_given_one_message_twice(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = stack.created(stack.fill(BULK))
    [delivery] = stack.receive(Lane.BULK)
    protection = Protection(None, MemoryTelemetry())
    slot = Slot(stack.world, "host/1/0", threading.Event(), protection, 1)
    twin = Twin(lambda: slot._serve(delivery))
    twin.watch(monkeypatch)
    slot._serve(delivery)
    assert len(twin.begun) > 1
    of_the_twin(stack, id_)
