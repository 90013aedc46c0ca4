"""An event bus: one EventBridge event per chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..aws.errors import reading
from ..jobs.words.effect import Delivered
from ..jobs.words.errors import Transient
from ..jobs.words.limits import MAX_REASON
from .notice import notice

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

    from ..jobs.words.effect import Batch
    from ..jobs.words.event import EventType

SOURCE: Final = "fairlane"
DETAIL_TYPE: Final = "Records Changed"
FOR_GOOD: Final = frozenset({"InvalidArgument", "MalformedDetail"})
"""Codes of one entry that say it can never be taken. Its other errors (EventBridge API
reference) pass by themselves, or when an operator mends the bus or its permissions."""


@dataclass(frozen=True)
class EventBus:
    """``Sink`` that puts a notice on a bus. A chunk is one entry: its ids stay far below the
    limits of 10 entries and 1 MB, and its key is that of the chunk."""

    client: EventBridgeClient
    bus: str

    def deliver(self, batch: Batch) -> Delivered:
        why = put(self.client, self.bus, DETAIL_TYPE, notice(batch))
        return Delivered(refused={each.id: why for each in batch.records} if why else {})


def job_detail_type(what: EventType) -> str:
    """Such as "Job Ended"."""
    return f"Job {what.capitalize()}"


def put(client: EventBridgeClient, bus: str, detail_type: str, detail: str) -> str | None:
    """Put one event on a bus; returns why it was refused for good, if it was. Raises Transient."""
    with reading():
        answer = client.put_events(
            Entries=[
                {
                    "EventBusName": bus,
                    "Source": SOURCE,
                    "DetailType": detail_type,
                    "Detail": detail,
                }
            ]
        )
    if not answer["FailedEntryCount"]:
        return None
    [entry] = answer["Entries"]
    code = entry.get("ErrorCode", "")
    why = f"{code}: {entry.get('ErrorMessage', '')}"[:MAX_REASON]
    if code in FOR_GOOD:
        return why
    raise Transient(why)
