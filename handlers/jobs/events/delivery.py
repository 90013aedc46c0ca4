"""Recovery delivers the events that were not delivered at once.

A delivery that fails is retried with growing waits and parked after ``max_effect_tries``, until an
operator asks for a replay. An address that failed a moment ago is not asked again in the same run;
that does not count as a try.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..storage import control_table, outbox
from ..storage.outbox import ROW, error_of, rows_of_job, rows_of_kinds, since
from ..storage.transaction import Rejected, Transaction, execute
from ..words.errors import NotAsked, Transient
from ..words.event import ADDRESS, NotTaken
from ..words.job import Lane
from ..words.metrics import Metric
from ..words.timing import ms
from ..words.writes import Delete, Index, Update
from .rows import event_of, row_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..storage.outbox import Claim
    from ..words.event import JobEvent
    from ..words.ports import World
    from ..words.writes import Found, Item, When, Write


@dataclass
class EventDelivery:
    """The deliveries of one recovery run."""

    world: World
    _unanswered: set[str] = field(default_factory=set)
    """Tenants whose address did not answer in this run: one wait for each of them is enough."""

    def deliver(self, found: Found) -> bool:
        """Deliver one event that is due. True when it is delivered. Raises Rejected, Transient."""
        world = self.world
        due_at = since(found)
        event = event_of(found.item)
        lane = Lane(event.lane)
        world.telemetry.duration(Metric.EVENT_AGE, max(0, world.runtime.now() - due_at), lane=lane)
        if event.listener == ADDRESS and event.tenant in self._unanswered:
            self._put_off(found, event, outbox.as_read(event.tries, due_at))
            return False
        claim = outbox.claim(
            world,
            "event",
            row_key(event),
            tries=event.tries,
            due_at=due_at,
            ms=ms(world.timing.effect_claim),
        )
        if claim.tries > world.limits.max_effect_tries:
            # Runs were killed in their tries, and so none of them could park it.
            self._park(event, claim, outbox.error_of(found) or "its last try did not end")
            return False
        try:
            self._call_listener(event)
        except NotTaken as error:
            self._park(event, claim, str(error))
        except NotAsked:
            self._put_off(found, event, claim.holds)
        except Transient as error:
            self._retry(event, claim, error)
        except Exception as error:  # noqa: BLE001  a listener's bug is tried again, then parked
            world.telemetry.log("listener_crashed", job_id=event.job_id, error=error)
            self._retry(event, claim, Transient(f"{type(error).__name__}: {error}"))
        else:
            _write(world, "event_told", Delete(claim.key, when=claim.holds))
            return True
        return False

    def _call_listener(self, event: JobEvent) -> None:
        listener = self.world.listeners.get(event.listener)
        if listener is None:
            return  # no longer deployed: there is no listener to deliver to
        try:
            listener.deliver_event(event)
        except Transient:
            if event.listener == ADDRESS:
                self._unanswered.add(event.tenant)
            raise

    def _put_off(self, found: Found, event: JobEvent, when: When) -> None:
        """Deliver later without counting a try, since the listener was not asked. The wait grows
        all the same: otherwise every run would look only at the events of many jobs for one dead
        address."""
        world, put_off = self.world, int(str(found.item.get("put_off", 0)))
        wait = outbox.wait_ms(world, event.tries + put_off + 1)
        later: Item = {
            Index.DUE.sk: world.runtime.now() + wait,
            "tries": event.tries,
            "put_off": put_off + 1,
        }
        _write(world, "put_event_off", Update(row_key(event), set=later, when=when))

    def _retry(self, event: JobEvent, claim: Claim, error: Transient) -> None:
        world = self.world
        if claim.tries >= world.limits.max_effect_tries:
            self._park(event, claim, str(error))
            return
        later = outbox.retried(
            world, tries=claim.tries, error=str(error), asked_ms=error.retry_after_ms
        )
        _write(world, "event_again", Update(claim.key, set=later, when=claim.holds))

    def _park(self, event: JobEvent, claim: Claim, why: str) -> None:
        """Give the event up until a replay. Its row is kept for as long as the job's history."""
        world = self.world
        parked = outbox.parked(world, control_table.PARKED_EVENT, event.job_id, error=why)
        kept = {"expires_at_seconds": world.timing.history_ends(world.runtime.now())}
        _write(world, "park_event", Update(claim.key, set={**parked, **kept}, when=claim.holds))
        world.telemetry.count(Metric.EVENTS_PARKED, lane=Lane(event.lane))
        world.telemetry.log("event_parked", job_id=event.job_id, tenant=event.tenant, why=why)


# --- what was parked --------------------------------------------------------------------------


@dataclass(frozen=True)
class UndeliveredEvent:
    """An open or parked event, with its row's state."""

    event: JobEvent
    parked: bool
    error: str
    since: int
    """See ``outbox.since``."""


def undelivered_of_job(world: World, job_id: str) -> Iterator[UndeliveredEvent]:
    """The job's open and parked events, the oldest first. Raises Transient."""
    return map(_undelivered, rows_of_job(world, job_id, control_table.EVENT_PREFIX))


def undelivered_of_all(world: World) -> Iterator[UndeliveredEvent]:
    """All tenants' open and parked events, perhaps a moment old. Raises Transient."""
    return map(_undelivered, rows_of_kinds(world, control_table.PARKED_EVENT, control_table.EVENT))


def replay_event(world: World, event: JobEvent) -> bool:
    """Deliver a parked event again, from its first try; false when it is not parked any more:
    another replay was first, or its history is over. Raises Transient."""
    kept: Item = {"expires_at_seconds": world.timing.history_ends(world.runtime.now())}
    again = outbox.replayed(world, row_key(event), control_table.EVENT, event.job_id, beside=kept)
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
    execute(world, Transaction(action, {ROW: write}))
