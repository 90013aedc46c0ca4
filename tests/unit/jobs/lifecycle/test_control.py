"""Every verb in every state, and what happens when the job moves under it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.control import Answer, NoSuchJob, NotPossible, Unchanged
from handlers.jobs.lifecycle.retry_failed import retry_failed
from handlers.jobs.lifecycle.submit import Busy, Created, TooMany
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.transitions.pause import pause_transaction
from handlers.jobs.transitions.quotas import set_most_active
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import EndReason, Job, Lane, Traversal, Waiting
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Delete, Update
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT, create, fill, new_job, now, prices, receive, run_next, use_up
from tests.support.process import lose, nth, process

Verb = Callable[[MemoryWorld, str, str], Answer]
VERBS: dict[str, Verb] = {
    "cancel": control.cancel,
    "pause": control.pause,
    "resume": control.resume,
    "retry": control.retry,
}
Q, R, C, P, D = State.QUEUED, State.RUNNING, State.CANCELLING, State.PAUSING, State.PAUSED
S, F, X, T = State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SETTLING
# What each verb makes of each state; None is a refusal that changes nothing.
TABLE: dict[State, dict[str, State | None]] = {
    Q: {"cancel": X, "pause": D, "resume": Q, "retry": Q},
    R: {"cancel": C, "pause": P, "resume": R, "retry": R},
    C: {"cancel": C, "pause": None, "resume": None, "retry": None},
    P: {"cancel": C, "pause": P, "resume": None, "retry": None},
    D: {"cancel": X, "pause": D, "resume": Q, "retry": None},
    T: {"cancel": None, "pause": None, "resume": None, "retry": None},
    S: {"cancel": None, "pause": None, "resume": None, "retry": None},
    X: {"cancel": X, "pause": None, "resume": None, "retry": None},
    F: {"cancel": None, "pause": None, "resume": None, "retry": Q},
}


def job_in(world: MemoryWorld, state: State) -> Job:
    """A job brought to the state as it would come there."""
    job = new_job(world, fill(world, 3))
    if state is F:
        use_up(world, job)
    if state in {R, C, P, T}:
        receipt = receive(world, Lane.SMALL).receipt
        made = begin_attempt(world, job, worker="w", receipt=receipt, expired=None).transaction
        world.store.transact(made.action, list(made.writes.values()))
    if state in {C, X}:
        control.cancel(world, TENANT, job.id)
    if state in {P, D}:
        control.pause(world, TENANT, job.id)
    if state in {S, F}:
        run_next(world, Lane.SMALL)
    if state is T:
        settling = Update(control_table.job_key(job.id), set={"state": T.value})
        world.store.transact("settling", [settling])
    assert now(world, job).state is state
    return job


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("state", TABLE)
def test_c93_what_a_verb_makes_of_a_state(state: State, verb: str) -> None:
    world = memory_world(tick=1)
    job = job_in(world, state)
    before = world.store.snapshot(), world.queues[Lane.SMALL].snapshot()
    answer = VERBS[verb](world, TENANT, job.id)
    expected = TABLE[state][verb]
    if expected is None:
        assert isinstance(answer, NotPossible)
        assert answer.job.state is state
        assert answer.why
    elif expected is state and state not in {C, P}:
        # C93: what was asked for is done already.
        assert answer == Unchanged(now(world, job))
    else:
        assert isinstance(answer, Job)
        assert answer.state is now(world, job).state is expected
        assert answer == now(world, job)
    if expected in {None, state}:
        assert (world.store.snapshot(), world.queues[Lane.SMALL].snapshot()) == before


def test_the_table_knows_every_state() -> None:
    assert TABLE.keys() == set(State)


@pytest.mark.parametrize("verb", VERBS)
def test_another_tenants_job_and_none_at_all_are_the_same(verb: str) -> None:
    world = memory_world()
    job = job_in(world, State.QUEUED)
    before = world.store.snapshot()
    assert VERBS[verb](world, "other", job.id) == NoSuchJob()
    assert VERBS[verb](world, TENANT, "none") == NoSuchJob()
    assert world.store.snapshot() == before


@pytest.mark.parametrize("verb", ["cancel", "pause"])
def test_a_running_job_follows_at_its_next_chunk_boundary(verb: str) -> None:
    world = memory_world(limits=Limits(chunk_size=10))
    ids = fill(world, 40)
    job = new_job(world, ids)
    looks = iter(range(100))

    def ask_in_the_third_look() -> bool:
        if next(looks) == 2:
            VERBS[verb](world, TENANT, job.id)
        return False

    run_next(world, Lane.SMALL, stopping=ask_in_the_third_look)
    after = now(world, job)
    assert after.state is (State.CANCELLED if verb == "cancel" else State.PAUSED)
    assert (after.position, after.succeeded) == (20, 20)
    assert prices(world, ids[:20]) == {11}
    assert prices(world, ids[20:]) == {10}
    taken = isinstance(create(world, ids), Busy)
    assert taken is (verb == "pause")
    if verb == "pause":
        control.resume(world, TENANT, job.id)
        run_next(world, Lane.SMALL)
        assert now(world, job).succeeded == 40
        assert prices(world, ids) == {11}


@pytest.mark.parametrize("verb", ["cancel", "pause"])
@pytest.mark.parametrize("state", [S, F])
def test_c93_a_stop_of_a_job_with_another_end_is_refused(state: State, verb: str) -> None:
    """A repeat is accepted because the job is what was asked for; this one never will be."""
    world = memory_world()
    job = job_in(world, state)
    answer = VERBS[verb](world, TENANT, job.id)
    assert isinstance(answer, NotPossible)
    assert answer.job == now(world, job)


def test_c93_a_pausing_job_is_cancelled_at_the_same_chunk_boundary() -> None:
    world = memory_world(limits=Limits(chunk_size=10))
    ids = fill(world, 40)
    job = new_job(world, ids)
    looks = iter(range(100))
    seen: list[State] = []

    def ask_in_the_third_look() -> bool:
        if next(looks) == 2:
            for verb in ("pause", "cancel", "pause", "cancel"):
                VERBS[verb](world, TENANT, job.id)
                seen.append(now(world, job).state)
        return False

    run_next(world, Lane.SMALL, stopping=ask_in_the_third_look)
    assert seen == [P, C, C, C]
    after = now(world, job)
    assert (after.state, after.position, after.has_slot) == (X, 20, False)
    assert prices(world, ids[:20]) == {11}
    assert prices(world, ids[20:]) == {10}
    assert isinstance(create(world, ids), Created)


def test_c93_a_cancel_that_meets_the_end_of_the_pause_cancels_the_paused_job() -> None:
    """The worker pauses the job between the request's reading and writing."""
    world = memory_world()
    ids = fill(world, 3)
    job = new_job(world, ids)

    here, store = process(world)
    asked = iter(range(100))
    receipt = receive(world, Lane.SMALL).receipt
    begun = begin_attempt(world, job, worker="w", receipt=receipt, expired=None)
    world.store.transact(begun.transaction.action, list(begun.transaction.writes.values()))
    control.pause(world, TENANT, job.id)
    paused = pause_transaction(world, now(world, job)).transaction

    def end_of_the_pause(action: str) -> None:
        if action == "ask_cancelling" and next(asked) == 0:
            world.store.transact(paused.action, list(paused.writes.values()))

    store.before = end_of_the_pause
    answer = control.cancel(here, TENANT, job.id)
    assert isinstance(answer, Job)
    assert answer.state is now(world, job).state is X
    assert isinstance(create(world, ids), Created)


@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_a_held_job_leaves_the_line(verb: str) -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    ids = fill(world, 2)
    first, held, last = (new_job(world, ids, subject=f"s{n}") for n in range(3))
    VERBS[verb](world, TENANT, held.id)
    slots = world.store.get(control_table.slots_key(TENANT, Lane.SMALL)) or {}
    assert (slots["in_flight"], slots["held"]) == (1, 1)
    for _ in range(2):
        run_next(world, Lane.SMALL)
    assert {now(world, each).state for each in (first, last)} == {State.SUCCEEDED}
    assert now(world, held).state in {State.PAUSED, State.CANCELLED}


@pytest.mark.parametrize("state", [State.PAUSED, State.FAILED])
def test_a_job_that_comes_back_waits_when_its_tenant_has_no_slot(state: State) -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    back = job_in(world, state)
    other = new_job(world, ["r0000"], subject="other")
    assert not other.held
    answer = VERBS["resume" if state is State.PAUSED else "retry"](world, TENANT, back.id)
    assert isinstance(answer, Job)
    assert (answer.held, answer.waiting_reason) == (True, Waiting.TENANT_LIMIT)
    while world.queues[Lane.SMALL].snapshot():
        run_next(world, Lane.SMALL)
    assert now(world, back).state.terminal
    assert now(world, other).state is State.SUCCEEDED


def test_c67_a_retry_starts_with_fresh_attempts_and_a_higher_fence() -> None:
    world = memory_world()
    failed = now(world, job_in(world, State.FAILED))
    spent = Update(control_table.job_key(failed.id), set={"attempt": 5})
    world.store.transact("spent", [spent])
    answer = control.retry(world, TENANT, failed.id)
    assert isinstance(answer, Job)
    assert (answer.attempt, answer.end_reason, answer.finished_at) == (0, None, None)
    assert answer.fence > failed.fence
    stored = now(world, failed)
    assert (stored.attempt, stored.end_reason, stored.finished_at) == (0, None, None)


def test_c67_a_retry_of_a_job_whose_subject_moved_on_touches_nothing() -> None:
    world = memory_world()
    failed = job_in(world, State.FAILED)
    newer = new_job(world, ["r0000"])
    before = world.store.snapshot()
    assert control.retry(world, TENANT, failed.id) == Busy(newer.id, State.QUEUED)
    assert world.store.snapshot() == before


@pytest.mark.parametrize(
    ("state", "verb", "action"),
    [
        (State.QUEUED, "cancel", "end_cancelled"),
        (State.QUEUED, "pause", "pause"),
        (State.RUNNING, "cancel", "ask_cancelling"),
        (State.RUNNING, "pause", "ask_pausing"),
        (State.PAUSING, "cancel", "ask_cancelling"),
        (State.PAUSED, "resume", "requeue"),
        (State.FAILED, "retry", "requeue"),
    ],
)
def test_a_lost_reply_is_not_a_refusal(state: State, verb: str, action: str) -> None:
    world, store = process(memory_world())
    job = job_in(world, state)
    before = store.times(action)
    store.after = nth(1, action, lose)
    answer = VERBS[verb](world, TENANT, job.id)
    assert store.times(action) == before + 1
    assert isinstance(answer, Job)
    assert answer.state is now(world, job).state is TABLE[state][verb]
    slots = world.store.get(control_table.slots_key(TENANT, Lane.SMALL)) or {}
    expected = 0 if answer.state in {State.CANCELLED, State.PAUSED} else 1
    assert slots["in_flight"] == expected


def test_a_job_that_never_holds_still_is_given_up_with_nothing_done() -> None:
    world = memory_world()
    job = job_in(world, State.QUEUED)
    moved = Update(control_table.job_key(job.id), add={"attempt": 1})
    here, store = process(world)

    def moving(action: str) -> None:
        if action.startswith("end_"):
            world.store.transact("moved", [moved])

    store.before = moving
    with pytest.raises(Transient):
        control.cancel(here, TENANT, job.id)
    assert now(world, job).state is State.QUEUED


def test_cancel_pause_resume_and_retry() -> None:
    world = memory_world()
    ids = fill(world, 3)
    job = new_job(world, ids)
    paused = control.pause(world, TENANT, job.id)
    assert isinstance(paused, Job)
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.PAUSED
    assert isinstance(control.cancel(world, "other", job.id), control.NoSuchJob)
    resumed = control.resume(world, TENANT, job.id)
    assert isinstance(resumed, Job)
    assert isinstance(control.cancel(world, TENANT, job.id), Job)
    run_next(world, Lane.SMALL)
    assert now(world, job).state is State.CANCELLED
    assert control.cancel(world, TENANT, job.id) == Unchanged(now(world, job))
    assert prices(world, ids) == {10}
    assert isinstance(create(world, ids), Created)


def test_a_failed_job_is_retried_from_its_checkpoint() -> None:
    world = memory_world()
    ids = fill(world, 3)
    job = new_job(world, ids)
    use_up(world, job)
    run_next(world, Lane.SMALL)
    failed = now(world, job)
    assert (failed.state, failed.end_reason) == (State.FAILED, EndReason.ATTEMPTS_EXHAUSTED)
    retried = control.retry(world, TENANT, job.id)
    assert isinstance(retried, Job)
    assert retried.fence > failed.fence


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("exhausted", [False, True])
def test_c83_a_retry_that_would_do_nothing_is_refused_and_names_the_way_out(
    *, live: bool, exhausted: bool
) -> None:
    """Its records are all done, and the tolerance decides the same again, whatever it ended of."""
    world = memory_world()
    params = {"field": "weight", "add": 1}
    job = new_job(world, fill(world, 3), tolerated_failure_percent=0, params=params)
    run_next(world, Lane.SMALL)
    ended: dict[str, str] = {"end_reason": EndReason.ATTEMPTS_EXHAUSTED.value} if exhausted else {}
    if live:
        ended["traversal"] = Traversal.LIVE.value
    if ended:
        key = control_table.job_key(job.id)
        world.store.transact("as if", [Update(key, set=dict(ended))])
    before = world.store.snapshot(), world.queues[Lane.SMALL].snapshot()
    answer = control.retry(world, TENANT, job.id)
    assert isinstance(answer, NotPossible)
    assert "failed_only=true" in answer.why
    assert (world.store.snapshot(), world.queues[Lane.SMALL].snapshot()) == before
    again = retry_failed(world, TENANT, job.id, lambda: False)
    assert isinstance(again, Job)
    assert (again.total, again.retry_of) == (3, job.id)


# --- a retry ----------------------------------------------------------------------------------


def changed(world: MemoryWorld, job: Job, **attributes: object) -> None:
    update = Update(control_table.job_key(job.id), set=attributes)  # type: ignore[arg-type]  # values of items
    world.store.transact("change", [update])


def test_a_job_whose_failed_records_are_tried_by_another_is_not_retried() -> None:
    world = memory_world()
    job = job_in(world, F)
    changed(world, job, retried_by="other")
    answer = control.retry(world, TENANT, job.id)
    assert isinstance(answer, NotPossible)
    assert "job other" in answer.why


def test_a_job_whose_lease_is_gone_is_not_retried() -> None:
    world = memory_world()
    job = job_in(world, F)
    world.store.transact("gone", [Delete(control_table.lease_key(TENANT, job.subject))])
    answer = control.retry(world, TENANT, job.id)
    assert isinstance(answer, NotPossible)
    assert "lease" in answer.why


def test_a_job_that_failed_after_its_last_record_is_retried_if_it_would_succeed() -> None:
    world = memory_world()
    job = job_in(world, F)
    changed(world, job, position=3, succeeded=3)
    assert isinstance(control.retry(world, TENANT, job.id), Job)
    other = memory_world()
    job = job_in(other, F)
    changed(other, job, position=3, failed=3, tolerated_failure_percent=0)
    assert isinstance(control.retry(other, TENANT, job.id), NotPossible)


def test_a_job_without_a_slot_that_meets_the_limit_of_active_jobs_is_refused() -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    job = job_in(world, F)
    new_job(world, ["r0000"], subject="other")
    here, store = process(world)
    store.before = nth(2, "requeue", lambda: set_most_active(world, TENANT, 0))
    assert isinstance(control.retry(here, TENANT, job.id), TooMany)
    assert now(world, job).state is F


def test_a_job_without_a_slot_that_moves_meanwhile_is_asked_again() -> None:
    world = memory_world(limits=Limits(tenant_slots_small=1))
    job = job_in(world, F)
    new_job(world, ["r0000"], subject="other")
    here, store = process(world)
    store.before = nth(2, "requeue", lambda: changed(world, job, attempt=9))
    answer = control.retry(here, TENANT, job.id)
    assert isinstance(answer, Job)
    assert answer.held
    assert now(world, job) == answer
