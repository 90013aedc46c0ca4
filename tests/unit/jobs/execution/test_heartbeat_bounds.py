"""The heartbeat's decisions at their bounds: when an attempt hangs, and which messages it keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import Lane
from handlers.jobs.words.timing import SECOND, VISIBILITY_CAP, ms
from handlers.jobs.words.writes import Update
from handlers.testing.world import SHORT, memory_world
from tests.support.jobs import begin, fill, new_job, receive

if TYPE_CHECKING:
    from handlers.jobs.words.job import Job
    from handlers.testing.world import MemoryWorld

TTL: Final = ms(SHORT.small.lease_ttl)
HANG: Final = ms(SHORT.hang_after)


def heart(hidden_for: int | None = None) -> tuple[MemoryWorld, Job, Heartbeat]:
    """hidden_for: seconds for which the message can still be hidden."""
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 1)))
    delivery = receive(world, Lane.SMALL)
    if hidden_for is not None:
        first = world.runtime.now() - VISIBILITY_CAP + hidden_for * SECOND
        delivery = replace(delivery, first_received_at=first)
    return world, job, Heartbeat(world, job, delivery)


@pytest.mark.parametrize(("still", "hangs"), [(HANG - 1, False), (HANG, True)])
def test_an_attempt_hangs_when_it_has_not_moved_for_so_long(still: int, *, hangs: bool) -> None:
    world, _, beats = heart()
    now = world.runtime.now()
    for at in range(0, still, TTL - 1):
        assert not beats._hangs(now + at)
    assert beats._hangs(now + still) is hangs


@pytest.mark.parametrize(("stood", "hangs"), [(TTL - 1, True), (TTL, False)])
def test_a_process_that_stood_still_as_a_whole_has_not_hung(stood: int, *, hangs: bool) -> None:
    world, _, beats = heart()
    now = world.runtime.now()
    for at in range(0, HANG - stood, TTL - 1):
        beats._hangs(now + at)
    beats._hangs(now + HANG - stood)
    assert beats._hangs(now + HANG) is hangs


def test_a_heartbeat_that_never_began_stops() -> None:
    _, _, beats = heart()
    beats.stop()


def test_after_a_lost_lease_there_is_no_other_beat() -> None:
    world, job, beats = heart()
    sent: list[str] = []
    transact = world.store.transact

    def watched(action: str, writes: object) -> None:
        sent.append(action)
        transact(action, writes)  # type: ignore[arg-type]  # what it was given

    key = control_table.lease_key(job.tenant, job.subject)
    transact("taken", [Update(key, set={"job_id": "other"})])
    world.store.transact = watched  # type: ignore[method-assign]  # a store that is watched
    beats.start()
    world.runtime.sleep(5 * ms(SHORT.small.heartbeat))
    beats.stop()
    assert sent == ["beat"]


@pytest.mark.parametrize(("hidden_for", "extended"), [(0, []), (1, [1]), (-1, []), (10**6, [12])])
def test_a_message_is_hidden_no_longer_than_it_can_be(
    hidden_for: int, extended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _, beats = heart(hidden_for)
    asked: list[int] = []
    queue = world.queues[Lane.SMALL]
    monkeypatch.setattr(queue, "set_visibility", lambda _receipt, seconds: asked.append(seconds))
    beats._extend(beats.receipt)
    assert asked == extended


def test_only_a_receipt_that_a_worker_stored_takes_the_place_of_its_own() -> None:
    world, job, beats = heart()
    own = beats.receipt
    key = control_table.job_key(job.id)
    world.store.transact("none", [Update(key, remove=("receipt",))])
    beats._keep_message()
    assert beats.receipt == own
    world.store.transact("newer", [Update(key, set={"receipt": "newer"})])
    beats._keep_message()
    assert beats.receipt == "newer"
