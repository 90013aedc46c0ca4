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
