"""Every way a message gets into a queue names its tenant's group: valid, and always the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control, dispatch
from handlers.jobs.lifecycle.dead_letters import read_letter, redrive
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.retry_failed import retry_failed
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.transitions.finish import Ending, finish_job
from handlers.jobs.words import messages
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.messages import Message, group_of
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Key, Put, Table
from handlers.testing.lane_queue import MemoryLaneQueue
from handlers.testing.runtime import ManualRuntime
from handlers.testing.world import SHORT, memory_world
from tests.support import aws
from tests.support.world import moto_world

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Delivery, World

TENANT: Final = "Ärzte & Söhne #1"
"""No character of which has to be allowed in a group."""
VALID: Final = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")
"""SQS, SendMessage."""
LIMITS: Final = Limits(chunk_size=1, small_max_items=3, tenant_slots_small=1, tenant_slots_bulk=1)
WORKER: Final = Worker("w")


@dataclass
class Site:
    """A world, and what was sent in it: (job id, group) as it went over the wire."""

    world: World
    sent: list[tuple[str, str | None]]
    subjects: Iterator[int]

    def job(
        self, lane: Lane = Lane.SMALL, *, tolerated: int = 100, stops: bool = True, **params: object
    ) -> Job:
        self.world.runtime.sleep(1)
        body = {
            "operation": "adjust_number",
            "subject": f"s{next(self.subjects)}",
            "params": {"field": "n", "add": 1, **params},
            "ids": [f"r{n}" for n in range(2 if lane is Lane.SMALL else 5)],
            "tolerated_failure_percent": tolerated,
            "stop_when_hopeless": stops,
        }
        request = accept(parse(json.dumps(body)), self.world.operations, max_ids=10)
        made = submit(self.world, TENANT, request)
        assert isinstance(made, Created)
        return made.job

    def now(self, job: Job) -> Job:
        found = read_job(self.world, job.id)
        assert found is not None
        return found

    def receive(self, lane: Lane = Lane.SMALL) -> Delivery:
        [delivery] = self.world.queues[lane].receive(1, 0)
        return delivery

    def work(self, lane: Lane = Lane.SMALL, worker: Worker = WORKER, **changes: Any) -> None:
        delivery = replace(self.receive(lane), **changes)
        apply_decision(self.world.queues[lane], delivery, on_message(self.world, delivery, worker))

    def failed(self, *, at_its_end: bool = False) -> Job:
        """By its tolerance: after its first record, or after its last."""
        job = self.job(tolerated=0, stops=not at_its_end, field="missing")
        self.work()
        self.sent.clear()
        return job

    def recover(self, seconds: int) -> None:
        self.world.runtime.sleep(seconds * 1000)
        self.sent.clear()
        Recovery(self.world).run()


@dataclass(frozen=True)
class Down:
    """A queue that nothing reaches."""

    queue: Any

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        raise Transient

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)


# --- the paths --------------------------------------------------------------------------------


def create(site: Site) -> Job:
    return site.job()


def create_bulk(site: Site) -> Job:
    return site.job(Lane.BULK)


def replay(site: Site) -> Job:
    """The fast path never sent it."""
    whole = site.world
    site.world = replace(whole, queues={lane: Down(q) for lane, q in whole.queues.items()})
    job = site.job()
    site.world = whole
    assert not site.sent
    site.recover(5)
    return job


def lost(site: Site) -> Job:
    """The message is gone, and recovery notices."""
    job = site.job()
    site.world.queues[Lane.SMALL].delete(site.receive().receipt)
    site.recover(70)
    return job


def retry(site: Site) -> Job:
    job = site.failed()
    control.retry(site.world, TENANT, job.id)
    return job


def retry_of_failed_records(site: Site) -> Job:
    made = retry_failed(site.world, TENANT, site.failed(at_its_end=True).id, lambda: False)
    assert isinstance(made, Job)
    return made


def resume(site: Site) -> Job:
    job = site.job()
    control.pause(site.world, TENANT, job.id)
    site.sent.clear()
    control.resume(site.world, TENANT, job.id)
    return job


def redrive_resent(site: Site) -> Job:
    job = site.job()
    letter = read_letter(site.world, site.receive())
    site.sent.clear()
    redrive(site.world, site.world.queues[Lane.SMALL], letter)
    return job


def redrive_retried(site: Site) -> Job:
    job = site.job(tolerated=0, field="missing")
    delivery = site.receive()
    on_message(site.world, delivery, WORKER)
    site.sent.clear()
    letter = read_letter(site.world, delivery)
    redrive(site.world, site.world.queues[Lane.SMALL], letter, force=True)
    return job


def promotion(site: Site) -> Job:
    job = site.job()
    site.sent.clear()
    site.work(worker=Worker("w", deadline=site.world.runtime.now()))
    assert site.now(job).lane is Lane.BULK
    return job


def hand_over(site: Site) -> Job:
    """Twelve hours after its first receive a message can't be hidden any longer."""
    job = site.job(Lane.BULK)
    site.sent.clear()
    site.work(Lane.BULK, first_received_at=site.world.runtime.now() - 12 * 3_600_000)
    return job


def stop_on_the_last_receive(site: Site) -> Job:
    job = site.job(Lane.BULK)
    site.sent.clear()
    last = site.world.timing.bulk.max_receive_count - 1
    site.work(Lane.BULK, Worker("w", stopping=lambda: True), receive_count=last)
    return job


def admission_by_the_finisher(site: Site) -> Job:
    site.job()
    job = site.job()
    assert job.held
    site.sent.clear()
    site.work()
    return job


def admission_by_a_pause(site: Site) -> Job:
    first, job = site.job(), site.job()
    control.pause(site.world, TENANT, first.id)
    assert not site.now(job).held
    return job


def admission_by_recovery(site: Site) -> Job:
    """Who ended the first one died before it could admit the next."""
    first, job = site.job(), site.job()
    ended = finish_job(site.world, first, Ending(State.CANCELLED)).transaction
    site.world.store.transact(ended.action, list(ended.writes.values()))
    site.recover(5)
    assert not site.now(job).held
    return job


def take_over(site: Site) -> Job:
    job = site.job()
    transaction = begin_attempt(
        site.world, job, worker="dead", receipt="r", expired=None
    ).transaction
    site.world.store.transact(transaction.action, list(transaction.writes.values()))
    site.world.runtime.sleep(60_000)
    site.sent.clear()
    number = int(job.subject.removeprefix("s"))
    site.subjects = iter([number])
    taker = site.job()
    assert taker.subject == job.subject
    return taker


PATHS: Final[Sequence[Callable[[Site], Job]]] = (
    create,
    create_bulk,
    replay,
    lost,
    retry,
    retry_of_failed_records,
    resume,
    redrive_resent,
    redrive_retried,
    promotion,
    hand_over,
    stop_on_the_last_receive,
    admission_by_the_finisher,
    admission_by_a_pause,
    admission_by_recovery,
    take_over,
)


# --- worlds -----------------------------------------------------------------------------------


@contextmanager
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    sent: list[tuple[str, str | None]] = []
    accept_ = MemoryLaneQueue._accept

    def noted(queue: MemoryLaneQueue, stored: Any) -> None:
        sent.append((json.loads(stored.body)["job_id"], stored.group))
        accept_(queue, stored)

    monkeypatch.setattr(MemoryLaneQueue, "_accept", noted)
    yield _filled(memory_world(timing=SHORT, limits=LIMITS), sent)


@contextmanager
def moto(_: pytest.MonkeyPatch) -> Iterator[Site]:
    sent: list[tuple[str, str | None]] = []

    def noted(params: Mapping[str, Any], **_: object) -> None:
        sent.extend(
            (json.loads(entry["MessageBody"])["job_id"], entry.get("MessageGroupId"))
            for entry in params.get("Entries", [params])
        )

    events = aws.clients().sqs.meta.events
    names = [f"provide-client-params.sqs.{call}" for call in ("SendMessage", "SendMessageBatch")]
    for name in names:
        events.register(name, noted)
    try:
        with moto_world(timing=SHORT, limits=LIMITS, runtime=ManualRuntime(0)) as world:
            yield _filled(world, sent)
    finally:
        for name in names:
            events.unregister(name, noted)


def _filled(world: World, sent: list[tuple[str, str | None]]) -> Site:
    for n in range(5):
        record = Put(Key(TENANT, f"r{n}", Table.RECORDS), {"n": 1, "version": 1})
        world.store.transact("fill", [record])
    return Site(world, sent, count())


@pytest.fixture(params=[memory, moto], ids=["memory", "moto"])
def site(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with request.param(monkeypatch) as made:
        yield made


def check(site: Site, path: Callable[[Site], Job]) -> None:
    job = path(site)
    groups = [group for job_id, group in site.sent if job_id == job.id]
    assert groups, "nothing was sent"
    assert set(groups) == {group_of(TENANT)}
    assert all(VALID.fullmatch(group or "") for group in groups)


@pytest.mark.parametrize("path", PATHS)
def test_every_send_names_the_tenants_group(site: Site, path: Callable[[Site], Job]) -> None:
    check(site, path)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_with_a_group_of_its_own_would_be_seen(
    site: Site, path: Callable[[Site], Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when it forgot the tenant and took something else."""
    numbers = count()

    def other(tenant: str) -> str:
        return f"{tenant[:0]}group-{next(numbers)}"

    monkeypatch.setattr(messages, "group_of", other)
    monkeypatch.setattr(dispatch, "group_of", other)
    with pytest.raises(AssertionError, match="group-"):
        check(site, path)


def test_a_message_without_a_group_is_not_sent(site: Site) -> None:
    message = Message("a" * 32, Lane.SMALL, "")
    with pytest.raises(ValueError, match="without a group"):
        site.world.queues[Lane.SMALL].send([message])
    assert not site.sent


def test_groups_of_tenants_are_their_own() -> None:
    tenants = [TENANT, "acme", "acme ", "Acme", "a" * 256, "7", "07"]
    groups = {group_of(tenant) for tenant in tenants}
    assert len(groups) == len(tenants)
    assert all(VALID.fullmatch(group) for group in groups)
