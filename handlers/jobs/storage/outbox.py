"""The outbox: rows that say what must still happen. Dispatches, effects and events are such rows.

A row becomes due at a time. A run of recovery claims it, which counts as a try; then the row is
deleted (done), retried later, or parked until an operator asks for a replay. Every function that
writes returns the write, so that it can stand in one transaction with the job's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ..words.timing import backoff_ms
from ..words.writes import Equals, Index, Update
from . import control_table
from .transaction import Transaction, execute, retry_transient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..words.ports import World
    from ..words.writes import Cursor, Found, Item, Key, Page, When

PAGE: Final = 100
ROW: Final = "row"
"""The role of the row in a transaction of its own."""


# --- one row ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A run's hold on a row: until then no other run takes it."""

    key: Key
    tries: int
    """The number of tries, this one included."""
    until: int
    """When the hold ends (ms)."""

    @property
    def holds(self) -> When:
        """The condition that no run has finished with the row since the claim."""
        return as_read(self.tries, self.until)


def as_read(tries: int, due_at: int | None) -> When:
    """The condition that no run claimed or finished the row since it was read. due_at: as read;
    None leaves the time out of the condition, for a row that recovery has not claimed."""
    unmoved = (Equals("tries", tries),)
    return unmoved if due_at is None else (*unmoved, Equals(Index.DUE.sk, due_at))


def claim(world: World, what: str, key: Key, *, tries: int, due_at: int, ms: int) -> Claim:
    """Take a due row for one run; a crash in it costs a try. Raises Rejected, Transient.

    tries, due_at: as read. ms: how long other runs leave it alone. Closes: two recovery runs on
    one row."""
    until = world.runtime.now() + ms
    write = Update(key, set={Index.DUE.sk: until}, add={"tries": 1}, when=as_read(tries, due_at))
    execute(world, Transaction(f"claim_{what}", {ROW: write}))
    return Claim(key, tries + 1, until)


def retried(
    world: World,
    *,
    tries: int,
    error: str,
    asked_ms: int | None = None,
    cap: float | None = None,
) -> Item:
    """The attributes to set on a row that is tried again later, after a jittered and growing wait.
    asked_ms: the wait that the other side asked for. cap: see ``wait_ms``."""
    at = world.runtime.now() + wait_ms(world, tries, asked_ms, cap)
    return {Index.DUE.sk: at, "last_error": error}


def wait_ms(world: World, tries: int, asked_ms: int | None = None, cap: float | None = None) -> int:
    """The wait (ms) between this many tries and the next. cap: seconds of the longest one, without
    what was asked for; ``effect_retry_cap`` when left out."""
    return backoff_ms(
        tries - 1,
        base=world.timing.effect_retry_base,
        cap=world.timing.effect_retry_cap if cap is None else cap,
        random=world.runtime.random(),
        asked_ms=asked_ms,
    )


def parked(world: World, kind: str, of: str, *, error: str) -> Item:
    """The attributes to set on a row that is given up until a replay. kind: the kind under which
    it is listed. of: the job's id."""
    due = control_table.due(kind, of, world.runtime.now(), world.due_shards)
    return {"parked": True, "last_error": error, **due}


def replayed(world: World, key: Key, kind: str, of: str, *, beside: Item | None = None) -> Update:
    """The write that makes a parked row due now, as if it had never been tried.

    kind: the kind under which recovery finds it. of: the job's id. Closes: two replays of one
    row."""
    due = control_table.due(kind, of, world.runtime.now(), world.due_shards)
    return Update(
        key,
        set={"tries": 0, **due, **(beside or {})},
        remove=("parked", "put_off"),
        when=(Equals("parked", True),),  # noqa: FBT003  the stored value
    )


# --- all rows ---------------------------------------------------------------------------------


def rows_of_job(world: World, job_id: str, prefix: str) -> Iterator[Found]:
    """The job's rows whose sort key begins with the prefix, in key order. Raises Transient."""
    yield from _all(world, partial(_page_of_job, world, control_table.job_key(job_id).pk, prefix))


def rows_of_kinds(world: World, *kinds: str) -> Iterator[Found]:
    """All tenants' rows of these kinds, perhaps a moment old. Raises Transient."""
    for kind in kinds:
        for shard in range(world.due_shards):
            yield from _all(
                world, partial(_page_of_kind, world, control_table.due_partition(kind, shard))
            )


def error_of(found: Found) -> str:
    """The error of the last try; empty before the first one failed."""
    return str(found.item.get("last_error", ""))


def since(found: Found) -> int:
    """The time of the row's next try, or the time when it was parked (epoch ms)."""
    at = found.item.get(Index.DUE.sk)
    return at if isinstance(at, int) else 0


def _page_of_job(world: World, pk: str, prefix: str, after: Cursor | None) -> Page:
    return world.store.query_partition(pk, sk_prefix=prefix, limit=PAGE, after=after)


def _page_of_kind(world: World, partition: str, after: Cursor | None) -> Page:
    return world.store.query(Index.DUE, partition, limit=PAGE, after=after)


def _all(world: World, ask: Callable[[Cursor | None], Page]) -> Iterator[Found]:
    after: Cursor | None = None
    while True:
        page = retry_transient(world, partial(ask, after))
        yield from page.found
        after = page.next
        if after is None:
            return
