"""The dead letters of a deployment, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from handlers.jobs.lifecycle.dead_letters import Letter, read_letter
from handlers.jobs.words.errors import FairlaneError, ReceiptExpired
from scripts.local.errors import LocalError

if TYPE_CHECKING:
    from handlers.jobs.words.job import Lane
    from handlers.jobs.words.ports import LaneQueue

    from .deployment import Deployment

LOOKING: Final = 60
"""Seconds a dead letter is hidden from others while a command has it."""
MOST: Final = 10_000


def letters_of(here: Deployment) -> Iterator[tuple[Lane, LaneQueue, Letter]]:
    """Every dead letter once; each stays hidden from this loop until it is settled or shown.
    Raises LocalError."""
    for lane, queue in here.dead_letters.items():
        seen: set[str] = set()
        while len(seen) < MOST:
            deliveries = [d for d in queue.receive(10, 1) if d.message_id not in seen]
            if not deliveries:
                break
            for delivery in deliveries:
                seen.add(delivery.message_id)
                try:
                    queue.set_visibility(delivery.receipt, LOOKING)
                    yield lane, queue, read_letter(here.world, delivery)
                except FairlaneError as error:
                    raise LocalError(f"dead letter {delivery.message_id}: {error}") from error


def show_again(letters: Sequence[tuple[LaneQueue, Letter]]) -> None:
    """Visible again at once: only now, or the loop would receive them over and over."""
    for queue, letter in letters:
        with suppress(ReceiptExpired):  # it is visible already: there are very many
            queue.set_visibility(letter.delivery.receipt, 0)
