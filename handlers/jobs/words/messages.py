"""The message is a pointer: version, job id, lane. Every send path makes it here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .errors import FairlaneError
from .job import Lane

if TYPE_CHECKING:
    from .job import Job

MESSAGE_VERSION: Final = 1


class UnreadableMessage(FairlaneError):
    """The message body is not one of ours."""


@dataclass(frozen=True)
class Message:
    """A message: its body, and the group that makes the queue fair between tenants."""

    job_id: str
    lane: Lane
    group: str

    @property
    def body(self) -> str:
        return json.dumps(
            {"version": MESSAGE_VERSION, "job_id": self.job_id, "lane": self.lane.value},
            separators=(",", ":"),
        )


def group_of(tenant: str) -> str:
    """The MessageGroupId of a tenant: stable, opaque, and valid whatever the tenant is called
    (SQS: at most 128 of a set of ASCII characters, stored unencrypted)."""
    return hashlib.sha256(b"fairlane-group:" + tenant.encode()).hexdigest()[:32]


def message_for(job: Job) -> Message:
    return Message(job_id=job.id, lane=job.lane, group=group_of(job.tenant))


@dataclass(frozen=True)
class Pointer:
    job_id: str
    lane: Lane


def read_pointer(body: str) -> Pointer:
    """The pointer in a message body. Raises UnreadableMessage, saying what is wrong."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableMessage("not JSON") from error
    if not isinstance(content, dict):
        raise UnreadableMessage("not an object")
    if content.get("version") != MESSAGE_VERSION:
        raise UnreadableMessage(f"version {content.get('version')!r}, not {MESSAGE_VERSION}")
    job_id = content.get("job_id")
    if not isinstance(job_id, str) or not job_id:
        raise UnreadableMessage("no job_id")
    try:
        lane = Lane(str(content.get("lane")))
    except ValueError as error:
        raise UnreadableMessage(f"lane {content.get('lane')!r}") from error
    return Pointer(job_id, lane)
