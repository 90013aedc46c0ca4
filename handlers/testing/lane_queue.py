"""A standard SQS queue in memory, with the parts of its behaviour that hurt."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Final

from ..jobs.words.errors import ReceiptExpired
from ..jobs.words.ports import Delivery, Depth
from ..jobs.words.timing import SECOND, VISIBILITY_CAP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..jobs.words.messages import Message
    from ..jobs.words.ports import Runtime

MAX_BATCH: Final = 10
MAX_WAIT: Final = 20
_POLL: Final = SECOND
"""How long a long poll sleeps before it looks again (ms)."""


@dataclass
class Stored:
    """One message in the queue."""

    message_id: str
    body: str
    group: str
    sent_at: int
    visible_at: int
    receive_count: int = 0
    first_received_at: int | None = None
    receipt: str | None = None
    """The handle of the newest receive."""


class MemoryLaneQueue:
    """``LaneQueue`` in memory, on the runtime's clock.

    visibility, retention: seconds. A message received ``max_receive_count`` times goes to
    ``dead_letters`` instead of being received once more, with its group and first send time.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        name: str = "queue",
        visibility: int = 30,
        retention: int = 4 * 86_400,
        max_receive_count: int | None = None,
        dead_letters: MemoryLaneQueue | None = None,
    ) -> None:
        self._runtime = runtime
        self._name = name
        self._visibility = visibility * SECOND
        self._retention = retention * SECOND
        self._max_receive_count = max_receive_count
        self._dead_letters = dead_letters
        self._stored: dict[str, Stored] = {}
        self._receipts: dict[str, str] = {}
        self._numbers = count(1)
        self._lock = Lock()

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        if len(messages) > MAX_BATCH:
            raise ValueError(f"{len(messages)} messages in one send, not at most {MAX_BATCH}")
        if not all(message.group for message in messages):
            raise ValueError("a message without a group is served before everyone else's")
        now = self._runtime.now()
        with self._lock:
            for message in messages:
                message_id = f"{self._name}-{next(self._numbers)}"
                self._accept(Stored(message_id, message.body, message.group, now, now))
        return frozenset()

    def receive(self, limit: int, wait_seconds: int) -> Sequence[Delivery]:
        if not 1 <= limit <= MAX_BATCH or not 0 <= wait_seconds <= MAX_WAIT:
            raise ValueError(f"receive of {limit} messages waiting {wait_seconds} s")
        deadline = self._runtime.now() + wait_seconds * SECOND
        while True:
            now = self._runtime.now()
            if (taken := self._take(limit, now)) or now >= deadline:
                return taken
            self._runtime.sleep(min(_POLL, deadline - now))

    def set_visibility(self, receipt: str, seconds: int) -> None:
        """The handle of an earlier receive of a message that is in flight again changes nothing,
        and raises nothing."""
        if not 0 <= seconds * SECOND <= VISIBILITY_CAP:
            raise ValueError(f"a visibility of {seconds} s")
        now = self._runtime.now()
        with self._lock:
            message = self._stored.get(self._receipts.get(receipt, ""))
            if message is None or message.visible_at <= now:
                raise ReceiptExpired
            if message.receipt != receipt:
                return
            until = now + seconds * SECOND
            if until > (message.first_received_at or now) + VISIBILITY_CAP:
                raise ReceiptExpired("the message would be hidden longer than 12 hours in all")
            message.visible_at = until

    def delete(self, receipt: str) -> None:
        with self._lock:
            message = self._stored.get(self._receipts.get(receipt, ""))
            if message is not None and message.receipt == receipt:
                del self._stored[message.message_id]

    def depth(self) -> Depth:
        now = self._runtime.now()
        stored = self.snapshot()
        waiting = sum(message.visible_at <= now for message in stored)
        return Depth(waiting, len(stored) - waiting)

    def snapshot(self) -> Sequence[Stored]:
        """Every message, in flight or not, for assertions."""
        self._expire(self._runtime.now())
        with self._lock:
            return tuple(Stored(**vars(message)) for message in self._stored.values())

    def _take(self, limit: int, now: int) -> Sequence[Delivery]:
        self._expire(now)
        with self._lock:
            visible = [message for message in self._stored.values() if message.visible_at <= now]
            dead = [message for message in visible if self._used_up(message)]
            for message in dead:
                self._give_up(message, now)
            alive = [message for message in visible if message not in dead]
            return tuple(self._deliver(message, now) for message in alive[:limit])

    def _deliver(self, message: Stored, now: int) -> Delivery:
        message.receive_count += 1
        message.first_received_at = message.first_received_at or now
        message.visible_at = now + self._visibility
        message.receipt = f"{message.message_id}#{message.receive_count}"
        self._receipts[message.receipt] = message.message_id
        return Delivery(
            body=message.body,
            receipt=message.receipt,
            message_id=message.message_id,
            receive_count=message.receive_count,
            sent_at=message.sent_at,
            first_received_at=message.first_received_at,
            group=message.group,
        )

    def _used_up(self, message: Stored) -> bool:
        return (
            self._max_receive_count is not None
            and self._dead_letters is not None
            and message.receive_count >= self._max_receive_count
        )

    def _give_up(self, message: Stored, now: int) -> None:
        del self._stored[message.message_id]
        if self._dead_letters is not None:
            self._dead_letters.accept_dead_letter(message, now)

    def accept_dead_letter(self, message: Stored, now: int) -> None:
        """Take a dead letter: same id, body, group and send time; its receives start anew."""
        with self._lock:
            self._accept(
                Stored(message.message_id, message.body, message.group, message.sent_at, now)
            )

    def _accept(self, message: Stored) -> None:
        self._stored[message.message_id] = message

    def _expire(self, now: int) -> None:
        with self._lock:
            for message in list(self._stored.values()):
                if message.sent_at + self._retention <= now:
                    del self._stored[message.message_id]
