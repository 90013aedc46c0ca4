"""Creating a small job beside the AWS calls it makes, made bare.

The calls are recorded from the handler itself and sent again with ids of their own, by plain
clients: whatever the handler comes to send, it is compared with just that.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from secrets import token_hex
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import boto3

from scripts.load import own
from scripts.local.errors import LocalError
from scripts.ops.deployment import deployment
from scripts.verify.site import stand_still

from .framework import Bench, Measured, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.local.steps import Steps

AT_MOST: Final = 1.5
ROUNDS: Final = 150
WARM: Final = 10
PARTS: Final = {"dynamodb": "dynamodb", "sqs": "sqs"}


@dataclass(frozen=True)
class Call:
    service: str
    operation: str
    parameters: dict[str, Any]


class Context:
    """What the function is told about its invocation."""

    aws_request_id = "bench"
    function_name = "api"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:api"

    def get_remaining_time_in_millis(self) -> int:
        return 28_000


def run(steps: Steps) -> Measured:
    stack = own.up("bench-create", steps=steps, workers=0, records=False)
    with own.taken_down(stack, steps=steps):
        stand_still(stack)
        _drop_small_lane(stack.clients.lambda_)
        deployment(None, stack.name)  # puts the settings into the environment
        # Only now: what it makes, it makes of the environment.
        from handlers import api  # noqa: PLC0415

        calls = _recorded(api)
        bare = Bare(calls)
        with steps.step("Creates and bare calls", 2 * (ROUNDS + WARM)) as advance:

            def ours() -> float:
                advance(1)
                return _create(api)

            def theirs() -> float:
                advance(1)
                return bare.send()

            for _ in range(WARM):
                ours()
                theirs()
            created, sent = compare(ours, theirs, ROUNDS)
    return Measured(
        ratio=median(created) / median(sent),
        at_most=AT_MOST,
        figures={
            "ms create": median(created) * 1000,
            "ms bare calls": median(sent) * 1000,
            "calls": len(calls),
        },
    )


BENCH: Final = Bench(
    "create", "The handler's time for POST /v1/jobs, of the same AWS calls made bare", run
)


def _drop_small_lane(client: Any) -> None:
    """Nobody shall run the jobs meanwhile."""
    for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
        client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)


def _create(api: Any) -> float:
    """Seconds of one create; of a tenant of its own, so that no limit comes into it."""
    event = _event(f"tenant-{token_hex(8)}")
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):  # noqa: PTH123  a device
        start = time.perf_counter()
        answer = api.handler(event, Context())
        seconds = time.perf_counter() - start
    if answer["statusCode"] != 202:  # noqa: PLR2004  accepted
        raise LocalError(f"a job of the bench was not created: {answer}")
    return seconds


def _event(tenant: str) -> dict[str, Any]:
    body = {
        "operation": "set_fields",
        "subject": "products",
        "params": {"fields": {"season": "summer"}},
        "ids": [f"r{number}" for number in range(10)],
    }
    return {
        "resource": "/{proxy+}",
        "path": "/v1/jobs",
        "httpMethod": "POST",
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": {"Content-Type": ["application/json"]},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {
            "requestId": "bench",
            "authorizer": {"tenant": tenant, "scopes": "jobs:write"},
        },
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }


def _recorded(api: Any) -> Sequence[Call]:
    """What the handler sends for one create."""
    calls: list[Call] = []

    def note(params: dict[str, Any], model: Any, **_: object) -> None:
        service = model.service_model.endpoint_prefix
        calls.append(Call(service, model.name, json.loads(json.dumps(params))))

    world = api.world(api.SERVICE)
    clients = (world.store._client, world.queues["small"]._client)  # noqa: SLF001
    for client in clients:
        client.meta.events.register("provide-client-params.*", note, unique_id="bench")
    _create(api)
    for client in clients:
        client.meta.events.unregister("provide-client-params.*", note, unique_id="bench")
    return calls


class Bare:
    """Sends the calls again, as if by another tenant: plain clients and nothing around them."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._clients = {name: boto3.client(name) for name in PARTS}  # type: ignore[call-overload]  # names, not literals
        self._text = json.dumps([call.parameters for call in calls])
        self._calls = calls
        found = json.loads(self._text)[0]["TransactItems"]
        self._tenant, self._job = _names(found)

    def send(self) -> float:
        """Seconds."""
        text = self._text.replace(self._tenant, f"tenant-{token_hex(8)}")
        prepared = json.loads(text.replace(self._job, token_hex(16)))
        for parameters in prepared:
            if "ClientRequestToken" in parameters:
                parameters["ClientRequestToken"] = token_hex(16)
        start = time.perf_counter()
        for call, parameters in zip(self._calls, prepared, strict=True):
            self._clients[call.service]._make_api_call(call.operation, parameters)  # noqa: SLF001
        return time.perf_counter() - start


def _names(writes: list[dict[str, Any]]) -> tuple[str, str]:
    """The tenant and the job id in a recorded create."""
    for write in writes:
        item = write.get("Put", {}).get("Item", {})
        if "tenant" in item and "state" in item:
            return item["tenant"]["S"], item["id"]["S"]
    raise LocalError("the handler no longer creates a job as the bench knows it")
