"""Setting dead letters aside: out of the dead-letter queue, whose alarm falls silent, and kept in
the control table as long as the history of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..storage.transaction import Transaction, execute, retry_transient
from ..words.errors import Transient
from ..words.job import Lane
from ..words.messages import Message, UnreadableMessage, group_of, read_pointer
from ..words.writes import Delete, Key, Put

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..words.ports import LaneQueue, World
    from ..words.writes import Cursor, Item, Page
    from .dead_letters import Letter

LETTER: Final = "letter"
MAX_BODY_BYTES: Final = 300_000
"""Bytes (UTF-8) of a body that an item has room for, well below DynamoDB's 400 KB. A pointer has
about a hundred."""


class NotKept(Exception):
    """The letter stays where it is; the message says why."""


@dataclass(frozen=True)
class Aside:
    """A dead letter that was set aside."""

    lane: Lane
    message_id: str
    body: str
    group: str
    """The MessageGroupId; empty when the queue did not tell it."""
    job_id: str
    """Empty when the body is no pointer to a job."""
    at: int
    """When it was set aside, epoch ms."""
    why: str


def set_aside(
    world: World, lane: Lane, dead_letters: LaneQueue, letter: Letter, *, why: str
) -> Aside:
    """Keep the letter, then delete its message. After a crash in between it is in both places, and
    setting it aside again writes the same row. Raises Transient, NotKept."""
    delivery = letter.delivery
    size = len(delivery.body.encode())
    if size > MAX_BODY_BYTES:
        raise NotKept(f"its body has {size} bytes, and at most {MAX_BODY_BYTES} can be kept")
    group = delivery.group or (group_of(letter.job.tenant) if letter.job else "")
    job_id = letter.pointer.job_id if letter.pointer else ""
    at = world.runtime.now()
    aside = Aside(lane, delivery.message_id, delivery.body, group, job_id, at, why)
    item: Item = {
        "body": aside.body,
        "group": group,
        "job_id": job_id,
        "at": at,
        "why": why,
        "expires_at_seconds": world.timing.history_ends(at),
    }
    execute(world, Transaction("set_aside", {LETTER: Put(_key(lane, aside.message_id), item)}))
    dead_letters.delete(delivery.receipt)
    world.telemetry.log("dead_letter_set_aside", message_id=aside.message_id, job_id=job_id)
    return aside


def letters_aside(world: World, lane: Lane) -> Iterator[Aside]:
    """The lane's letters that were set aside, by message id. Raises Transient."""
    after: Cursor | None = None
    while True:
        page = _page(world, lane, after)
        for found in page.found:
            item = found.item
            yield Aside(
                lane,
                found.key.sk,
                body=str(item["body"]),
                group=str(item["group"]),
                job_id=str(item["job_id"]),
                at=int(str(item["at"])),
                why=str(item["why"]),
            )
        after = page.next
        if after is None:
            return


def put_back(world: World, dead_letters: LaneQueue, aside: Aside) -> None:
    """Send the letter to the dead-letter queue again, with a new message id, then drop the row. A
    crash in between leaves both; a duplicate is harmless. Raises Transient, NotKept."""
    try:
        pointer = read_pointer(aside.body)
    except UnreadableMessage as error:
        raise NotKept(f"no job can be redriven by its body: {error}") from error
    if dead_letters.send([Message(pointer.job_id, pointer.lane, aside.group)]):
        raise Transient("the dead-letter queue did not take the message")
    gone = Delete(_key(aside.lane, aside.message_id))
    execute(world, Transaction("put_back", {LETTER: gone}))


def _key(lane: Lane, message_id: str) -> Key:
    return Key(f"ASIDE#{lane}", message_id)


def _page(world: World, lane: Lane, after: Cursor | None) -> Page:
    return retry_transient(
        world, lambda: world.store.query_partition(f"ASIDE#{lane}", sk_prefix="", after=after)
    )
