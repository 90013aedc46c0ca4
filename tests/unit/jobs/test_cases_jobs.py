"""Cases of other systems' failures that one job in memory can show (see the case's number)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from handlers.jobs.execution.decisions import DeleteMessage, apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Busy, Created
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Record
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.world import MemoryWorld, memory_world
from handlers.web.views import job_view
from tests.support.jobs import TENANT, create, fill, new_job, now, prices, receive, run_next
from tests.support.results import stored_results

if TYPE_CHECKING:
    from handlers.testing.job_store import MemoryStore

CHUNK = 10


class Killed(BaseException):
    """The process is gone."""


class Records(MemoryRecordStore):
    """Records whose n-th read fails, while it is told to."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.reads = 0
        self.fail_at: int | None = None
        self.error: BaseException = RuntimeError("a bug")
        self.wanted: list[str] = []

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        self.reads += 1
        self.wanted += ids
        if self.reads == self.fail_at:
            raise self.error
        return super().read(tenant, ids)


def watched() -> tuple[MemoryWorld, Records]:
    made = memory_world(limits=Limits(chunk_size=CHUNK))
    records = Records(made.store)
    return replace(made, records=records), records


def free(world: MemoryWorld, job: Job) -> bool:
    """Subject, slot and queue hold nothing of the job any more."""
    lease = read_lease(world, job)
    slots = world.store.get(control_table.slots_key(TENANT, job.lane)) or {}
    empty = not world.queues[job.lane].snapshot()
    return lease is not None and lease.job_id is None and not slots.get("in_flight") and empty


def killed(world: MemoryWorld) -> None:
    """Receive and run a message in a process that dies; its lease and message then run out."""
    with pytest.raises(Killed):
        on_message(world, receive(world, Lane.SMALL), Worker("dies"))
    world.runtime.sleep(world.timing.small.visibility * 1000)


def percent(world: MemoryWorld, job: Job) -> int:
    return int(job_view(job, world.runtime.now())["progress"]["percent"])


def listed(world: MemoryWorld, job: Job, kind: str) -> list[str]:
    return [entry["id"] for entry in stored_results(world, job.id, kind)]


# --- C61: nothing to do -----------------------------------------------------------------------


def test_c61_records_that_are_all_gone_end_the_job_at_once() -> None:
    world, _ = watched()
    job = new_job(world, [f"gone{n}" for n in range(25)])
    assert isinstance(run_next(world, Lane.SMALL), DeleteMessage)
    ended = now(world, job)
    assert (ended.state, ended.total, ended.skipped) == (State.SUCCEEDED, 25, 25)
    assert percent(world, ended) == 100
    assert len(listed(world, job, "skipped")) == 25
    assert free(world, job)
    assert world.telemetry.actions().count("job_ended") == 1


def test_c61_a_job_of_no_records_divides_by_nothing() -> None:
    """No request makes one today; a query that matches nothing will."""
    world, records = watched()
    job = new_job(world, ["a"])
    none = Update(control_table.job_key(job.id), set={"total": 0, "ids": []})
    world.store.transact("empty", [none])
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.state, percent(world, ended)) == (State.SUCCEEDED, 100)
    assert records.reads == 0
    assert free(world, job)


# --- C64: what ends how -----------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 3], ids=["first chunk", "last chunk"])
def test_c64_a_bug_in_a_chunk_ends_the_job_as_failed(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _ = watched()
    ids = fill(world, 3 * CHUNK)
    job = new_job(world, ids)
    done = (chunk - 1) * CHUNK
    poisoned = ids[done]

    def read(self: Records, tenant: str, wanted: Sequence[str]) -> Mapping[str, Record]:
        if poisoned in wanted:
            raise RuntimeError("a bug")
        return MemoryRecordStore.read(self, tenant, wanted)

    monkeypatch.setattr(Records, "read", read)
    rounds = 0
    while not now(world, job).state.terminal:
        rounds += 1
        assert rounds < 50
        world.runtime.sleep(10_000)
        Recovery(world).run()
        for delivery in world.queues[Lane.SMALL].receive(1, 0):
            apply_decision(
                world.queues[Lane.SMALL], delivery, on_message(world, delivery, Worker("w1"))
            )
    ended = now(world, job)
    assert (ended.state, ended.end_reason) == (State.FAILED, EndReason.ATTEMPTS_EXHAUSTED)
    assert (ended.position, ended.succeeded) == (done, done)
    monkeypatch.undo()
    assert prices(world, ids[done:]) == {10}
    assert free(world, job)
    assert isinstance(create(world, ids), Created)


def test_c64_a_crash_between_the_last_chunk_and_the_end_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, records = watched()
    ids = fill(world, 2 * CHUNK)
    job = new_job(world, ids)

    def die(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as broken:
        broken.setattr("handlers.jobs.execution.attempt.end_job", die)
        killed(world)
    assert (now(world, job).state, now(world, job).position) == (State.RUNNING, len(ids))
    before = records.reads
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.state, ended.succeeded, ended.attempt) == (State.SUCCEEDED, len(ids), 2)
    assert records.reads == before
    assert prices(world, ids) == {11}


def test_c64_three_bad_records_of_a_hundred_end_with_three_listed() -> None:
    world, _ = watched()
    ids = fill(world, 100)
    bad = ["r0007", "r0042", "r0099"]
    world.records.load(TENANT, {id_: {"price": "x"} for id_ in bad})
    job = new_job(world, ids)
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.state, ended.succeeded, ended.failed) == (State.SUCCEEDED, 97, 3)
    assert listed(world, job, "failed") == bad


@pytest.mark.parametrize(
    ("tolerated", "state"), [(2, State.FAILED), (3, State.SUCCEEDED), (100, State.SUCCEEDED)]
)
def test_c64_how_many_may_fail_is_the_requests_choice(tolerated: int, state: State) -> None:
    world, _ = watched()
    ids = fill(world, 100)
    world.records.load(TENANT, {id_: {"price": "x"} for id_ in ids[:3]})
    job = new_job(world, ids, tolerated_failure_percent=tolerated)
    run_next(world, Lane.SMALL)
    assert now(world, job).state is state
    assert free(world, job)


# --- C40, C41, C57: checkpoints ---------------------------------------------------------------


def test_c40_the_checkpoint_never_passes_a_write_that_did_not_happen() -> None:
    world, records = watched()
    ids = fill(world, 2 * CHUNK)
    job = new_job(world, ids)
    records.fail_at, records.error = 2, Killed()
    killed(world)
    assert now(world, job).position == CHUNK
    assert prices(world, ids[CHUNK:]) == {10}
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.state, ended.succeeded) == (State.SUCCEEDED, len(ids))
    assert prices(world, ids) == {11}


def test_c41_a_second_crash_before_any_progress_keeps_the_checkpoint() -> None:
    world, records = watched()
    ids = fill(world, 8 * CHUNK)
    job = new_job(world, ids)
    records.error = Killed()
    for fail_at in (4, 5):
        records.fail_at = fail_at
        records.wanted.clear()
        killed(world)
        assert now(world, job).position == 3 * CHUNK
    assert records.wanted == ids[3 * CHUNK : 4 * CHUNK]
    records.wanted.clear()
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.SUCCEEDED
    assert records.wanted == ids[3 * CHUNK :]
    assert prices(world, ids) == {11}


def test_c57_repeated_ids_count_once_also_across_chunks_and_a_resume() -> None:
    world, records = watched()
    ids = fill(world, 2 * CHUNK)
    job = new_job(world, [*ids, *ids, ids[0]])
    assert (job.total, job.duplicates) == (len(ids), len(ids) + 1)
    records.fail_at, records.error = 2, Killed()
    killed(world)
    run_next(world, Lane.SMALL)
    ended = now(world, job)
    assert (ended.succeeded, percent(world, ended)) == (len(ids), 100)
    assert prices(world, ids) == {11}


# --- C10, C12: leases that must not stick -----------------------------------------------------


def test_c10_a_killed_worker_blocks_the_subject_only_until_its_job_went_on() -> None:
    world, records = watched()
    ids = fill(world, 5 * CHUNK)
    job = new_job(world, ids)
    records.fail_at, records.error = 3, Killed()
    with pytest.raises(Killed):
        on_message(world, receive(world, Lane.SMALL), Worker("dies"))
    assert create(world, ids) == Busy(job.id, State.RUNNING)
    world.runtime.sleep(world.timing.small.visibility * 1000)
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.SUCCEEDED
    assert isinstance(create(world, ids), Created)


@pytest.mark.parametrize("broken", [{"state": "NONSENSE"}, {"total": -1}, {"params": 7}])
def test_c12_a_job_nobody_can_read_lets_go_of_its_subject(broken: dict[str, str | int]) -> None:
    world, _ = watched()
    job = new_job(world, ["a"])
    world.store.transact("break", [Update(control_table.job_key(job.id), set=broken)])
    assert isinstance(run_next(world, Lane.SMALL), DeleteMessage)
    item = world.store.get(control_table.job_key(job.id))
    assert item is not None
    assert (item["state"], item["end_reason"]) == ("FAILED", "undecodable")
    assert free(world, job)
    assert isinstance(create(world, ["a"]), Created)


def test_c12_a_job_whose_id_list_is_gone_fails_and_lets_go() -> None:
    world = memory_world()
    ids = [f"{n:060}" for n in range(1000)]
    job = new_job(world, ids)
    assert job.payload is not None
    world.payloads.delete(job.payload)
    assert isinstance(run_next(world, Lane.BULK), DeleteMessage)
    ended = now(world, job)
    assert (ended.state, ended.end_reason) == (State.FAILED, EndReason.PAYLOAD_GONE)
    assert free(world, job)
    assert isinstance(create(world, ids), Created)


def test_c06_an_end_and_a_cancel_at_once_have_one_winner() -> None:
    """Whoever comes second is told so, and gives nothing back twice."""
    world, records = watched()
    ids = fill(world, CHUNK)
    job = new_job(world, ids)
    run_next(world, Lane.SMALL)
    before = world.store.snapshot()
    assert isinstance(control.cancel(world, TENANT, job.id), control.NotPossible)
    assert world.store.snapshot() == before
    assert records.reads == 1
