"""The API's own function over the in-memory adapters, to record what it answers.

Time and chance are the runtime's, so a recording is always the same.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch
from urllib.parse import urlencode

from handlers import api
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.words.effect import Delivered
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import EVENT_BUS
from handlers.jobs.words.limits import Limits
from handlers.operations.registry import WEBHOOK
from handlers.settings import CallerSettings
from handlers.testing.world import MemoryWorld, memory_world
from handlers.web.caller import Callers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from handlers.jobs.words.effect import Batch
    from handlers.jobs.words.event import JobEvent
    from handlers.jobs.words.job import Lane

TENANT: Final = "acme"
REQUEST_ID: Final = "3f6c1d8e-5b0a-4a53-9a86-1f0f3f2f9d11"
SHOWN: Final = (
    *("Location", "ETag", "Retry-After", "Idempotency-Replayed"),
    *("Idempotency-Key", "If-None-Match"),
)
"""Headers that are worth showing."""


@dataclass(frozen=True)
class Exchange:
    """A request and what it was answered."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: object
    status: int
    answered: Mapping[str, str]
    """Headers of the answer."""
    answer: Any


@dataclass(frozen=True)
class _Context:
    """The parts of Lambda's context that are used."""

    aws_request_id: str = REQUEST_ID
    function_name: str = "api"

    def get_remaining_time_in_millis(self) -> int:
        return 28_000


@dataclass(frozen=True)
class _Settings:
    """The parts of the function's settings that are used without an Idempotency-Key."""

    idempotency_table: str = ""
    limits: Limits = field(default_factory=Limits)
    tenant_requests_per_second: int | None = None


@dataclass(frozen=True)
class Recording:
    world: MemoryWorld

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Exchange:
        query, headers = query or {}, headers or {}
        answer: Any = api.handler(_event(method, path, body, query, headers), _Context())  # type: ignore[arg-type]  # the parts of a context that are used
        answered = {name: values[0] for name, values in answer["multiValueHeaders"].items()}
        return Exchange(
            method=method,
            path=path,
            query=urlencode(query, safe=":"),
            headers=headers,
            body=body,
            status=answer["statusCode"],
            answered={name: answered[name] for name in SHOWN if name in answered},
            answer=json.loads(answer["body"]) if answer["body"] else None,
        )

    def work(self, lane: Lane) -> None:
        """A worker serves the lane's next message."""
        [delivery] = self.world.queues[lane].receive(1, 0)
        self.pass_time(0.4)
        decision = on_message(self.world, delivery, Worker("worker-1"))
        apply_decision(self.world.queues[lane], delivery, decision)

    def pass_time(self, seconds: float) -> None:
        self.world.runtime.sleep(round(1000 * seconds))

    def recover(self) -> None:
        """Recovery runs when every open effect is due."""
        self.pass_time(self.world.timing.effect_grace)
        Recovery(self.world).run()


@dataclass
class Ear:
    """A sink and a listener that keep what they hear; as a sink, it fails while it is down."""

    down: bool = False
    batches: list[Batch] = field(default_factory=list)
    events: list[JobEvent] = field(default_factory=list)

    def deliver(self, batch: Batch) -> Delivered:
        if self.down:
            raise Transient("the place outside does not answer")
        self.batches.append(batch)
        return Delivered()

    def deliver_event(self, event: JobEvent) -> None:
        self.events.append(event)


@contextmanager
def recording(ear: Ear | None = None) -> Iterator[Recording]:
    """The function answers from a fresh world meanwhile. ear: the world's webhook and event bus,
    which gets one try."""
    world = memory_world(limits=Limits(max_effect_tries=1))
    if ear is not None:
        world = replace(world, sinks={WEBHOOK: ear}, listeners={EVENT_BUS: ear})
    callers = Callers(CallerSettings())
    with (
        patch.object(api, "world", lambda _service: world),
        patch.object(api, "callers", lambda: callers),
        patch.object(api, "work_settings", _Settings),
    ):
        yield Recording(world)


def _event(
    method: str, path: str, body: object, query: Mapping[str, str], headers: Mapping[str, str]
) -> dict[str, Any]:
    """As API Gateway writes it, behind the authorizer."""
    return {
        "path": path,
        "httpMethod": method,
        "headers": dict(headers),
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": dict(query) or None,
        "multiValueQueryStringParameters": {name: [value] for name, value in query.items()} or None,
        "requestContext": {
            "requestId": REQUEST_ID,
            "authorizer": {
                "tenant": TENANT,
                "scopes": "jobs:read jobs:write",
                "principalId": "anna",
            },
        },
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }
