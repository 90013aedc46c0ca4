"""A worker that beats keeps its lease and its message."""

from __future__ import annotations

import pytest

from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.metrics import Metric
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Update
from handlers.testing.world import SHORT, MemoryWorld, memory_world
from tests.support.jobs import TENANT, begin, fill, lease_of, new_job, receive
from tests.support.process import process

BEAT = ms(SHORT.small.heartbeat)
TTL = ms(SHORT.small.lease_ttl)


def beating() -> tuple[MemoryWorld, Job, Heartbeat]:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    heart = Heartbeat(world, job, receive(world, Lane.SMALL))
    heart.start()
    return world, job, heart


def test_lease_and_message_are_kept_for_as_long_as_it_beats() -> None:
    world, job, heart = beating()
    world.runtime.sleep(ms(SHORT.small.visibility) * 3)
    assert not heart.lost
    assert not world.queues[Lane.SMALL].receive(1, 0)
    assert (lease_of(world, job).expires_at or 0) > world.runtime.now()
    heart.stop()
    world.runtime.sleep(ms(SHORT.small.visibility))
    assert len(world.queues[Lane.SMALL].receive(1, 0)) == 1


def test_a_lease_that_is_anothers_is_lost_at_the_next_beat_and_stays_anothers() -> None:
    world, job, heart = beating()
    key = control_table.lease_key(TENANT, job.subject)
    world.store.transact("taken", [Update(key, set={"job_id": "newer"})])
    before = lease_of(world, job)
    world.runtime.sleep(BEAT + 1)
    assert heart.lost
    heart.stop()
    assert lease_of(world, job) == before


def test_a_store_that_is_silent_for_a_leases_length_loses_it() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    heart = Heartbeat(tapped(world), job, receive(world, Lane.SMALL))
    heart.start()
    lost = []
    for ms_ in (TTL - 1, 1):
        world.runtime.sleep(ms_)
        lost.append(heart.lost)
    assert lost == [False, True]
    heart.stop()


def tapped(world: MemoryWorld) -> MemoryWorld:
    """The world whose store refuses each beat."""
    seen, store = process(world)

    def down(action: str) -> None:
        if action == "beat":
            raise Transient

    store.before = down
    return seen


def test_the_receipt_that_another_worker_handed_over_is_extended_too() -> None:
    world, job, heart = beating()
    handed = Update(control_table.job_key(job.id), set={"receipt": "handed over"})
    world.store.transact("handed", [handed])
    world.runtime.sleep(BEAT + 1)
    assert heart.receipt == "handed over"
    assert "receipt_expired" in world.telemetry.actions()
    heart.stop()


@pytest.mark.parametrize("broken", ["transact", "get", "set_visibility"])
def test_c76_beats_go_on_after_an_error_of_any_kind(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that no table knows, of the lease, the job or the message: counted, and no more."""
    world, job, heart = beating()
    port = world.queues[Lane.SMALL] if broken == "set_visibility" else world.store
    whole = getattr(port, broken)
    failed = 0

    def once(*arguments: object) -> object:
        nonlocal failed
        failed += 1
        if failed == 1:
            raise ZeroDivisionError("an error that nobody has thought of")
        return whole(*arguments)

    monkeypatch.setattr(port, broken, once)
    world.runtime.sleep(3 * BEAT + 1)
    assert failed >= 3
    assert not heart.lost
    assert (lease_of(world, job).expires_at or 0) > world.runtime.now() + TTL - BEAT
    assert world.telemetry.total(Metric.BEATS_FAILED) == 1
    errors = [line.fields["error"] for line in world.telemetry.lines if "beat" in line.action]
    assert [type(error) for error in errors] == [ZeroDivisionError]
    heart.stop()


def test_c76_without_one_good_beat_the_lease_is_lost_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _, heart = beating()
    monkeypatch.setattr(world.store, "transact", lambda *_: 1 / 0)
    lost = []
    for ms_ in (TTL - 1, 1):
        world.runtime.sleep(ms_)
        lost.append(heart.lost)
    assert lost == [False, True]
    heart.stop()
