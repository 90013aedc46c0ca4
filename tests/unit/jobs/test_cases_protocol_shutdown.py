"""Cases of workers that are asked to stop, or have no time left (C21, C24, C28)."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from handlers.jobs.execution.decisions import KeepMessage
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import ms
from handlers.testing.world import memory_world
from tests.support.jobs import fill, free, new_job, now, prices, run_next
from tests.support.process import Killed, die, nth, process

CHUNK = 10
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("lane", list(Lane))
def test_c21_a_stop_saves_the_checkpoint_and_returns_the_message_at_once(lane: Lane) -> None:
    limit = 1 if lane is Lane.BULK else 1000
    world = memory_world(limits=Limits(chunk_size=CHUNK, small_max_items=limit))
    ids = fill(world, 20 * CHUNK)
    job = new_job(world, ids)
    here, store = process(world)
    decision = run_next(here, lane, stopping=lambda: store.times("commit_chunk") == 7)
    assert isinstance(decision, KeepMessage)
    assert decision.seconds == 0
    stopped = now(world, job)
    assert (stopped.state, stopped.position, stopped.attempt) == (State.QUEUED, 7 * CHUNK, 0)
    [line] = [line for line in world.telemetry.lines if line.action == "attempt_given_back"]
    assert line.fields["why"] == "shutdown"
    assert line.fields["job_id"] == job.id
    # No time passes: another worker can have it now, and goes on where the first one stopped.
    again, at = process(world)
    run_next(again, lane)
    assert at.times("commit_chunk") == 13
    done = now(world, job)
    assert (done.state, done.succeeded, done.attempt) == (State.SUCCEEDED, len(ids), 1)
    assert prices(world, ids) == {11}


def test_c21_however_often_it_is_stopped_a_job_is_not_failed_for_it() -> None:
    """More stops than attempts and receives: deploy after deploy."""
    world = memory_world(limits=Limits(chunk_size=CHUNK, small_max_items=1))
    ids = fill(world, 3 * CHUNK)
    job = new_job(world, ids)
    stops = 2 * world.timing.bulk.max_receive_count
    for _ in range(stops):
        run_next(world, Lane.BULK, stopping=lambda: True)
    assert not world.dead_letters[Lane.BULK].snapshot()
    run_next(world, Lane.BULK)
    done = now(world, job)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
    assert prices(world, ids) == {11}


@pytest.mark.parametrize("left", [0, 1, 500])
def test_c28_a_job_begun_with_no_time_left_is_never_in_progress_for_ever(left: int) -> None:
    """ms left when the message comes; the function is killed in its first chunk, if it begins one:
    then the attempt has an expiry. Otherwise the job has gone on to the bulk lane."""
    world = memory_world(limits=Limits(chunk_size=CHUNK))
    ids = fill(world, 3 * CHUNK)
    job = new_job(world, ids)
    here, store = process(world)
    store.before = nth(1, "commit_chunk", die)
    with suppress(Killed):
        run_next(here, Lane.SMALL, deadline=world.runtime.now() + left)
    begun = left >= ms(world.timing.small_reserve)
    assert now(world, job).lane is (Lane.SMALL if begun else Lane.BULK)
    lease = read_lease(world, job)
    assert lease is not None
    expires = world.runtime.now() + ms(world.timing.small.lease_ttl) if begun else None
    assert lease.expires_at == expires
    world.runtime.sleep(ms(world.timing.small.visibility))
    run_next(world, Lane.SMALL if begun else Lane.BULK)
    assert now(world, job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}
    assert free(world, job)


def test_c28_an_attempt_is_written_together_with_its_expiry() -> None:
    world = memory_world(limits=Limits(chunk_size=CHUNK))
    job = new_job(world, fill(world, CHUNK))
    here, store = process(world)
    seen: list[object] = []

    def look(action: str) -> None:
        lease = read_lease(world, job)
        assert lease is not None
        if now(world, job).state is State.RUNNING:
            seen.append((action, lease.expires_at))

    store.after = look
    run_next(here, Lane.SMALL)
    begun = world.runtime.now() + ms(world.timing.small.lease_ttl)
    assert seen == [("begin", begun), ("commit_chunk", begun)]


def test_c24_the_image_starts_python_itself_so_that_it_gets_the_signal() -> None:
    """The process that gets it is stopped for real in the end-to-end tests."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    starts = [line for line in lines if line.startswith(("ENTRYPOINT", "CMD"))]
    assert len(starts) == 1
    words = json.loads(starts[0].removeprefix("ENTRYPOINT"))
    assert words == ["python", "-m", "handlers.bulk_worker"]
