"""What an ended job leaves behind is removed, and nothing of its successor."""

from __future__ import annotations

import pytest

from handlers.jobs.execution.decisions import DeleteMessage
from handlers.jobs.lifecycle import control, submit
from handlers.jobs.lifecycle.cleanup import clean_up, release_if_held
from handlers.jobs.lifecycle.finish import end_job
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_lease
from handlers.jobs.transitions.finish import Ending
from handlers.jobs.words.job import EndReason, Job
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Item, Update
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT, begin, fill, new_job, now, run_next


def test_the_clean_up_of_a_failed_job_does_not_free_the_subject_of_its_retry() -> None:
    world = memory_world()
    job = begin(world, new_job(world, fill(world, 3)))
    end_job(world, job, Ending(State.FAILED, EndReason.ATTEMPTS_EXHAUSTED))
    failed = now(world, job)
    assert isinstance(control.retry(world, TENANT, job.id), Job)
    release_if_held(world, failed)
    lease = read_lease(world, job)
    assert lease is not None
    assert lease.job_id == job.id


@pytest.mark.parametrize("by", ["its message", "recovery"])
def test_an_ended_job_that_cannot_be_decoded_leaves_no_id_list(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit, "INLINE_ID_BYTES", 0)
    world = memory_world()
    job = new_job(world, fill(world, 3))
    key = control_table.job_key(job.id)
    ended: Item = {"state": "CANCELLED", "cleanup": True, "has_slot": False, "retries": "many"}
    due = control_table.due(control_table.CLEANUP, job.id, job.created_at, world.due_shards)
    world.store.transact("break", [Update(key, set={**ended, **due})])
    assert world.payloads.names() == {job.payload}
    if by == "recovery":
        Recovery(world).run()
    else:
        assert run_next(world) == DeleteMessage("undecodable")
    item = world.store.get(key) or {}
    assert item["cleanup"] is False
    assert not set(control_table.NOT_DUE) & item.keys()
    assert world.payloads.names() == frozenset()


def test_a_job_without_a_stored_list_deletes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3)).model_copy(update={"cleanup": True})
    deleted: list[str] = []
    monkeypatch.setattr(world.payloads, "delete", deleted.append)
    clean_up(world, job)
    clean_up(world, job.model_copy(update={"payload": "list"}))
    clean_up(world, job.model_copy(update={"payload": "kept", "cleanup": False}))
    assert deleted == ["list"]


@pytest.mark.parametrize(
    ("change", "freed"), [({}, True), ({"job_id": "other"}, False), ({"fence": 1}, False)]
)
def test_a_subject_is_freed_by_its_holder_under_its_fence_alone(
    change: dict[str, int | str], *, freed: bool
) -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3))
    key = control_table.lease_key(TENANT, job.subject)
    if change:
        world.store.transact("change", [Update(key, set=change)])
    release_if_held(world, job)
    lease = read_lease(world, job)
    assert lease is not None
    assert (lease.job_id is None) is freed
    assert "release_overtaken" not in world.telemetry.actions()
