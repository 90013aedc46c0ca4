"""Jobs at moments of their lives, as a version writes them, and the models it reads them with.

Run as a file by the release's own code (``python -m scripts.checks.released``), so it imports
nothing but what that release has. It prints one JSON object.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel

from handlers.aws.attributes import encode
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.selection.resolve import offer_upload
from handlers.jobs.storage.control_table import read_job, read_lease
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.words.effect import Batch, Delivered
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import EVENT_BUS, JobEvent
from handlers.jobs.words.job import Job, Lane, Lease
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Change, Fields, Operation, Outcome
from handlers.jobs.words.upload import Format, UploadForm
from handlers.jobs.words.writes import Key, Put, Table, Update
from handlers.testing.world import MemoryWorld, memory_world

TENANT: Final = "acme"
LIMITS: Final = Limits(
    small_max_items=10, chunk_size=5, look_calls=0, tenant_slots_small=2, tenant_slots_bulk=2
)
FEW: Final = [f"r{number:02}" for number in range(3)]
MANY: Final = [f"r{number:02}" for number in range(25)]
SINK: Final = "index"


class Add(BaseModel):
    by: int = 1


def add(fields: Fields, parameters: BaseModel) -> Outcome:
    assert isinstance(parameters, Add)
    return Change({"n": int(str(fields["n"])) + parameters.by})


OPERATIONS: Final = {
    "add": Operation("add", Add, add, lambda _: frozenset({"n"})),
    "add_and_tell": Operation("add_and_tell", Add, add, lambda _: frozenset({"n"}), sinks=(SINK,)),
}


class Down:
    """A place that nothing reaches."""

    def deliver(self, _: Batch) -> Delivered:
        raise Transient("down")

    def deliver_event(self, _: JobEvent) -> None:
        raise Transient("down")

    def send(self, _: object) -> frozenset[int]:
        raise Transient("down")


def new_world() -> MemoryWorld:
    world = memory_world(operations=OPERATIONS, limits=LIMITS)
    for id_ in MANY:
        key = Key(TENANT, id_, Table.RECORDS)
        world.store.transact("load", [Put(key, {"n": 1, "version": 1, "kind": "k"})])
    return world


def made(world: MemoryWorld, subject: str = "s", **body: Any) -> Job:
    asked = {"operation": "add", "subject": subject, **body}
    result = submit(world, TENANT, accept(parse(json.dumps(asked)), OPERATIONS, max_ids=1000))
    assert isinstance(result, Created)
    return result.job


def worked(world: MemoryWorld, lane: Lane, *, looks: int = 1_000) -> None:
    """One message is worked on by a worker that is asked to end at its look number ``looks``."""
    left = iter(range(looks))
    [delivery] = world.queues[lane].receive(1, 0)
    worker = Worker("w", stopping=lambda: next(left, None) is None)
    apply_decision(world.queues[lane], delivery, on_message(world, delivery, worker))


def now(world: MemoryWorld, job: Job) -> Job:
    found = read_job(world, job.id)
    assert found is not None
    return found


def half_done(world: MemoryWorld, **body: Any) -> Job:
    """A bulk job whose worker gave it back at a checkpoint."""
    job = made(world, **body)
    worked(world, Lane.BULK, looks=3)
    job = now(world, job)
    assert 0 < job.position < len(MANY)
    return job


def begun(world: MemoryWorld, job: Job) -> Job:
    """A worker has begun the job and is not heard of again."""
    [delivery] = world.queues[job.lane].receive(1, 0)
    lease = read_lease(world, job) if job.state == "RUNNING" else None
    transition = begin_attempt(world, job, worker="w", receipt=delivery.receipt, expired=lease)
    writes = list(transition.transaction.writes.values())
    world.store.transact("begin", writes)
    return transition.after


# --- the moments ------------------------------------------------------------------------------


def queued_small(world: MemoryWorld) -> MemoryWorld:
    made(world, ids=FEW)
    return world


def queued_bulk(world: MemoryWorld) -> MemoryWorld:
    made(world, ids=MANY, labels={"team": "a"}, tolerated_failure_percent=5)
    return world


def given_back(world: MemoryWorld) -> MemoryWorld:
    half_done(world, ids=MANY)
    return world


def running(world: MemoryWorld) -> MemoryWorld:
    begun(world, half_done(world, ids=MANY))
    return world


def file_half_done(world: MemoryWorld) -> MemoryWorld:
    half_done(world, upload_id=_uploaded(world))
    return world


def file_unread(world: MemoryWorld) -> MemoryWorld:
    made(world, upload_id=_uploaded(world))
    return world


def query_half_done(world: MemoryWorld) -> MemoryWorld:
    half_done(world, query=_KIND, traversal="live")
    return world


def query_listed(world: MemoryWorld) -> MemoryWorld:
    half_done(world, query=_KIND, traversal="snapshot")
    return world


def paused(world: MemoryWorld) -> MemoryWorld:
    control.pause(world, TENANT, half_done(world, ids=MANY).id, "ada")
    return world


def cancelling(world: MemoryWorld) -> MemoryWorld:
    control.cancel(world, TENANT, begun(world, half_done(world, ids=MANY)).id, "ada")
    return world


def failed(world: MemoryWorld) -> MemoryWorld:
    """Its attempts are used up, at a checkpoint."""
    job = half_done(world, ids=MANY)
    spent = world.timing.lane(job.lane).max_attempts
    key = Key(f"JOB#{job.id}", "JOB")
    world.store.transact("spent", [Update(key, set={"attempt": spent})])
    worked(world, Lane.BULK)
    assert now(world, job).state == "FAILED"
    return world


def held(world: MemoryWorld) -> MemoryWorld:
    for number in range(4):
        made(world, f"s{number}", ids=[MANY[number]])
    return world


def settling(world: MemoryWorld) -> MemoryWorld:
    job = made(world, operation="add_and_tell", ids=FEW)
    worked(replace(world, sinks={SINK: Down()}), Lane.SMALL)
    assert now(world, job).state == "SETTLING"
    return world


def not_sent(world: MemoryWorld) -> MemoryWorld:
    nowhere: Any = Down()
    made(replace(world, queues=dict.fromkeys(Lane, nowhere)), ids=FEW)
    assert not world.queues[Lane.SMALL].snapshot()
    return world


def event_open(world: MemoryWorld) -> MemoryWorld:
    telling = replace(world, listeners={EVENT_BUS: Down()})
    made(telling, ids=FEW)
    worked(telling, Lane.SMALL)
    return world


def _uploaded(world: MemoryWorld) -> str:
    offer = offer_upload(world, TENANT, UploadForm(format=Format.JSONL))
    world.uploads.send(offer.address, "".join(f"{json.dumps(id_)}\n" for id_ in MANY).encode())
    return offer.upload_id


_KIND: Final = {"all": [{"field": "kind", "op": "eq", "value": "k"}]}


@dataclass(frozen=True)
class Moment:
    make: Callable[[MemoryWorld], MemoryWorld]
    changed: Sequence[str]
    """The records that a version which goes on from here leaves changed."""
    state: str = "SUCCEEDED"
    """Of its jobs in the end."""


MOMENTS: Final = (
    Moment(queued_small, FEW),
    Moment(queued_bulk, MANY),
    Moment(given_back, MANY),
    Moment(running, MANY),
    Moment(file_half_done, MANY),
    Moment(file_unread, MANY),
    Moment(query_half_done, MANY),
    Moment(query_listed, MANY),
    Moment(paused, MANY),
    Moment(cancelling, (), "CANCELLED"),
    Moment(failed, MANY),
    Moment(held, MANY[:4]),
    Moment(settling, FEW),
    Moment(not_sent, FEW),
    Moment(event_open, FEW),
)


# --- as JSON ----------------------------------------------------------------------------------


def written(moment: Moment) -> dict[str, Any]:
    world = moment.make(new_world())
    messages = {
        lane.value: [{"body": each.body, "group": each.group} for each in queue.snapshot()]
        for lane, queue in world.queues.items()
    }
    return {
        "changed": list(moment.changed),
        "state": moment.state,
        "now": world.runtime.now(),
        "messages": messages,
        "payloads": dict(_payloads(world)),
        "uploads": dict(_uploads(world)),
        **{
            table.value: [
                {"pk": key.pk, "sk": key.sk, "item": encode(item)}
                for key, item in sorted(
                    world.store.snapshot(table).items(), key=lambda each: (each[0].pk, each[0].sk)
                )
            ]
            for table in Table
        },
    }


def _payloads(world: MemoryWorld) -> Iterator[tuple[str, str]]:
    for name in sorted(world.payloads.names()):
        yield name, base64.b64encode(world.payloads.read(name, 0, 1_000_000)).decode()


def _uploads(world: MemoryWorld) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in sorted(world.uploads.names()):
        found = world.uploads.look(name)
        assert found is not None
        content = world.uploads.read(name, found.version, 0, 1_000_000)
        yield name, {"notes": dict(found.notes), "content": base64.b64encode(content).decode()}


def reads() -> dict[str, Any]:
    """JSON Schemas of what it reads: a job's item, a lease's item."""
    return {"job": Job.model_json_schema(), "lease": Lease.model_json_schema()}


def main() -> None:
    moments = {moment.make.__name__: written(moment) for moment in MOMENTS}
    json.dump({"moments": moments, "reads": reads()}, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
