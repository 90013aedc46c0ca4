"""Case C80: whether a transaction whose reply was lost has taken effect, as its job then tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest

from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.storage.transaction import Transaction, Transition
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.transitions.chunk_commit import commit_chunk, id_list_written, total_known
from handlers.jobs.transitions.enqueue import (
    admit_job,
    create_job,
    dispatch_again,
    queued_job,
    requeue_job,
)
from handlers.jobs.transitions.finish import Ending, finish_job
from handlers.jobs.transitions.pause import note_request, pause_transaction, request_stop
from handlers.jobs.transitions.release import Release, release_attempt
from handlers.jobs.transitions.takeover import take_over
from handlers.jobs.words.job import HistoryEntry, Verb
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.world import memory_world
from tests.support.jobs import begin, fill, lease_of, new_job, write

if TYPE_CHECKING:
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.writes import Value
    from handlers.testing.world import MemoryWorld

ENTRY: Final = HistoryEntry(verb=Verb.PAUSE, at=1, by="me")


Change: TypeAlias = "Mapping[str, Value]"


@dataclass(frozen=True)
class Sent:
    """A transaction that would be accepted, and the job that it changes or makes."""

    world: MemoryWorld
    transaction: Transaction
    job_id: str

    def job(self) -> Job | None:
        return read_job(self.world, self.job_id)

    def applied(self) -> bool:
        return self.transaction.applied(self.world)

    def change(self, by: Change) -> None:
        """Another process changes the job. by: a number is added to the one that is there."""
        job = self.job()
        assert job is not None
        values = {n: getattr(job, n) + v if isinstance(v, int) else v for n, v in by.items()}
        key = control_table.job_key(self.job_id)
        self.world.store.transact("change", [Update(key, set=values)])


def sent(world: MemoryWorld, made: Transaction | Transition, job: Job) -> Sent:
    transaction = made.transaction if isinstance(made, Transition) else made
    return Sent(world, transaction, job.id)


def queued() -> tuple[MemoryWorld, Job]:
    world = memory_world()
    return world, new_job(world, fill(world, 3))


def running() -> tuple[MemoryWorld, Job]:
    world, job = queued()
    return world, begin(world, job)


def fresh_of(world: MemoryWorld, job: Job) -> Job:
    """A new job for the subject of a job that has it or had it."""
    changes = {"id": "fresh", "fence": job.fence + 9, "dispatches": 0}
    return queued_job(world, job.model_copy(update=changes), held=False)


def create() -> Sent:
    world, job = running()
    write(world, finish_job(world, job, Ending(State.FAILED)).transaction)
    fresh = fresh_of(world, job)
    return sent(world, create_job(world, fresh), fresh)


def take_subject() -> Sent:
    world, old = running()
    fresh = fresh_of(world, old)
    return sent(world, take_over(world, fresh, lease_of(world, old), old), fresh)


def begin_a_job() -> Sent:
    world, job = queued()
    return sent(world, begin_attempt(world, job, worker="w", receipt="r", expired=None), job)


def let_go() -> Sent:
    world, job = running()
    return sent(world, release_attempt(world, job, Release(give_back=True)), job)


def requeue_failed() -> Sent:
    world, job = running()
    ended = finish_job(world, job, Ending(State.FAILED))
    write(world, ended.transaction)
    again = queued_job(world, ended.after.model_copy(update={"fence": job.fence + 5}), held=False)
    return sent(world, requeue_job(world, ended.after, again, lease_of(world, job)), job)


def requeue_paused() -> Sent:
    world, job = queued()
    paused = pause_transaction(world, job)
    write(world, paused.transaction)
    again = queued_job(world, paused.after, held=False)
    return sent(world, requeue_job(world, paused.after, again, None), job)


def admit() -> Sent:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    first, waiting = (new_job(world, fill(world, 1), subject) for subject in ("a", "b"))
    assert waiting.held
    write(world, finish_job(world, first, Ending(State.CANCELLED)).transaction)
    return sent(world, admit_job(world, waiting), waiting)


def send_again() -> Sent:
    world, job = queued()
    return sent(world, dispatch_again(world, job, lease_of(world, job)), job)


def pause() -> Sent:
    world, job = queued()
    return sent(world, pause_transaction(world, job), job)


def ask_to_cancel() -> Sent:
    world, job = running()
    return sent(world, request_stop(world, job, State.CANCELLING), job)


def note() -> Sent:
    world, job = running()
    return sent(world, note_request(world, job, ENTRY), job)


def end() -> Sent:
    world, job = running()
    return sent(world, finish_job(world, job, Ending(State.FAILED)), job)


def settle() -> Sent:
    world, job = running()
    ending = Ending(State.SETTLING, settles_to=State.SUCCEEDED)
    return sent(world, finish_job(world, job, ending), job)


def chunk() -> Sent:
    world, job = running()
    after = job.model_copy(update={"position": 2, "cursor": 2, "succeeded": 2})
    return sent(world, commit_chunk(world, job, after, records=[], outcomes={}), job)


def id_list() -> Sent:
    world, job = running()
    return sent(world, id_list_written(world, job, payload="list", total=3, duplicates=0), job)


def walked() -> Sent:
    world, job = running()
    return sent(world, total_known(world, job.model_copy(update={"total": None})), job)


STATE: Final = {state: {"state": state.value} for state in State}
LATER: Final[Mapping[Callable[[], Sent], tuple[Change, ...]]] = {
    create: (STATE[State.SUCCEEDED],),
    take_subject: (STATE[State.SUCCEEDED],),
    begin_a_job: ({"position": 1}, STATE[State.CANCELLING]),
    let_go: ({"dispatches": 1},),
    requeue_failed: (STATE[State.RUNNING], {"fence": 1}, {"dispatches": 1}),
    requeue_paused: (STATE[State.RUNNING], {"fence": 1}, {"dispatches": 1}),
    admit: (STATE[State.RUNNING], {"fence": 1}),
    send_again: (STATE[State.RUNNING], {"dispatches": 1}),
    pause: (),
    ask_to_cancel: (),
    note: (STATE[State.SUCCEEDED], {"fence": 1}),
    end: (),
    settle: (STATE[State.SUCCEEDED],),
    chunk: ({"position": 1}, STATE[State.CANCELLING]),
    id_list: ({"fence": 1}, STATE[State.CANCELLING]),
    walked: ({"fence": 1},),
}
"""What others may have made of the job since: the transaction has taken effect all the same."""
OTHERS: Final[Mapping[Callable[[], Sent], tuple[Change, ...]]] = {
    begin_a_job: ({"worker": "other"}, {"fence": 1}),
    let_go: (STATE[State.RUNNING], {"fence": 1}),
    requeue_failed: (
        STATE[State.FAILED],
        STATE[State.CANCELLED],
        {"fence": -1},
        {"dispatches": -1},
    ),
    requeue_paused: (
        STATE[State.PAUSED],
        STATE[State.CANCELLED],
        {"fence": -1},
        {"dispatches": -1},
    ),
    admit: ({"waiting_reason": "tenant_limit"}, {"dispatches": 1}),
    send_again: ({"dispatches": -1},),
    pause: (STATE[State.QUEUED], {"fence": 1}),
    ask_to_cancel: (STATE[State.CANCELLED], {"fence": 1}),
    end: (STATE[State.SUCCEEDED], {"fence": 1}),
    settle: (STATE[State.FAILED], {"fence": 1}),
    chunk: ({"fence": 1}, {"position": -1}),
    id_list: ({"payload": "other"},),
    walked: ({"total": 1},),
}
"""What the job is when it was another's transaction that took effect."""


def cases(changes: Mapping[Callable[[], Sent], tuple[Change, ...]]) -> list[object]:
    return [
        pytest.param(make, change, id=f"{make.__name__} {change}")
        for make, each in changes.items()
        for change in each
    ]


@pytest.mark.parametrize("make", LATER, ids=lambda make: make.__name__)
def test_c80_a_transaction_has_taken_effect_when_it_is_written(make: Callable[[], Sent]) -> None:
    found = make()
    assert not found.applied()
    write(found.world, found.transaction)
    assert found.applied()


@pytest.mark.parametrize(("make", "change"), cases(LATER))
def test_c80_what_others_did_since_hides_no_effect(
    make: Callable[[], Sent], change: Change
) -> None:
    found = make()
    write(found.world, found.transaction)
    found.change(change)
    assert found.applied()


@pytest.mark.parametrize(("make", "change"), cases(OTHERS))
def test_c80_another_s_transaction_is_not_taken_for_ours(
    make: Callable[[], Sent], change: Change
) -> None:
    found = make()
    write(found.world, found.transaction)
    found.change(change)
    assert not found.applied()
