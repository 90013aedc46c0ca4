"""Creating a small job beside the AWS calls it makes, made bare.

The calls are recorded from the handler itself and sent again with ids of their own, by plain
clients: whatever the handler comes to send, it is compared with just that.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from secrets import token_hex
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import boto3

from scripts.local.errors import LocalError

from .figures import Figure, at_most, in_turns
from .framework import Bench, Measured
from .handler import api_of, create

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .place import Place

AT_MOST: Final = 1.5
ROUNDS: Final = 150
WARM: Final = 10
PARTS: Final = {"dynamodb": "dynamodb", "sqs": "sqs"}


@dataclass(frozen=True)
class Call:
    service: str
    operation: str
    parameters: dict[str, Any]


def run(place: Place) -> Measured:
    api = api_of(place)
    bare = Bare(_recorded(api))
    rounds, warm = place.rounds(ROUNDS, 20), place.rounds(WARM, 3)
    with place.steps.step("Creates and bare calls", 2 * (rounds + warm)) as advance:

        def ours() -> float:
            advance(1)
            return _create(api)

        def theirs() -> float:
            advance(1)
            return bare.send()

        in_turns(ours, theirs, warm)
        created, sent = in_turns(ours, theirs, rounds)
    figure = Figure.of(
        "time of a create ÷ its bare calls",
        created,
        sent,
        bound=at_most(AT_MOST),
    )
    return Measured(
        figures=(figure,),
        facts={"ms of a create": median(created) * 1000, "ms of its calls": median(sent) * 1000},
    )


BENCH: Final = Bench(
    "create", "The handler's time for POST /v1/jobs beside the same AWS calls made bare", run
)


def _create(api: Any) -> float:
    """Seconds of one create; of a tenant of its own, so that no limit comes into it."""
    return create(api, f"tenant-{token_hex(8)}")[0]


def _recorded(api: Any) -> Sequence[Call]:
    """What the handler sends for one create, as for any but a process's first: that one also notes
    how many shards there are."""
    _create(api)
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
        self._tenant, self._job = _names(calls)

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


def _names(calls: Sequence[Call]) -> tuple[str, str]:
    """The tenant and the job id in a recorded create."""
    for write in (each for call in calls for each in call.parameters.get("TransactItems", ())):
        item = write.get("Put", {}).get("Item", {})
        if "tenant" in item and "state" in item:
            return item["tenant"]["S"], item["id"]["S"]
    raise LocalError("the handler no longer creates a job as the bench knows it")
