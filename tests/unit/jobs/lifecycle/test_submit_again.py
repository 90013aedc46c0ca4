"""Creating a job that may be there already: by an earlier write, request or retry of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from handlers.jobs.lifecycle import submit as submitting
from handlers.jobs.lifecycle.submit import Busy, Created, _Submission, submit_prepared
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.finish import Ending, finish_job
from handlers.jobs.words.errors import Reason, Refused, Transient, Why
from handlers.jobs.words.job import Lease
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Delete
from handlers.testing.world import memory_world
from tests.support.jobs import begin, create, fill, new_job, now, write
from tests.support.process import process

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.writes import Write
    from handlers.testing.world import MemoryWorld

IDS = ["r0000", "r0001"]


def another(job: Job, **changed: object) -> Job:
    """A job like this one, for a subject of its own, that is yet to be created."""
    changes = {"id": "another", "subject": "another", "has_slot": False, "dispatches": 0, **changed}
    return job.model_copy(update=changes)


def refused_after_all(world: MemoryWorld) -> None:
    """The first create takes effect, and then its repetition is refused because of that."""
    transact = world.store.transact
    first = ["create"]

    def twice(action: str, writes: Sequence[Write]) -> None:
        transact(action, writes)
        if action in first:
            first.clear()
            items = [world.store.get(write.key) for write in writes]
            raise Refused([Reason(Why.CONDITION, item) for item in items])

    world.store.transact = twice  # type: ignore[method-assign]  # a store that is asked twice


@pytest.mark.parametrize("idempotency", [None, "key"])
def test_its_own_write_is_no_holder_and_no_earlier_request(idempotency: str | None) -> None:
    world = memory_world()
    job = another(new_job(world, fill(world, 2)), idempotency=idempotency)
    refused_after_all(world)
    result = submit_prepared(world, job)
    assert isinstance(result, Created)
    assert (result.job.id, result.replayed) == (job.id, False)
    assert now(world, job) == result.job


def test_an_id_that_is_taken_is_no_reason_to_hold_the_job() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 2))
    before = world.store.snapshot()
    with pytest.raises(Transient, match="id is taken"):
        submit_prepared(world, another(job, id=job.id))
    assert world.store.snapshot() == before


def test_a_request_whose_job_is_gone_makes_no_second_one() -> None:
    world = memory_world()
    made = submit_prepared(world, another(new_job(world, fill(world, 2)), idempotency="key"))
    assert isinstance(made, Created)
    world.store.transact("gone", [Delete(control_table.job_key(made.job.id))])
    with pytest.raises(Transient, match="cannot be read"):
        submit_prepared(world, another(made.job, id="third", subject="third"))


def test_a_second_retry_of_a_job_finds_the_first() -> None:
    world = memory_world()
    old = begin(world, new_job(world, fill(world, 2)))
    retry = another(old, retry_of=old.id)
    with pytest.raises(Transient, match="changed meanwhile"):
        submit_prepared(world, retry)
    write(world, finish_job(world, old, Ending(State.FAILED)).transaction)
    first = submit_prepared(world, retry)
    second = submit_prepared(world, another(retry, id="second", subject="second"))
    assert isinstance(first, Created)
    assert isinstance(second, Created)
    assert (second.job.id, second.replayed) == (first.job.id, True)


# --- what goes with it ------------------------------------------------------------------------


def test_a_held_job_has_no_message_and_another_asks_for_no_slot() -> None:
    world, store = process(memory_world(limits=Limits(tenant_slots_small=1)))
    asked: list[str] = []
    store.before = asked.append
    ids = fill(world, 2)
    first = new_job(world, ids)
    assert "admit" not in asked
    held = new_job(world, ids, "held")
    assert held.held
    [message] = world.queues[first.lane].snapshot()
    assert first.id in message.body


def test_ids_are_stored_beside_the_job_when_they_do_not_fit_into_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = memory_world()
    ids = fill(world, 2)
    size = sum(len(id_) + 3 for id_ in ids)
    for room, subject in ((size, "fits"), (size - 1, "does not")):
        monkeypatch.setattr(submitting, "INLINE_ID_BYTES", room)
        job = new_job(world, ids, subject)
        assert (job.payload is None) is (subject == "fits")
        assert (job.ids is not None) is (subject == "fits")
    assert len(world.payloads.names()) == 1


def test_a_refused_job_drops_its_list_if_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()
    ids = fill(world, 2)
    new_job(world, ids)
    dropped: list[str] = []
    monkeypatch.setattr(world.payloads, "delete", dropped.append)
    assert isinstance(create(world, ids), Busy)
    assert dropped == []
    monkeypatch.setattr(submitting, "INLINE_ID_BYTES", 0)
    assert isinstance(create(world, ids), Busy)
    assert len(dropped) == 1


def test_the_holder_that_the_same_request_made_is_its_answer() -> None:
    """Also when the row of the request is gone."""
    world = memory_world()
    made = submit_prepared(world, another(new_job(world, fill(world, 2)), idempotency="key"))
    assert isinstance(made, Created)
    world.store.transact("gone", [Delete(control_table.request_key("key"))])
    same = submit_prepared(world, another(made.job, id="third"))
    assert isinstance(same, Created)
    assert (same.job.id, same.replayed) == ("another", True)
    for other in (None, "other"):
        result = submit_prepared(world, another(made.job, id="fourth", idempotency=other))
        assert isinstance(result, Busy)


@pytest.mark.parametrize(
    ("change", "taken"),
    [({}, True), ({"expires_at": None}, False), ({"fence": 1}, False), ({"expires_at": 1}, False)],
)
def test_a_holder_is_dead_by_its_own_lease_long_past_its_expiry(
    change: dict[str, int | None], *, taken: bool
) -> None:
    """A number is added."""
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 2)))
    expired = world.runtime.now() - ms(world.timing.takeover_grace) - 1
    lease = Lease(job_id=job.id, fence=job.fence, expires_at=expired)
    values = {n: None if by is None else getattr(lease, n) + by for n, by in change.items()}
    changed = lease.model_copy(update=values)
    assert _Submission(world, job)._may_take_over(changed, job) is taken


def test_a_job_that_has_its_slot_asks_for_no_other() -> None:
    world, store = process(memory_world())
    asked: list[str] = []
    store.before = asked.append
    assert not new_job(world, fill(world, 2)).held
    assert "create" in asked
    assert "admit" not in asked
