"""Cases of attempts that hang while their heartbeat goes on (C75)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from pydantic import BaseModel

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage.control_table import job_key
from handlers.jobs.words.job import EndReason, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.operation import Change, Operation
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import HOUR, MINUTE, SECOND, ms
from handlers.jobs.words.writes import Update
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, lease_of, new_job, now, receive
from tests.support.sinks import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.operation import Fields, Outcome

CHUNK: Final = 10
COUNT: Final = 4 * CHUNK
TIMING: Final = SHORT.model_copy(update={"hang_after": 60})
HANG: Final = ms(TIMING.hang_after)
LAST_LEASE: Final = HANG + ms(TIMING.bulk.heartbeat + TIMING.bulk.lease_ttl)
"""ms after its last progress, within which the lease of a hung attempt has expired."""


class Nothing(BaseModel):
    pass


@dataclass
class Site:
    """A world in which some calls hang, and a worker that does not return from them in time."""

    takes: int = 10 * HOUR
    """ms until a call that hangs returns."""
    hangs_at: str = ""
    calls: dict[str, int] = field(default_factory=dict)
    hung: list[int] = field(default_factory=list)
    """When a worker was told to end (ms)."""
    always: bool = False

    def __post_init__(self) -> None:
        operation = Operation(
            "bump", Nothing, self._apply, lambda _: frozenset({"n"}), sinks=("index",)
        )
        whole = memory_world(
            operations={"bump": operation},
            timing=TIMING,
            limits=Limits(chunk_size=CHUNK, small_max_items=1),
        )
        self.whole = whole
        self.index = Index()
        self.world = replace(
            whole,
            store=self._slow(whole.store, "transact", "get"),
            records=self._slow(whole.records, "read"),
            payloads=self._slow(whole.payloads, "read"),
            sinks={"index": self._slow(self.index, "deliver")},
        )

    def _apply(self, fields: Fields, _: BaseModel) -> Outcome:
        self._call("operation")
        return Change({"n": int(str(fields["n"])) + 1})

    def _slow(self, port: object, *names: str) -> Any:
        return _Slow(self, port, names)

    def _call(self, what: str) -> None:
        self.calls[what] = self.calls.get(what, 0) + 1
        if what == self.hangs_at and (self.always or self.calls[what] == COUNT // 2 // CHUNK):
            self.whole.runtime.sleep(self.takes)

    def a_job(self) -> Job:
        self.whole.records.load(TENANT, {id_: {"n": 1, "version": 1} for id_ in self.ids})
        body = parse(f'{{"operation":"bump","subject":"s","ids":{self.ids!r}}}'.replace("'", '"'))
        created = submit(self.whole, TENANT, accept(body, self.whole.operations, max_ids=1000))
        assert isinstance(created, Created)
        return created.job

    @property
    def ids(self) -> list[str]:
        return [f"r{n:03}" for n in range(COUNT)]

    def serve(self, name: str) -> None:
        """Receive a message, if there is one, in a worker of its own."""
        for delivery in self.whole.queues[Lane.BULK].receive(1, 0):
            worker = Worker(name, hung=lambda: self.hung.append(self.whole.runtime.now()))

            def run(delivery: Any = delivery, worker: Worker = worker) -> None:
                decision = on_message(self.world, delivery, worker)
                apply_decision(self.whole.queues[Lane.BULK], delivery, decision)

            self.whole.runtime.spawn(name, run)

    def go_on(self, time: int, done: Callable[[], bool] = lambda: False) -> None:
        for step in range(time // SECOND):
            if done():
                return
            self.serve(f"w{step}")
            self.whole.runtime.sleep(SECOND)
            if step % 10 == 0:
                Recovery(replace(self.whole, sinks={"index": self.index})).run()

    def numbers(self) -> set[object]:
        return {r.fields["n"] for r in self.whole.records.read(TENANT, self.ids).values()}


class _Slow:
    def __init__(self, site: Site, port: object, names: tuple[str, ...]) -> None:
        self._site, self._port, self._names = site, port, names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in self._names:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            what = str(arguments[0]) if name == "transact" else name
            self._site._call(what)
            return found(*arguments, **named)

        return call


HANGS: Final = ("operation", "read", "commit_chunk", "deliver")


@pytest.mark.parametrize("what", HANGS)
def test_c75_a_job_whose_attempt_hangs_goes_on_elsewhere(what: str) -> None:
    """Wherever its thread does not return from; when it does in the end, it changes nothing."""
    site = Site(hangs_at=what)
    job = site.a_job()
    site.go_on(20 * MINUTE, lambda: now(site.whole, job).state.terminal)
    ended = now(site.whole, job)
    assert (ended.state, ended.succeeded, ended.attempt) == (State.SUCCEEDED, COUNT, 2)
    assert site.whole.runtime.now() - job.created_at < 2 * LAST_LEASE + MINUTE
    assert len(site.hung) == site.whole.telemetry.total(Metric.JOB_HUNG) == 1
    assert site.whole.telemetry.actions().count("job_hung") == 1
    site.whole.runtime.sleep(site.takes)
    assert now(site.whole, job) == ended
    assert site.numbers() == {2}
    assert {site.index.documents[id_] for id_ in site.ids} == {(2, 2)}


@pytest.mark.parametrize("what", HANGS)
def test_c75_a_cancel_is_heard_although_the_attempt_hangs(what: str) -> None:
    site = Site(hangs_at=what)
    job = site.a_job()
    site.go_on(10 * SECOND)
    control.cancel(site.whole, TENANT, job.id)
    assert now(site.whole, job).state is State.CANCELLING
    asked = site.whole.runtime.now()
    site.go_on(20 * MINUTE, lambda: now(site.whole, job).state.terminal)
    assert now(site.whole, job).state is State.CANCELLED
    assert site.whole.runtime.now() - asked < LAST_LEASE + ms(TIMING.bulk.visibility) + MINUTE
    assert lease_of(site.whole, job).job_id is None


def test_c75_a_job_that_always_hangs_fails_and_says_so() -> None:
    site = Site(hangs_at="operation", always=True)
    job = site.a_job()
    site.go_on(HOUR, lambda: now(site.whole, job).state.terminal)
    ended = now(site.whole, job)
    assert (ended.state, ended.end_reason) == (State.FAILED, EndReason.ATTEMPTS_EXHAUSTED)
    assert "got no further for 60 s" in ended.message
    assert len(site.hung) == TIMING.bulk.max_attempts


def test_c75_a_slow_job_does_not_hang() -> None:
    """Each of its chunks takes nearly as long as it may."""
    site = Site(hangs_at="operation", always=True, takes=HANG // CHUNK - 2 * SECOND // CHUNK)
    job = site.a_job()
    site.go_on(HOUR, lambda: now(site.whole, job).state.terminal)
    ended = now(site.whole, job)
    assert (ended.state, ended.attempt, site.hung) == (State.SUCCEEDED, 1, [])


def beating(world: MemoryWorld, on_hang: Callable[[], None]) -> tuple[Job, Heartbeat]:
    job = begin(world, new_job(world, fill(world, 1)))
    heart = Heartbeat(world, job, receive(world, Lane.SMALL), on_hang)
    heart.start()
    return job, heart


def test_c75_beats_end_when_nothing_moves_and_the_lease_expires() -> None:
    world = memory_world(timing=TIMING)
    hung: list[bool] = []
    job, heart = beating(world, lambda: hung.append(True))
    world.runtime.sleep(HANG - 1)
    heart.moved()
    world.runtime.sleep(HANG - 1)
    assert (heart.lost, hung) == (False, [])
    assert (lease_of(world, job).expires_at or 0) > world.runtime.now()
    world.runtime.sleep(ms(TIMING.small.heartbeat) + 1)
    assert (heart.lost, hung) == (True, [True])
    assert "got no further" in now(world, job).message
    world.runtime.sleep(ms(TIMING.small.visibility))
    assert (lease_of(world, job).expires_at or 0) < world.runtime.now()
    assert len(world.queues[Lane.SMALL].receive(1, 0)) == 1
    assert hung == [True]
    heart.stop()


def test_c75_a_process_that_stood_still_has_not_hung() -> None:
    """Frozen as a whole, and with it the clock that it looks at; then it goes on."""
    world = memory_world(timing=TIMING)
    hung: list[bool] = []
    _, heart = beating(world, lambda: hung.append(True))
    world.runtime.sleep(SECOND // 2)
    world.runtime._now += 2 * HANG
    world.runtime.sleep(HANG // 2)
    assert hung == []
    heart.stop()


def test_c75_that_it_hangs_is_not_said_of_another_attempt() -> None:
    world = memory_world(timing=TIMING)
    job, heart = beating(world, lambda: None)
    taken: Mapping[str, Any] = {"fence": job.fence + 1, "message": "of another attempt"}
    world.store.transact("taken", [Update(job_key(job.id), set=taken)])
    world.runtime.sleep(HANG + ms(TIMING.small.heartbeat) + 1)
    assert now(world, job).message == "of another attempt"
    assert "hang_not_noted" in world.telemetry.actions()
    heart.stop()
