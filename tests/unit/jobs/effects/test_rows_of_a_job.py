"""What the result of a run does to the effect's row and to its job, whatever the job is then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.effects.rows import _written, claim_effect, record_run, replay_effect
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.effect import EffectRun
from handlers.jobs.words.errors import OutcomeUnknown
from handlers.jobs.words.job import Lane, Waiting
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Delete, Index, Update
from tests.support.effect_rows import claimed, row_of, with_effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.effect import Effect
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.writes import Item, Write
    from handlers.testing.world import MemoryWorld

DONE: Final = EffectRun(todo={}, refused=())
FAILED: Final = EffectRun(todo={"index": None}, refused=(), error="down")
REFUSED: Final = EffectRun(todo={"index": None}, refused=(("index", "r0000", "no"),))
LAST: Final[Item] = {"state": "SETTLING", "settles_to": "FAILED", "effects_open": 1}


def record(world: MemoryWorld, effect: Effect, ran: EffectRun) -> bool:
    return record_run(world, effect, ran, Lane.SMALL)


def job_of(world: MemoryWorld, effect: Effect) -> Job:
    job = read_job(world, effect.job_id)
    assert job is not None
    return job


def job_gone(world: MemoryWorld, effect: Effect) -> None:
    world.store.transact("history is over", [Delete(control_table.job_key(effect.job_id))])


def test_the_last_effect_ends_its_job_as_it_was_judged() -> None:
    for settles_to, state in (("FAILED", State.FAILED), (None, State.SUCCEEDED)):
        world, effect = claimed({"state": "SETTLING", "effects_open": 1})
        if settles_to:
            change = Update(control_table.job_key(effect.job_id), set={"settles_to": settles_to})
            world.store.transact("judged", [change])
        assert record(world, effect, DONE)
        assert job_of(world, effect).state is state
        [line] = [line for line in world.telemetry.lines if line.action == "job_settled"]
        assert line.fields["state"] is state
        assert row_of(world, effect) is None


def test_with_a_parked_effect_left_the_job_waits_for_it() -> None:
    world, effect = claimed({**LAST, "effects_parked": 1})
    assert record(world, effect, DONE)
    job = job_of(world, effect)
    assert (job.state, job.waiting_reason) == (State.SETTLING, Waiting.EFFECTS_PARKED)
    [line] = [line for line in world.telemetry.lines if line.action == "job_settled"]
    assert line.fields["state"] is State.FAILED


def test_an_effect_of_a_job_whose_history_is_over_just_ends() -> None:
    world, effect = claimed()
    job_gone(world, effect)
    assert record(world, effect, DONE)
    assert row_of(world, effect) is None


def test_an_effect_of_a_job_whose_history_is_over_is_not_parked() -> None:
    most = claimed()[0].limits.max_effect_tries
    world, effect = claimed(tries=most - 1)
    job_gone(world, effect)
    before = row_of(world, effect)
    assert not record(world, effect, FAILED)
    assert row_of(world, effect) == before
    assert "effect_overtaken" in world.telemetry.actions()


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"state": "RUNNING", "effects_open": 1},
        {"state": "SETTLING", "effects_open": 2},
        {"state": "RUNNING", "effects_open": 2},
    ],
)
def test_what_is_no_longer_the_last_effect_ends_no_job(meanwhile: Item) -> None:
    world, effect = claimed(LAST)
    get = world.store.get
    seen: list[object] = []

    def moved(key: object) -> Item | None:
        if key == control_table.job_key(effect.job_id) and not seen:
            seen.append(key)
            world.store.transact("moved", [Update(key, set=meanwhile)])
        return get(key)  # type: ignore[arg-type]  # a key

    world.store.get = moved  # type: ignore[method-assign]  # a store that others use, too
    sent: list[str] = []
    transact = world.store.transact

    def watched(action: str, writes: Sequence[Write]) -> None:
        sent.append(action)
        transact(action, writes)

    world.store.transact = watched  # type: ignore[method-assign]  # a store that is watched
    assert not record(world, effect, DONE)
    assert seen
    assert sent == ["effect_done", "moved"]
    assert job_of(world, effect).state.value == meanwhile["state"]
    assert row_of(world, effect) is not None


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (LAST, Waiting.EFFECTS_PARKED),
        ({**LAST, "effects_open": 2}, None),
        ({"effects_open": 1}, None),
    ],
)
def test_a_job_waits_for_a_parked_effect_when_it_was_the_last_open_one(
    job: Item, reason: Waiting | None
) -> None:
    most = claimed()[0].limits.max_effect_tries
    world, effect = claimed(job, tries=most - 1)
    assert not record(world, effect, FAILED)
    after = job_of(world, effect)
    assert (after.waiting_reason, after.effects_parked) == (reason, 1)


def test_an_effect_that_nothing_refused_writes_no_refusals() -> None:
    world, effect = claimed()
    assert not record(world, effect, FAILED)
    assert control_table.refused_key(effect.job_id, 0, effect.tries) not in world.store.snapshot()
    assert job_of(world, effect).effects_refused == 0
    assert "effect_refused" not in world.telemetry.actions()
    assert not record(world, replace(effect, claimed_until=due(world, effect)), REFUSED)
    assert job_of(world, effect).effects_refused == 1
    assert "effect_refused" in world.telemetry.actions()


def due(world: MemoryWorld, effect: Effect) -> int:
    return int(str((row_of(world, effect) or {})[Index.DUE.sk]))


def test_an_effect_whose_job_s_history_is_over_can_be_replayed() -> None:
    world, effect = with_effect(parked=True)
    job_gone(world, effect)
    replay_effect(world, effect)
    assert "parked" not in (row_of(world, effect) or {})


def test_a_replay_ends_the_wait_of_a_job_that_settles_alone() -> None:
    for state, left in (("SETTLING", False), ("RUNNING", True)):
        waits: Item = {"state": state, "waiting_reason": "effects_parked", "effects_parked": 1}
        world, effect = with_effect(waits, parked=True)
        replay_effect(world, effect)
        assert (job_of(world, effect).waiting_reason is not None) is left


# --- after a lost reply -----------------------------------------------------------------------


def test_a_result_is_written_when_the_row_is_gone_or_has_more_tries() -> None:
    world, effect = claimed()
    assert not _written(effect, world)
    key = control_table.effect_key(effect.job_id, 0)
    world.store.transact("more", [Update(key, add={"tries": 1})])
    assert _written(effect, world)
    world.store.transact("gone", [Delete(key)])
    assert _written(effect, world)


def test_a_result_of_a_claimed_row_is_written_when_it_is_due_at_another_time() -> None:
    world, effect = claimed()
    key = control_table.effect_key(effect.job_id, 0)
    world.store.transact("later", [Update(key, add={Index.DUE.sk: 1})])
    assert _written(effect, world)
    assert not _written(replace(effect, claimed_until=None), world)


def test_a_result_whose_reply_is_lost_is_recorded_once() -> None:
    world, effect = claimed()
    transact = world.store.transact
    sent: list[str] = []

    def deaf(action: str, writes: Sequence[Write]) -> None:
        transact(action, writes)
        sent.append(action)
        raise OutcomeUnknown

    world.store.transact = deaf  # type: ignore[method-assign]  # a store whose replies are lost
    assert record(world, effect, DONE)
    assert sent == ["effect_done"]
    assert job_of(world, effect).effects_done == 1


def test_two_claims_of_one_row_are_told_apart_by_their_time() -> None:
    world, effect = with_effect()
    taken = claim_effect(world, effect, due(world, effect))
    assert taken.claimed_until == due(world, effect)
