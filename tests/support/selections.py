"""Jobs over uploaded files and queries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from handlers.jobs.lifecycle.submit import Created, SubmitResult, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.selection.resolve import offer_upload
from handlers.jobs.storage import control_table
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.upload import Format, UploadForm
from handlers.testing.world import MemoryWorld
from tests.support.jobs import TENANT, fill

if TYPE_CHECKING:
    from collections.abc import Iterable

JSONL = UploadForm(format=Format.JSONL)
ADD = {"operation": "adjust_number", "params": {"field": "price", "add": 1}}
GROUP = {"all": [{"field": "group", "op": "eq", "value": "g"}]}


def ask(world: MemoryWorld, tenant: str = TENANT, **body: Any) -> SubmitResult:
    content = parse(json.dumps({"subject": "products", **ADD, **body}))
    return submit(world, tenant, accept(content, world.operations, max_ids=1000))


def made(world: MemoryWorld, **body: Any) -> Job:
    outcome = ask(world, **body)
    assert isinstance(outcome, Created)
    return outcome.job


def upload(
    world: MemoryWorld, content: bytes, form: UploadForm = JSONL, tenant: str = TENANT
) -> str:
    offer = offer_upload(world, tenant, form)
    world.uploads.send(offer.address, content)
    return offer.upload_id


def jsonl(ids: Iterable[str]) -> bytes:
    return "".join(json.dumps(id_) + "\n" for id_ in ids).encode()


def nothing_left(world: MemoryWorld) -> bool:
    lease = world.store.get(control_table.lease_key(TENANT, "products")) or {}
    slots = world.store.get(control_table.slots_key(TENANT, Lane.BULK)) or {}
    return not (
        lease.get("job_id")
        or slots.get("in_flight")
        or world.payloads.names()
        or world.queues[Lane.BULK].snapshot()
    )


def grouped(world: MemoryWorld, count: int) -> list[str]:
    ids = fill(world, count)
    world.records.load(TENANT, {id_: {"price": 10, "group": "g", "version": 1} for id_ in ids})
    return ids
