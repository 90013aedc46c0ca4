"""What drift finds becomes reindex jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import Mock

import pytest

from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.record_schema import RecordSchema
from handlers.settings import WorkSettings
from handlers.testing.world import MemoryWorld, memory_world
from infra.settings import PRODUCTION_TIMING
from scripts.commands import drift as command
from scripts.commands.drift import Repairs, facts_of
from scripts.ops.deployment import Deployment
from scripts.ops.drift import Difference, Drift, Kind, Sides
from tests.support.operators import OPERATOR
from tests.support.search import Reply, Transport, sink_over

TENANT = "acme"
SETTINGS = WorkSettings(
    control_table="control",
    records_table="records",
    idempotency_table="idempotency",
    payload_bucket="payloads",
    small_queue_url="small",
    bulk_queue_url="bulk",
    timing=PRODUCTION_TIMING,
)


def repairs_of(world: MemoryWorld) -> Repairs:
    return Repairs(Deployment(world, {}, {}, SETTINGS, lambda: OPERATOR), TENANT)


def add(repairs: Repairs, count: int) -> None:
    for number in range(count):
        repairs.add(Difference(Kind.EXTRA, f"r{number}", None, 1))


def test_every_id_is_in_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "BATCH", 40)
    world = memory_world()
    repairs = repairs_of(world)
    add(repairs, 100)
    assert len(repairs.jobs) == 2
    repairs.submit()
    repairs.submit()
    jobs = [read_job(world, job_id) for job_id in repairs.jobs]
    assert [(job.operation, job.tenant, job.total) for job in jobs if job] == [
        ("reindex", TENANT, 40),
        ("reindex", TENANT, 40),
        ("reindex", TENANT, 20),
    ]
    ids = [id_ for job in jobs if job for id_ in job.ids or ()]
    assert ids == [f"r{number}" for number in range(100)]
    assert len(world.queues[Lane.SMALL].snapshot()) == 3


@pytest.mark.parametrize("readable", [True, False])
def test_c99_a_document_that_could_not_be_read_is_not_called_missing(*, readable: bool) -> None:
    """The second look at a difference meets a shard that is away: drift ends with trouble, which
    is not the same as a record without a document."""
    error = {"type": "no_shard_available_action_exception", "reason": "away"}
    answers: list[dict[str, object]] = [{"found": False}, {"error": error}]
    transport = Transport(lambda _: Reply({"docs": answers[:2]}))
    client = sink_over(transport).client
    records = memory_world().records
    sides = Sides(TENANT, Mock(), "records", records, client, "records", RecordSchema())
    if readable:
        answers[1] = {"found": False}
        assert list(sides.now(["a", "b"])) == []
        return
    with pytest.raises(Transient, match="the document of 'b'"):
        list(sides.now(["a", "b"]))


def test_an_earlier_repair_that_still_runs_is_said() -> None:
    world = memory_world()
    first, second = repairs_of(world), repairs_of(world)
    for repairs in (first, second):
        add(repairs, 3)
        repairs.submit()
    assert (second.jobs, second.busy) == ([], first.jobs)


def test_nothing_different_is_no_job() -> None:
    repairs = repairs_of(memory_world())
    repairs.submit()
    assert (repairs.jobs, repairs.busy) == ([], [])


def test_facts_are_json() -> None:
    seen = Drift(records=2, documents=1)
    seen.add(Difference(Kind.MISSING, "é", 1, None))
    facts = json.loads(json.dumps(facts_of(seen)))
    assert (facts["records"], facts["missing"], facts["stale"], facts["extra"]) == (2, 1, 0, 0)
    assert facts["samples"]["missing"] == [
        {"kind": "missing", "id": "é", "table": 1, "index": None}
    ]
    assert replace(seen, records=3).total == 1
