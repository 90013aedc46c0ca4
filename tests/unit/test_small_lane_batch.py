"""The small lane's real function over ports in memory: a full batch with a message of every kind,
and what the event source mapping does with the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import pytest

from handlers import small_lane
from handlers.jobs.execution.dwell_report import DwellReport
from handlers.jobs.lifecycle import control
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.messages import Message
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Update
from handlers.testing.lane_queue import Stored
from handlers.testing.world import memory_world
from tests.support.compute import Killed, mortal
from tests.support.jobs import CHUNK, TENANT, begin, fill, new_job, now, prices

if TYPE_CHECKING:
    from handlers.jobs.words.operation import Record
    from handlers.jobs.words.ports import Delivery
    from handlers.jobs.words.writes import Item, Key
    from handlers.testing.world import MemoryWorld

FOREIGN, MALFORMED, DAMAGED, BULK, CANCELLED, RUNNING, DOWN, SLOW, GOOD = (
    *("foreign", "malformed", "damaged", "bulk", "cancelled", "running", "down", "slow", "good"),
)
KINDS: Final = (FOREIGN, MALFORMED, DAMAGED, BULK, CANCELLED, RUNNING, DOWN, SLOW, GOOD, "last")
"""What each message of the batch is about, in the order in which the function gets them."""
KEPT: Final = {MALFORMED, RUNNING, DOWN}


@dataclass
class Troubled:
    """A port that fails or hangs where it is told to."""

    inner: Any
    call: str
    trouble: Any

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name != self.call:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self.trouble(*arguments)
            return found(*arguments, **named)

        return call


@dataclass
class Scene:
    """Ten messages, each of its own kind, and a function that takes all of them at once."""

    world: MemoryWorld = field(init=False)
    jobs: dict[str, Job] = field(default_factory=dict)
    troubles: bool = True
    """A job's item cannot be read, and a message is handed over without an attribute."""
    slow: bool = True
    """The records of a job take longer to read than the function may run."""

    def __post_init__(self) -> None:
        limits = Limits(chunk_size=CHUNK, small_max_items=2 * CHUNK, tenant_slots_small=len(KINDS))
        self.world = world = memory_world(limits=limits)
        self.ids = {kind: [f"{kind}{n:02}" for n in range(2 * CHUNK)] for kind in KINDS}
        for ids in self.ids.values():
            world.records.load(TENANT, {id_: {"price": 10, "version": 1} for id_ in ids})
        queue, at = world.queues[Lane.SMALL], world.runtime.now()
        queue.accept_dead_letter(Stored("foreign", "{", "g", at, at), at)
        for kind in KINDS[1:]:
            if kind == BULK:
                more = fill(world, CHUNK)
                job = new_job(world, [*self.ids[BULK], *more], BULK)
                queue.send([Message(job.id, Lane.SMALL, "g")])  # left from before its promotion
            else:
                job = new_job(world, self.ids[kind], kind)
            self.jobs[kind] = job
        control.cancel(world, TENANT, self.jobs[CANCELLED].id)
        begin(world, self.jobs[RUNNING])
        damaged = control_table.job_key(self.jobs[DAMAGED].id)
        world.store.transact("damage", [Update(damaged, set={"retries": "many"})])

    def invoke(self) -> set[str] | None:
        """Receive what is there, run the function, and delete what it does not report. Returns what
        it reports; None when it is killed."""
        world, runtime = self.world, self.world.runtime
        batch = world.queues[Lane.SMALL].receive(10, 0)
        ends = runtime.now() + ms(world.timing.function_timeout)
        seen = mortal(self._troubled(), lambda: runtime.now() >= ends)
        context: Any = Context(ends, runtime)
        report = DwellReport(seen)
        records = [self._record(delivery) for delivery in batch]
        with (
            patch.object(small_lane, "world", lambda _: seen),
            patch.object(small_lane, "dwells", lambda: report),
        ):
            try:
                answer = small_lane.handler({"Records": records}, context)
            except Killed:
                return None
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for delivery in batch:
            if delivery.message_id not in failed:
                world.queues[Lane.SMALL].delete(delivery.receipt)
        return {self.kind_of(delivery) for delivery in batch if delivery.message_id in failed}

    def kind_of(self, delivery: Delivery | Stored) -> str:
        return next((k for k, job in self.jobs.items() if job.id in delivery.body), FOREIGN)

    def _record(self, delivery: Delivery) -> dict[str, Any]:
        attributes = {
            "ApproximateReceiveCount": str(delivery.receive_count),
            "SentTimestamp": str(delivery.sent_at),
            "ApproximateFirstReceiveTimestamp": str(delivery.first_received_at),
            "MessageGroupId": delivery.group,
        }
        if self.troubles and self.kind_of(delivery) == MALFORMED:
            del attributes["SentTimestamp"]
        return {
            "messageId": delivery.message_id,
            "receiptHandle": delivery.receipt,
            "body": delivery.body,
            "attributes": attributes,
            "eventSource": "aws:sqs",
        }

    def _troubled(self) -> MemoryWorld:
        down = control_table.job_key(self.jobs[DOWN].id)

        def get(key: Key) -> Item | None:
            if self.troubles and key == down:
                raise Transient("down")
            return None

        def read(_tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
            if self.troubles and self.slow and self.ids[SLOW][-1] in ids:
                self.world.runtime.sleep(2 * ms(self.world.timing.function_timeout))
            return {}

        store: Any = Troubled(self.world.store, "get", get)
        records: Any = Troubled(self.world.records, "read", read)
        return replace(self.world, store=store, records=records)

    def come_back(self) -> None:
        """Let the time pass after which messages are received again, and leases have expired."""
        timing = self.world.timing.small
        self.world.runtime.sleep(ms(timing.visibility + timing.lease_ttl))

    def messages(self) -> set[str]:
        return {self.kind_of(message) for message in self.world.queues[Lane.SMALL].snapshot()}

    def lost(self) -> set[str]:
        """The small lane's jobs that go on, and have no message any more."""
        going_on = {
            kind
            for kind, job in self.jobs.items()
            if kind not in {BULK, DAMAGED} and not now(self.world, job).state.terminal
        }
        return going_on - self.messages()

    def done(self) -> set[str]:
        return {kind for kind in KINDS if prices(self.world, self.ids[kind]) == {11}}


@dataclass(frozen=True)
class Context:
    """What Lambda tells a function about its invocation."""

    ends: int
    runtime: Any
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.ends - self.runtime.now())


@pytest.fixture
def quick() -> Scene:
    return Scene(slow=False)


def test_c81_only_what_has_to_come_back_is_reported(quick: Scene) -> None:
    assert quick.invoke() == KEPT
    assert quick.messages() == KEPT
    assert not quick.lost()
    assert quick.done() == {SLOW, GOOD, "last"}


def test_c81_what_comes_back_is_done_once(quick: Scene) -> None:
    quick.invoke()
    quick.troubles = False
    quick.come_back()
    assert quick.invoke() == set()
    assert not quick.messages()
    assert quick.done() == {*KEPT, SLOW, GOOD, "last"}


def test_c81_a_batch_whose_function_is_killed_comes_back_whole_and_is_done_once() -> None:
    scene = Scene()
    assert scene.invoke() is None
    # Nothing is reported, also not what was done before.
    assert scene.messages() == set(KINDS)
    assert not scene.lost()
    assert now(scene.world, scene.jobs[SLOW]).state is State.RUNNING
    scene.troubles = False
    scene.come_back()
    assert scene.invoke() == set()
    assert not scene.messages()
    assert scene.done() == {*KEPT, SLOW, GOOD, "last"}


def reports_nothing(event: Any, context: Any, real: Any = small_lane.handler) -> Any:
    real(event, context)
    return {"batchItemFailures": []}


def test_c81_a_function_that_reports_nothing_would_lose_jobs(quick: Scene) -> None:
    """The control: the mapping deletes what is not reported."""
    with patch.object(small_lane, "handler", reports_nothing):
        assert quick.invoke() == set()
    assert quick.lost() == KEPT
