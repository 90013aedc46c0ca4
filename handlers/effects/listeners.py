"""The listeners of jobs: the deployment's event bus, and the address that a request named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..jobs.words.errors import NotAsked, Transient
from ..jobs.words.event import NotTaken
from .addresses import Resolve, resolve
from .event_bus import job_detail_type, put
from .secret import tenant_key
from .webhook import Webhook

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

    from ..jobs.words.event import JobEvent
    from ..jobs.words.ports import Runtime

REST: Final = 5_000
"""ms for which a bus that failed is not asked again: the worker that delivers has a job to run."""


@dataclass
class BusListener:
    """``Listener`` that puts events on a bus, such as "Job Ended"."""

    client: EventBridgeClient
    bus: str
    runtime: Runtime
    _until: int = field(default=0, init=False)

    def deliver_event(self, event: JobEvent) -> None:
        if self.runtime.now() < self._until:
            raise NotAsked("the bus failed a moment ago")
        try:
            why = put(self.client, self.bus, job_detail_type(event.what), event.detail)
        except Transient:
            self._until = self.runtime.now() + REST
            raise
        if why is not None:
            raise NotTaken(why)


@dataclass(frozen=True)
class AddressListener:
    """``Listener`` that POSTs to the address a request named, signed with the key of its tenant;
    see ``webhook``."""

    secret: Callable[[], bytes]
    runtime: Runtime
    loopback: bool = False
    """For development: loopback is allowed, and http."""
    ask: Resolve = resolve

    def deliver_event(self, event: JobEvent) -> None:
        def key() -> bytes:
            return tenant_key(self.secret(), event.tenant)

        hook = Webhook(event.to or "", key, self.runtime, loopback=self.loopback, ask=self.ask)
        if (why := hook.send(event.key, event.detail)) is not None:
            raise NotTaken(why)
