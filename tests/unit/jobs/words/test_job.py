"""What a job says of itself."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handlers.jobs.words.job import Counts, Job, Lane, Traversal, Waiting
from handlers.jobs.words.states import State
from handlers.jobs.words.upload import Format, Upload

JOB = Job(
    id="j",
    tenant="acme",
    subject="s",
    operation="bump",
    params="{}",
    lane=Lane.BULK,
    state=State.QUEUED,
    fence=1,
    created_at=1000,
)
UPLOAD = Upload(format=Format.JSONL, name="u", version="1", size=3)


@pytest.mark.parametrize(
    ("selection", "unprepared"),
    [
        ({"ids": ("a",)}, False),
        ({"upload": UPLOAD}, True),
        ({"upload": UPLOAD, "payload": "ids/1"}, False),
        ({"traversal": Traversal.SNAPSHOT}, True),
        ({"traversal": Traversal.LIVE}, False),
    ],
)
def test_an_id_list_is_made_first_where_there_is_none(
    selection: dict[str, object], *, unprepared: bool
) -> None:
    assert JOB.model_copy(update=selection).unprepared is unprepared


def test_only_a_live_walk_ends_by_knowing_its_total() -> None:
    live = JOB.model_copy(update={"traversal": Traversal.LIVE})
    assert not live.walked_to_its_end
    assert live.model_copy(update={"total": 0}).walked_to_its_end
    assert not JOB.model_copy(update={"total": 0}).walked_to_its_end


def test_only_a_queued_job_is_held() -> None:
    waiting = JOB.model_copy(update={"waiting_reason": Waiting.TENANT_LIMIT})
    assert waiting.held
    assert not waiting.model_copy(update={"state": State.PAUSED}).held
    assert not JOB.held


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.QUEUED, None),
        (State.RUNNING, None),
        (State.PAUSED, None),
        (State.SETTLING, 3),
        (State.SUCCEEDED, 3),
        (State.CANCELLED, 3),
    ],
)
def test_only_a_job_that_has_ended_has_left_records_alone(
    state: State, expected: int | None
) -> None:
    job = JOB.model_copy(update={"state": state, "total": 5, "position": 2})
    assert job.not_tried == expected
    assert job.model_copy(update={"total": None}).not_tried is None
    assert job.model_copy(update={"position": 7}).not_tried == (None if expected is None else 0)


@pytest.mark.parametrize(
    ("lane", "state", "reason", "expected"),
    [
        (Lane.BULK, State.QUEUED, None, True),
        (Lane.BULK, State.QUEUED, Waiting.RETRY, True),
        (Lane.BULK, State.QUEUED, Waiting.TENANT_LIMIT, False),
        (Lane.BULK, State.RUNNING, Waiting.WORKER_LOST, True),
        (Lane.BULK, State.RUNNING, Waiting.RATE_LIMIT, False),
        (Lane.BULK, State.RUNNING, None, False),
        (Lane.BULK, State.PAUSED, None, False),
        (Lane.BULK, State.CANCELLING, Waiting.WORKER_LOST, False),
        (Lane.SMALL, State.QUEUED, None, False),
    ],
)
def test_a_job_waits_for_a_slot_of_the_bulk_lane_alone(
    lane: Lane,
    state: State,
    reason: Waiting | None,
    expected: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    job = JOB.model_copy(update={"lane": lane, "state": state, "waiting_reason": reason})
    assert job.waits_for_slot is expected


@pytest.mark.parametrize("state", [State.CANCELLING, State.PAUSING])
def test_a_job_that_stops_waits_for_a_lost_worker_alone(state: State) -> None:
    job = JOB.model_copy(update={"state": state})
    assert job.waits_for is None
    lost = job.model_copy(update={"waiting_reason": Waiting.WORKER_LOST})
    assert lost.waits_for is Waiting.WORKER_LOST
    limited = job.model_copy(update={"waiting_reason": Waiting.RATE_LIMIT})
    assert limited.waits_for is None


def test_a_dwell_is_never_negative_and_unknown_before_the_start() -> None:
    assert JOB.dwell_ms is None
    started = JOB.model_copy(update={"admitted_at": 2000, "started_at": 2500})
    assert started.dwell_ms == 500
    assert started.model_copy(update={"started_at": 1500}).dwell_ms == 0


def test_counts_add_up_and_are_never_negative() -> None:
    total = Counts(succeeded=1, failed=2) + Counts(failed=1, skipped=4)
    assert total == Counts(succeeded=1, failed=3, skipped=4)
    assert total.done == 8
    with pytest.raises(ValidationError):
        Counts(failed=-1)
