"""The sizes that are promised hold end to end. The controls: a message that carries its job's ids,
and a body limit as high as API Gateway's.

Nothing runs: the jobs are only created, looked at and cancelled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, Final
from unittest.mock import patch

from handlers.aws.attributes import decode
from handlers.jobs.selection.id_sources import lines
from handlers.jobs.selection.walk_order import permuted
from handlers.jobs.storage.windows import REQUESTS
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import (
    GATEWAY_BODY_BYTES,
    LAMBDA_EVENT_BYTES,
    MAX_ID_BYTES,
    MESSAGE_BYTES,
    QUEUE_MESSAGE_BYTES,
    UUID_CHARS,
    Limits,
    body_bytes,
)
from handlers.jobs.words.messages import Message
from scripts.budget import budget
from scripts.budget.budget import body_of, largest
from scripts.budget.event import event_bytes
from scripts.budget.ids import like, of_length
from scripts.load.ledger import Ledger
from scripts.local.api import Answer

from .framework import Bench, Expectation, Scenario
from .site import Site, site

PATH: Final = "/v1/jobs"
LIMITS: Final = Limits()
COUNTS: Final = (LIMITS.small_max_items + 1, 5_000, LIMITS.max_inline_ids)
"""Of ids, each so many that the job goes to the bulk queue."""
SHAPES: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "UUIDs": lambda: of_length(UUID_CHARS),
    f"ids of {MAX_ID_BYTES} bytes": lambda: of_length(MAX_ID_BYTES),
    "ids of four-byte characters": lambda: like(["😀" * 20 + "-00001", "🚚" * 31 + "-00002"]),
}
"""Endless ids, no two the same among as many as fit."""


def run(bench: Bench) -> Iterator[Expectation]:
    with site(bench, "budget") as here:
        for name, ids in SHAPES.items():
            with bench.steps.step(f"As many {name} as fit, and one more"):
                yield from _maximum(here, name, ids())
        with bench.steps.step("Messages of jobs of different sizes"):
            yield _messages(here)


def control(bench: Bench) -> Iterator[Expectation]:
    with site(bench, "budget-control") as here:
        with bench.steps.step("A message that carries the ids"):
            yield from _carrying(here)
        yield _as_large_as_the_gateway_takes()


SCENARIO: Final = Scenario(
    "payload-budget",
    "The largest request passes end to end, one id more is refused and leaves nothing behind.",
    run,
    control,
)


# --- the largest request ----------------------------------------------------------------------


def _maximum(here: Site, name: str, endless: Iterator[str]) -> Iterator[Expectation]:
    one_more: list[str] = []
    ids = largest(_noting(endless, one_more), LIMITS)
    before = _everything(here)
    refused = _post(here, body_of(one_more))
    yield Expectation.equal(
        f"{len(one_more):,} {name} are refused, with what to do instead",
        expected=(413, True),
        saw=(refused.status, "POST /v1/uploads" in str(refused.body.get("detail"))),
    )
    yield Expectation.equal(
        "and what that left in tables, queues and bucket", expected=[], saw=_new(here, before)
    )
    body = body_of(ids)
    taken = _post(here, body)
    yield Expectation.equal(
        f"{len(ids):,} {name} in {body_bytes(body):,} bytes are taken",
        expected=(202, len(ids)),
        saw=(taken.status, taken.body.get("total")),
    )
    if taken.status == HTTPStatus.ACCEPTED:
        stored = _stored_list(here, taken)
        same = stored == b"".join(lines(permuted(ids, taken.body["id"])))
        yield Expectation.equal(
            "their list is stored byte for byte, in the order of the walk", expected=True, saw=same
        )
        _cancel(here, taken)


def _noting(ids: Iterator[str], taken: list[str]) -> Iterator[str]:
    """The ids, noting each that is taken; the last of them did not fit."""
    for id_ in ids:
        taken.append(id_)
        yield id_


def _messages(here: Site) -> Expectation:
    found = {}
    for count in COUNTS:
        here.emptied()
        taken = _post(here, body_of(list(islice(of_length(UUID_CHARS), count))))
        found[count] = _message_bytes(here)
        _cancel(here, taken)
    return Expectation.of(
        f"bytes of the message of a job of {', '.join(f'{count:,}' for count in COUNTS)} ids",
        expected=f"under {QUEUE_MESSAGE_BYTES} each",
        saw=", ".join(map(str, found.values())),
        ok=all(0 < size < QUEUE_MESSAGE_BYTES for size in found.values()),
    )


# --- controls ---------------------------------------------------------------------------------


def _carrying(here: Site) -> Iterator[Expectation]:
    ids = list(islice(of_length(UUID_CHARS), LIMITS.max_inline_ids))

    def body(message: Message) -> str:
        return json.dumps({"version": 1, "job_id": message.job_id, "ids": ids})

    size = len(body(Message("0" * 28, Lane.BULK, "")).encode())
    yield Expectation.of(
        f"a message with {len(ids):,} ids is larger than a queue takes",
        expected=f"over {MESSAGE_BYTES:,} bytes",
        saw=f"{size:,}",
        ok=size > MESSAGE_BYTES,
    )
    with patch.object(Message, "body", property(body)):
        job = here.submit(ids, "carrying")
    yield Expectation.equal(
        "the job was taken, its message was not: messages, jobs that still wait to be sent",
        expected=(0, True),
        saw=(here.messages(), job.id in Ledger(here.stack).undispatched()),
    )


def _as_large_as_the_gateway_takes() -> Expectation:
    with patch.object(budget, "MAX_BODY_BYTES", GATEWAY_BODY_BYTES):
        ids = largest(of_length(UUID_CHARS), Limits(max_inline_ids=10**6))
    size = event_bytes(body_of(ids))
    return Expectation.of(
        "with API Gateway's limit for a body, the function's event is too large for Lambda",
        expected=f"over {LAMBDA_EVENT_BYTES:,} bytes",
        saw=f"{size:,} with {len(ids):,} ids",
        ok=size > LAMBDA_EVENT_BYTES,
    )


# --- looking ----------------------------------------------------------------------------------


def _post(here: Site, body: str) -> Answer:
    return here.stack.api.call("POST", PATH, tenant=here.tenant, body=body.encode())


def _cancel(here: Site, taken: Answer) -> None:
    """So that the next job finds the subject free."""
    here.stack.api.call("POST", f"{PATH}/{taken.body['id']}/cancel", tenant=here.tenant)


def _stored_list(here: Site, taken: Answer) -> bytes:
    item = here.stack.clients.dynamodb.get_item(
        TableName=here.settings.control_table,
        Key={"pk": {"S": f"JOB#{taken.body['id']}"}, "sk": {"S": "JOB"}},
        ConsistentRead=True,
    )["Item"]
    name = str(decode(item)["payload"])
    return here.world.payloads.read(name, 0, 1 << 30)


def _message_bytes(here: Site) -> int:
    """Of the one message in the bulk queue."""
    answer = here.stack.clients.sqs.receive_message(
        QueueUrl=here.settings.bulk_queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=2
    )
    [message] = answer["Messages"]
    return len(message["Body"].encode())


@dataclass(frozen=True)
class Everything:
    items: frozenset[str]
    objects: frozenset[str]
    messages: int


def _everything(here: Site) -> Everything:
    """Keys and contents of every item but counts of requests, which the API keeps of some of them,
    refused or not; keys of every object, and the number of messages."""
    clients, settings = here.stack.clients, here.settings
    items: set[str] = set()
    for table in (settings.control_table, settings.idempotency_table):
        for page in clients.dynamodb.get_paginator("scan").paginate(TableName=table):
            items |= {
                json.dumps(item, sort_keys=True, default=str)
                for item in page["Items"]
                if not _counts_requests(item)
            }
    objects: set[str] = set()
    for part in clients.s3.get_paginator("list_objects_v2").paginate(
        Bucket=settings.payload_bucket
    ):
        objects |= {str(each["Key"]) for each in part.get("Contents", [])}
    return Everything(frozenset(items), frozenset(objects), here.messages())


def _counts_requests(item: Mapping[str, Any]) -> bool:
    """The table of idempotency keys has another key than the control table."""
    return str(item.get("pk", {}).get("S", "")).startswith(f"{REQUESTS}#")


def _new(here: Site, before: Everything) -> list[Any]:
    now = _everything(here)
    more: list[Any] = [*(now.items - before.items), *(now.objects - before.objects)]
    return more if now.messages == before.messages else [*more, now.messages - before.messages]
