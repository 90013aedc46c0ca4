"""What operators did: a row of the control table for each command that changes something.

The row is written before the command acts, so that no change is without one; its outcome is written
afterwards. Rows are kept as long as the history of jobs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ..words.writes import Key, Put, Update
from .transaction import Transaction, execute, retry_transient

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..words.ports import World
    from ..words.writes import Cursor, Item, Page

ENTRY: Final = "entry"
DAY: Final = 86_400_000


@dataclass(frozen=True)
class Entry:
    """A command that an operator ran."""

    at: int
    """Epoch ms."""
    who: str
    """The ARN of the caller."""
    command: str
    arguments: Mapping[str, Any]
    outcome: str
    """Empty when the command did not come to an end, or could not write it."""


def open_entry(world: World, *, who: str, command: str, arguments: Mapping[str, object]) -> Key:
    """Write down a command that is about to act; the key is for ``close_entry``. Raises
    Transient."""
    now = world.runtime.now()
    key = Key(_day(now), f"{now:013}#{world.runtime.token()}")
    item: Item = {
        "at": now,
        "who": who,
        "command": command,
        "arguments": json.dumps(arguments, sort_keys=True),
        "expires_at_seconds": world.timing.history_ends(now),
    }
    execute(world, Transaction("open_entry", {ENTRY: Put(key, item)}))
    return key


def close_entry(world: World, key: Key, outcome: str) -> None:
    """Add what became of the command. Raises Transient."""
    execute(world, Transaction("close_entry", {ENTRY: Update(key, set={"outcome": outcome})}))


def entries(world: World, days: int) -> Iterator[Entry]:
    """The commands of today (UTC) and the days before it, oldest first. Raises Transient."""
    now = world.runtime.now()
    for ago in range(days - 1, -1, -1):
        after: Cursor | None = None
        while True:
            page = _page(world, _day(now - ago * DAY), after)
            for found in page.found:
                yield _entry(found.item)
            after = page.next
            if after is None:
                break


def _page(world: World, partition: str, after: Cursor | None) -> Page:
    return retry_transient(
        world, lambda: world.store.query_partition(partition, sk_prefix="", after=after)
    )


def _day(at: int) -> str:
    """The partition of a day's rows. at: epoch ms."""
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    return f"OPERATORS#{day.date().isoformat()}"


def _entry(item: Item) -> Entry:
    return Entry(
        at=int(str(item["at"])),
        who=str(item["who"]),
        command=str(item["command"]),
        arguments=json.loads(str(item["arguments"])),
        outcome=str(item.get("outcome", "")),
    )
