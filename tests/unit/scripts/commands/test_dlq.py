"""``fairlane dlq``: every dead letter is shown with its job, and settled without the others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from fairlane_client.commands.app import app
from handlers.jobs.lifecycle import set_aside
from handlers.jobs.lifecycle.dead_letters import read_letter
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import EndReason, Job, Lane
from handlers.jobs.words.messages import group_of
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from handlers.testing.world import MemoryWorld, memory_world
from scripts.commands import dlq
from scripts.ops import letters
from tests.support.jobs import TENANT, fill, new_job, run_next, use_up
from tests.support.operators import seen_by_operator

if TYPE_CHECKING:
    from handlers.jobs.lifecycle.dead_letters import Letter
    from handlers.jobs.words.ports import Delivery

DEAD = Lane.SMALL


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MemoryWorld:
    world = memory_world()
    here = seen_by_operator(world, dead_letters=world.dead_letters)
    monkeypatch.setattr(dlq, "deployment", lambda *_: here)
    return world


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["dlq", *arguments])


def shown(result: Result, status: int = 0) -> dict[str, dict[str, Any]]:
    """Its rows by job."""
    assert result.exit_code == status, result.output
    [rows] = json.loads(result.stdout).values()
    return {row["job"]: row for row in rows}


def dead(world: MemoryWorld, subject: str, **more: object) -> Job:
    """A job whose message the queue has given up on, after one delivery if it has params."""
    job = new_job(world, fill(world, 1), subject, **more)
    [stored] = world.queues[DEAD].snapshot()
    if more:
        run_next(world, DEAD)
    else:
        [delivery] = world.queues[DEAD].receive(1, 0)
        world.queues[DEAD].delete(delivery.receipt)
    world.dead_letters[DEAD].accept_dead_letter(stored, world.runtime.now())
    return job


def failed(world: MemoryWorld, subject: str) -> Job:
    params = {"field": "missing", "add": 1}
    return dead(world, subject, params=params, tolerated_failure_percent=0)


def exhausted(world: MemoryWorld, subject: str) -> Job:
    """A job that failed with every record still to do."""
    job = new_job(world, fill(world, 1), subject)
    use_up(world, job)
    [stored] = world.queues[DEAD].snapshot()
    run_next(world, DEAD)
    world.dead_letters[DEAD].accept_dead_letter(stored, world.runtime.now())
    return job


def broken(world: MemoryWorld, subject: str) -> Job:
    job = dead(world, subject)
    world.store.transact("break", [Update(control_table.job_key(job.id), set={"params": 7})])
    return job


def state(world: MemoryWorld, job: Job) -> State:
    found = read_job(world, job.id)
    assert found is not None
    return found.state


def visible(world: MemoryWorld) -> int:
    return world.dead_letters[DEAD].depth().waiting


def test_letters_are_listed_with_their_jobs_and_nothing_changes(world: MemoryWorld) -> None:
    ran, never, unreadable = failed(world, "a"), dead(world, "b"), broken(world, "c")
    before = world.store.snapshot()
    rows = shown(invoke("list", "--json"))
    assert (rows[ran.id]["state"], rows[ran.id]["reason"]) == ("FAILED", "too_many_failed")
    assert (rows[ran.id]["tenant"], rows[ran.id]["never_started"]) == (TENANT, "")
    assert (rows[never.id]["state"], rows[never.id]["never_started"]) == ("QUEUED", "yes")
    assert rows[unreadable.id]["problem"].startswith("undecodable")
    assert visible(world) == len(rows) == 3
    assert world.store.snapshot() == before


def test_one_jobs_letters_are_settled_and_the_others_stay(world: MemoryWorld) -> None:
    ran, never = exhausted(world, "a"), dead(world, "b")
    rows = shown(invoke("redrive", "--job", ran.id, "--json"))
    assert {job: row["fate"] for job, row in rows.items()} == {ran.id: "retried"}
    assert state(world, ran) is State.QUEUED
    assert visible(world) == 1
    assert [*shown(invoke("list", "--json"))] == [never.id]


def test_what_is_refused_stays_and_the_exit_status_says_so(world: MemoryWorld) -> None:
    ran, never = failed(world, "a"), dead(world, "b")
    newer = new_job(world, fill(world, 1), "a")
    rows = shown(invoke("redrive", "--json"), status=1)
    assert {job: row["fate"] for job, row in rows.items()} == {
        ran.id: "refused",
        never.id: "resent",
    }
    assert newer.id in rows[ran.id]["why"]
    assert [*shown(invoke("list", "--json"))] == [ran.id]


def test_a_letter_that_cannot_be_settled_keeps_no_other(world: MemoryWorld) -> None:
    ran, never = failed(world, "a"), dead(world, "b")
    lease = control_table.lease_key(TENANT, "a")
    world.store.transact("break", [Update(lease, set={"fence": "none"})])
    rows = shown(invoke("redrive", "--json"), status=1)
    assert {job: row["fate"] for job, row in rows.items()} == {
        ran.id: "refused",
        never.id: "resent",
    }
    assert [*shown(invoke("list", "--json"))] == [ran.id]


def test_letters_that_became_visible_meanwhile_are_shown_all_the_same(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many letters that looking at them takes longer than the first one is hidden."""

    def slow(world: MemoryWorld, delivery: Delivery) -> Letter:
        world.runtime.sleep((letters.LOOKING + 1) * 1000)
        return read_letter(world, delivery)

    monkeypatch.setattr(letters, "read_letter", slow)
    job = dead(world, "a")
    [stored] = world.dead_letters[DEAD].snapshot()
    world.dead_letters[Lane.BULK].accept_dead_letter(stored, world.runtime.now())
    assert [*shown(invoke("list", "--json"))] == [job.id]


def test_no_letters_is_said(world: MemoryWorld) -> None:
    assert invoke("list").stdout == invoke("redrive").stdout == "no dead letters\n"


def test_c118_what_would_fail_again_is_refused_until_it_is_forced(world: MemoryWorld) -> None:
    job = new_job(world, fill(world, 1), "a")
    [stored] = world.queues[DEAD].snapshot()
    end_job(world, job, Ending(State.FAILED, EndReason.BAD_UPLOAD, "line 3 is no JSON"))
    world.dead_letters[DEAD].accept_dead_letter(stored, world.runtime.now())
    rows = shown(invoke("redrive", "--json"), status=1)
    assert (rows[job.id]["fate"], state(world, job)) == ("refused", State.FAILED)
    assert "line 3 is no JSON" in rows[job.id]["why"]
    assert visible(world) == 1
    rows = shown(invoke("redrive", "--force", "--json"))
    assert (rows[job.id]["fate"], state(world, job)) == ("retried", State.QUEUED)


def unreadable(world: MemoryWorld) -> str:
    """The message id of a dead letter that points to no job."""
    new_job(world, fill(world, 1), "u")
    [stored] = world.queues[DEAD].snapshot()
    [delivery] = world.queues[DEAD].receive(1, 0)
    world.queues[DEAD].delete(delivery.receipt)
    foreign = replace(stored, body="[not ours]", message_id="foreign-1")
    world.dead_letters[DEAD].accept_dead_letter(foreign, world.runtime.now())
    return foreign.message_id


def test_c109_a_letter_is_shown_with_its_body_and_id(world: MemoryWorld) -> None:
    message = unreadable(world)
    [row] = shown(invoke("list", "--json")).values()
    assert (row["message"], row["body"]) == (message, "[not ours]")
    text = invoke("list", "--bodies").stdout
    assert "[not ours]" in text
    assert "[not ours]" not in invoke("list").stdout


def test_c109_a_letter_is_set_aside_with_its_body_and_the_others_stay(world: MemoryWorld) -> None:
    message, other = unreadable(world), dead(world, "b")
    rows = shown(invoke("set-aside", "--message", message, "--why", "whose is it?", "--json"))
    assert rows[""]["fate"] == "set_aside"
    assert [*shown(invoke("list", "--json"))] == [other.id]
    [kept] = json.loads(invoke("list", "--aside", "--json").stdout)["set_aside"]
    assert (kept["message"], kept["body"], kept["why"]) == (message, "[not ours]", "whose is it?")
    assert invoke("put-back", "--message", message).exit_code != 0
    assert json.loads(invoke("list", "--aside", "--json").stdout)["set_aside"]


def test_c109_the_letter_of_a_job_is_set_aside_put_back_and_redriven(world: MemoryWorld) -> None:
    job = exhausted(world, "a")
    shown(invoke("set-aside", "--job", job.id, "--json"))
    assert visible(world) == 0
    [kept] = json.loads(invoke("list", "--aside", "--json").stdout)["set_aside"]
    assert invoke("put-back", "--message", kept["message"]).exit_code == 0
    assert json.loads(invoke("list", "--aside", "--json").stdout)["set_aside"] == []
    rows = shown(invoke("redrive", "--json"))
    assert (rows[job.id]["fate"], state(world, job)) == ("retried", State.QUEUED)
    [sent] = world.queues[DEAD].snapshot()
    assert sent.group == group_of(TENANT)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [([], 2), (["--message", "a", "--job", "b"], 2), (["--message", "nobody"], 1)],
)
def test_c109_letters_that_are_not_named_stay(
    world: MemoryWorld, arguments: list[str], status: int
) -> None:
    dead(world, "a")
    assert invoke("set-aside", *arguments).exit_code == status
    assert visible(world) == 1


def test_c109_what_cannot_be_kept_stays(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_aside, "MAX_BODY_BYTES", 3)
    job = dead(world, "a")
    rows = shown(invoke("set-aside", "--job", job.id, "--json"), status=1)
    assert "at most 3 can be kept" in rows[job.id]["why"]
    assert visible(world) == 1
