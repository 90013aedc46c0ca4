"""Parked effects are found, put back to work, and are only their tenant's to put back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.effects.run import answer_of
from handlers.jobs.lifecycle import replay_effects as replaying
from handlers.jobs.lifecycle.control import NoSuchJob, NotPossible, Unchanged
from handlers.jobs.lifecycle.replay_effects import (
    open_effects_of_all,
    open_effects_of_job,
    replay_effects,
    replay_one,
)
from handlers.jobs.lifecycle.waiting import wait_now
from handlers.jobs.storage import control_table
from handlers.jobs.transitions.pause import note_request
from handlers.jobs.words.errors import Denied, Refused, Transient
from handlers.jobs.words.job import HistoryEntry, Job, Verb
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Delete
from handlers.testing.world import memory_world
from handlers.web.views import effects, job_view
from tests.support.jobs import TENANT, new_job, now, write
from tests.support.sinks import Index, a_world, recover, run_job

if TYPE_CHECKING:
    from handlers.testing.world import MemoryWorld


def parked(count: int = 12) -> tuple[MemoryWorld, Index, Job]:
    index = Index(failures=10**6)
    world = a_world(index, max_effect_tries=2)
    job = run_job(world, count)
    recover(world, 10)
    return world, index, now(world, job)


def test_what_was_given_up_is_listed_with_the_reason() -> None:
    world, _, job = parked()
    for listed in (list(open_effects_of_job(world, job.id)), list(open_effects_of_all(world))):
        assert {undone.effect.position for undone in listed} == {0, 5, 10}
        assert all(undone.effect.parked and undone.error == "index: down" for undone in listed)
        assert all(0 < undone.since <= world.runtime.now() for undone in listed)
    assert effects(job) == {"open": 0, "done": 0, "parked": 3, "refused": 0}


def test_a_replay_ends_the_job() -> None:
    world, index, job = parked()
    index.failures = 0
    again = replay_effects(world, TENANT, job.id)
    assert isinstance(again, Job)
    assert (again.state, again.effects_open, again.effects_parked) == (State.SETTLING, 3, 0)
    assert again.waiting_reason is None
    recover(world, 2)
    ended = now(world, job)
    assert (ended.state, ended.effects_done) == (State.SUCCEEDED, 3)
    assert len(index.documents) == 12
    assert list(open_effects_of_all(world)) == []
    assert effects(ended) == {"open": 0, "done": 3, "parked": 0, "refused": 0}


def told(world: MemoryWorld, job: Job) -> Any:
    seen = now(world, job)
    return job_view(seen, world.runtime.now(), wait_now(world, seen))


def test_c117_a_settling_job_names_its_sinks_and_what_they_answered() -> None:
    index = Index(failures=10**6)
    world = a_world(index, max_effect_tries=3)
    job = run_job(world, 12)
    recover(world, 1)
    world.runtime.sleep(1)
    shown = told(world, job)
    assert shown["state"] == "SETTLING"
    assert shown["waiting"]["sinks"] == [
        {"sink": "index", "last_answer": "it refused the request or did not answer in time"}
    ]
    assert "down" not in str(shown)  # the sink's own words are logged
    recover(world, 10)
    assert told(world, job)["waiting"]["reason"] == "effects_parked"
    assert [each["sink"] for each in told(world, job)["waiting"]["sinks"]] == ["index"]
    index.failures = 0
    replay_effects(world, TENANT, job.id)
    recover(world, 2)
    assert "waiting" not in told(world, job)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Transient("arn:secret"), "it refused the request or did not answer in time"),
        (Transient("arn:secret", retry_after_ms=9), "it asks to wait"),
        (Denied("arn:secret"), "the deployment lacks a permission to send to it"),
    ],
)
def test_c117_an_answer_is_in_words_without_those_of_others(error: Transient, said: str) -> None:
    assert answer_of(error) == said


def test_c117_the_rate_of_a_settling_job_is_that_of_its_work() -> None:
    index = Index(failures=10**6)
    world = a_world(index, max_effect_tries=3)
    job = run_job(world, 12)
    before = told(world, job)["progress"]
    for _ in range(3):
        world.runtime.sleep(10**7)
        assert told(world, job)["progress"] == before
    assert before["percent"] == 100
    assert before["per_second"] > 0
    assert "eta_seconds" not in before


def test_c85_a_replay_is_recorded_once_with_its_caller() -> None:
    world, _, job = parked()
    for who in ("ben", "eve"):
        replay_effects(world, TENANT, job.id, who)
    [entry] = now(world, job).history
    assert (entry.verb, entry.by) == (Verb.REPLAY_EFFECTS, "ben")


def test_c85_two_requests_at_once_are_both_recorded() -> None:
    world = memory_world()
    job = new_job(world, ["a"])
    entries = [HistoryEntry(verb=Verb.REPLAY_EFFECTS, at=n, by=f"p{n}") for n in range(2)]
    first, second = (note_request(world, job, entry) for entry in entries)
    write(world, first)
    with pytest.raises(Refused):
        write(world, second)
    write(world, note_request(world, now(world, job), entries[1]))
    assert now(world, job).history == tuple(entries)


def test_a_replay_that_fails_again_is_parked_again_after_as_many_tries() -> None:
    world, _, job = parked(4)
    assert isinstance(replay_effects(world, TENANT, job.id), Job)
    recover(world, 1)
    assert now(world, job).effects_open == 1
    recover(world, 5)
    assert now(world, job).effects_parked == 1


def test_one_call_puts_back_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "MAX_REPLAYED", 2)
    world, _, job = parked()
    first = replay_effects(world, TENANT, job.id)
    assert isinstance(first, Job)
    assert (first.effects_open, first.effects_parked) == (2, 1)
    second = replay_effects(world, TENANT, job.id)
    assert isinstance(second, Job)
    assert second.effects_parked == 0


def test_c93_nothing_parked_is_said_and_other_tenants_have_no_such_job() -> None:
    world, _, job = parked()
    assert isinstance(replay_effects(world, "another", job.id), NoSuchJob)
    assert isinstance(replay_effects(world, TENANT, "0" * 32), NoSuchJob)
    assert isinstance(replay_effects(world, TENANT, job.id), Job)
    # C93: a repeat finds nothing parked, and says what the job is.
    assert replay_effects(world, TENANT, job.id) == Unchanged(now(world, job))
    silent = memory_world()
    refused = replay_effects(silent, TENANT, new_job(silent, ["a"]).id)
    assert isinstance(refused, NotPossible)
    assert refused.why == "it has no effects to replay"


def test_two_at_once_count_it_once() -> None:
    world, _, job = parked(4)
    [undone] = open_effects_of_job(world, job.id)
    assert [replay_one(world, undone.effect) for _ in range(2)] == [True, False]
    assert now(world, job).effects_open == 1


def test_a_job_without_effects_says_nothing_of_them() -> None:
    _, _, job = parked(4)
    plain = job.model_copy(update={"effects_parked": 0})
    assert effects(plain) is None


def test_a_job_whose_effects_are_all_done_has_nothing_to_replay_and_says_so() -> None:
    index = Index()
    world = a_world(index)
    job = run_job(world, 12)
    assert (job.effects_open, job.effects_done) == (0, 3)
    assert replay_effects(world, TENANT, job.id) == Unchanged(job)


def test_a_job_whose_history_ends_during_a_replay_is_none_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _, job = parked()
    replaying._note(world, TENANT, "none", "")

    def ends(*_: object) -> None:
        world.store.transact("over", [Delete(control_table.job_key(job.id))])

    monkeypatch.setattr(replaying, "_note", ends)
    assert isinstance(replay_effects(world, TENANT, job.id), NoSuchJob)
