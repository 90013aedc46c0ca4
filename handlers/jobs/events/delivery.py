"""Recovery delivers the events that were not delivered at once.

A delivery that fails is retried with growing waits and parked after ``max_effect_tries``, until an
operator asks for a replay. An address that failed a moment ago is not asked again in the same run;
that does not count as a try.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.outbox import error_of, rows_of_job, rows_of_kinds, since
from ..storage.transaction import Rejected, Transaction, execute
from ..words.errors import NotAsked, Transient
from ..words.event import ADDRESS, NotTaken
from ..words.job import Lane
from ..words.metrics import Metric
from ..words.timing import backoff_ms, ms
from ..words.writes import Delete, Equals, Index, Update
from .rows import event_of, row_key, with_try

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..words.event import JobEvent
    from ..words.ports import World
    from ..words.writes import Found, Item, When, Write

ROLE: Final = "event"


@dataclass
class EventDelivery:
    """One recovery run's."""

    world: World
    _silent: set[str] = field(default_factory=set)
    """Tenants whose address did not answer in this run: one wait for each of them is enough."""

    def settle(self, found: Found) -> bool:
        """Tell one event that is due. True when it is told. Raises Rejected, Transient."""
        world = self.world
        at = int(str(found.item[Index.DUE.sk]))
        event = event_of(found.item)
        lane = Lane(event.lane)
        world.telemetry.duration(Metric.EVENT_AGE, max(0, world.runtime.now() - at), lane=lane)
        if event.listener == ADDRESS and event.tenant in self._silent:
            self._put_off(found, event, (Equals("tries", event.tries), Equals(Index.DUE.sk, at)))
            return False
        claimed, until = self._claim(event, at)
        mine = (Equals("tries", claimed.tries), Equals(Index.DUE.sk, until))
        try:
            self._tell(claimed)
        except NotTaken as error:
            self._park(claimed, mine, str(error), lane)
            return False
        except NotAsked:
            self._put_off(found, event, mine)
            return False
        except Transient as error:
            self._again(claimed, mine, error, lane)
            return False
        except Exception as error:  # noqa: BLE001  a listener's bug is tried again, then parked
            world.telemetry.log("listener_crashed", job_id=event.job_id, error=error)
            self._again(claimed, mine, Transient(f"{type(error).__name__}: {error}"), lane)
            return False
        _write(self.world, "event_told", Delete(row_key(event), when=mine))
        return True

    def _claim(self, event: JobEvent, at: int) -> tuple[JobEvent, int]:
        """Closes: two recovery runs, or the writer and recovery, on one event."""
        until = self.world.runtime.now() + ms(self.world.timing.effect_claim)
        when = (Equals(Index.DUE.sk, at), Equals("tries", event.tries))
        _write(
            self.world,
            "claim_event",
            Update(row_key(event), set={Index.DUE.sk: until}, add={"tries": 1}, when=when),
        )
        return with_try(event), until

    def _tell(self, event: JobEvent) -> None:
        listener = self.world.listeners.get(event.listener)
        if listener is None:
            return  # no longer deployed: nobody is left to tell
        try:
            listener.tell(event)
        except Transient:
            if event.listener == ADDRESS:
                self._silent.add(event.tenant)
            raise

    def _put_off(self, found: Found, event: JobEvent, when: When) -> None:
        """Nobody was asked, so that is no try. The wait grows with each time all the same: what
        many jobs have to tell a dead address would be all that a run ever looks at.

        event: as it was before it was claimed."""
        world, put_off = self.world, int(str(found.item.get("put_off", 0)))
        wait = backoff_ms(
            event.tries + put_off,
            base=world.timing.effect_retry_base,
            cap=world.timing.effect_retry_cap,
            random=world.runtime.random(),
        )
        later: Item = {
            Index.DUE.sk: world.runtime.now() + wait,
            "tries": event.tries,
            "put_off": put_off + 1,
        }
        _write(world, "put_event_off", Update(row_key(event), set=later, when=when))

    def _again(self, event: JobEvent, mine: When, error: Transient, lane: Lane) -> None:
        world = self.world
        if event.tries >= world.limits.max_effect_tries:
            self._park(event, mine, str(error), lane)
            return
        wait = backoff_ms(
            event.tries - 1,
            base=world.timing.effect_retry_base,
            cap=world.timing.effect_retry_cap,
            random=world.runtime.random(),
            asked_ms=error.retry_after_ms,
        )
        later: Item = {Index.DUE.sk: world.runtime.now() + wait, "last_error": str(error)}
        _write(world, "event_again", Update(row_key(event), set=later, when=mine))

    def _park(self, event: JobEvent, mine: When, why: str, lane: Lane) -> None:
        """It is kept for as long as the job's history, and not tried again until asked for."""
        world = self.world
        parked = Update(
            row_key(event),
            set={
                "parked": True,
                "last_error": why,
                **control_table.due(
                    control_table.PARKED_EVENT, event.job_id, world.runtime.now(), world.due_shards
                ),
                "expires_at_seconds": world.timing.history_ends(world.runtime.now()),
            },
            when=mine,
        )
        _write(world, "park_event", parked)
        world.telemetry.count(Metric.EVENTS_PARKED, lane=lane)
        world.telemetry.log("event_parked", job_id=event.job_id, tenant=event.tenant, why=why)


# --- what was parked --------------------------------------------------------------------------


@dataclass(frozen=True)
class UndeliveredEvent:
    """An event's row."""

    event: JobEvent
    parked: bool
    error: str
    since: int
    """See ``outbox.since``."""


def undelivered_of_job(world: World, job_id: str) -> Iterator[UndeliveredEvent]:
    """The job's open and parked events, the oldest first. Raises Transient."""
    return map(_undelivered, rows_of_job(world, job_id, control_table.EVENT_PREFIX))


def undelivered_of_all(world: World) -> Iterator[UndeliveredEvent]:
    """Everybody's open and parked events, a moment behind. Raises Transient."""
    return map(_undelivered, rows_of_kinds(world, control_table.PARKED_EVENT, control_table.EVENT))


def replay_event(world: World, event: JobEvent) -> bool:
    """Tell a parked event again from its first try; false when somebody else did, or its history
    is over. Raises Transient."""
    now = world.runtime.now()
    again = Update(
        row_key(event),
        set={
            "tries": 0,
            **control_table.due(control_table.EVENT, event.job_id, now, world.due_shards),
            "expires_at_seconds": world.timing.history_ends(now),
        },
        remove=("parked", "put_off"),
        when=(Equals("parked", True),),  # noqa: FBT003  the stored value
    )
    try:
        _write(world, "unpark_event", again)
    except Rejected:
        return False
    world.telemetry.log("event_replayed", job_id=event.job_id, tenant=event.tenant, key=event.key)
    return True


def _undelivered(found: Found) -> UndeliveredEvent:
    parked = found.item.get("parked") is True
    return UndeliveredEvent(event_of(found.item), parked, error_of(found), since(found))


def _write(world: World, action: str, write: Write) -> None:
    execute(world, Transaction(action, {ROLE: write}))
