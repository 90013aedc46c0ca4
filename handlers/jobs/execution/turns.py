"""Taking turns in the bulk lane: an attempt looks once a slice who waits, and may give way.

Everything here is a hint for who runs next. When the lane cannot be looked at, the job goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.transaction import Rejected, execute
from ..transitions.shares import charge_share, read_share
from ..words.errors import Transient
from ..words.job import Lane, Waiting
from ..words.timing import ms
from ..words.turns import Turns, Waiter
from ..words.writes import Index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..words.job import Job
    from ..words.ports import Delivery, World
    from ..words.turns import Share

LOOKED_AT: Final = 20
"""Waiting jobs that one look sees: those that have waited longest."""
PUT_OFF: Final = 2
"""Seconds a message that is put off stays hidden."""
STANDS_FREE: Final = 2 * ms(PUT_OFF)
"""ms in a row that a slot stands free at most for a job whose turn it is. That job's message may be
hidden because it was put off itself, so these are more than one put-off. It may also never come,
and the lane must not stand still for it."""
AT_ONCE: Final = 1000
"""A job whose first message is received so many ms after it could start has met a free slot: nobody
waits, and it is not worth a call to make sure."""
CHARGE_TRIES: Final = 3


def waiters_of(world: World, job: Job) -> Sequence[Waiter]:
    """The other jobs that wait for a slot of the job's lane now, the longest first; perhaps a
    moment old. One call. Raises Transient."""
    page = world.store.query(
        Index.HELD, control_table.waiting_partition(job.lane), limit=LOOKED_AT + 1
    )
    waiters = [
        Waiter(str(each.item["id"]), str(each.item["tenant"]), _since(each.item[Index.HELD.sk]))
        for each in page.found
    ]
    now = world.runtime.now()
    return [each for each in waiters if each.job_id != job.id and each.since <= now][:LOOKED_AT]


def _since(sort_key: object) -> int:
    return int(str(sort_key).partition("#")[0])


class FreeSlot:
    """How long one slot has stood free for jobs whose turn it was, over all messages it got."""

    def __init__(self) -> None:
        self._since: int | None = None
        self._any_until = 0

    def waits(self, now: int, slice_ms: int) -> bool:
        """Whether the slot, offered a job before its turn, stands free on. Once it has waited in
        vain it takes any job for a slice, so the order costs it ``STANDS_FREE`` of each slice at
        most."""
        if now < self._any_until:
            return False
        if self._since is None:
            self._since = now
        if now - self._since < STANDS_FREE:
            return True
        self._since, self._any_until = None, now + slice_ms
        return False

    def taken(self) -> None:
        """The slot has a job whose turn it is."""
        self._since = None


def is_put_off(
    world: World, job: Job, delivery: Delivery, slot: FreeSlot | None
) -> tuple[bool, bool]:
    """Whether a queued job's message is put off for a job that should run first, and whether any
    other job waits. Never raises."""
    before_its_turn, contended = _before_its_turn(world, job, delivery)
    if slot is None:
        return False, contended
    if before_its_turn:
        return slot.waits(world.runtime.now(), ms(world.timing.slice)), contended
    slot.taken()
    return False, contended


def _before_its_turn(world: World, job: Job, delivery: Delivery) -> tuple[bool, bool]:
    """Whether another job should run first, and whether any other job waits."""
    if job.lane is not Lane.BULK or not world.timing.slice:
        return False, False
    since = _since(control_table.waiting_place(job))
    if _comes_at_once(world, job, delivery, since):
        return False, False
    try:
        others = waiters_of(world, job)
        if not others:
            return False, False
        turns = _turns(world, {job.tenant, *(other.tenant for other in others)})
        return turns.put_off(Waiter(job.id, job.tenant, since), others), True
    except Transient as error:
        world.telemetry.log("lane_not_looked_at", job_id=job.id, why=str(error))
        return False, False


def _comes_at_once(world: World, job: Job, delivery: Delivery, since: int) -> bool:
    """A job that gave way is asked in any case: its fresh message may come before all others."""
    fresh = job.waiting_reason is not Waiting.SLICE and delivery.receive_count == 1
    return fresh and world.runtime.now() - since < AT_ONCE


def receives_run_short(world: World, job: Job, delivery: Delivery) -> bool:
    """Whether one more put-off would take a receive that an attempt may need: a job must be able to
    use up its attempts before the queue gives up on its message."""
    timing = world.timing.lane(job.lane)
    return delivery.receive_count >= timing.max_receive_count - timing.max_attempts


def _turns(world: World, tenants: set[str]) -> Turns:
    """Raises Transient."""
    shares = {tenant: read_share(world, tenant) for tenant in sorted(tenants)}
    return Turns(ms(world.timing.slice), world.runtime.now(), shares)


class Turn:
    """One attempt's time in a slot of the bulk lane."""

    def __init__(self, world: World, job: Job, *, contended: bool) -> None:
        """contended: another job waited when the attempt began."""
        self._world = world
        self._tenant = job.tenant
        self._slice = ms(world.timing.slice) if job.lane is Lane.BULK else 0
        self._uncharged_since = world.runtime.now()
        self._look_at = self._uncharged_since + self._slice
        self._contended = contended

    def over(self, job: Job) -> bool:
        """Whether the job's slice is over and another job should have its slot now. Between slices
        this makes no call; at the end of one it makes one, and more only while another waits.
        Never raises."""
        now = self._world.runtime.now()
        if not self._slice or now < self._look_at:
            return False
        self._look_at = now + self._slice
        try:
            waiters = waiters_of(self._world, job)
            if not waiters:
                # Time that no other job wanted is free.
                self._uncharged_since, self._contended = now, False
                return False
            return self._gives_way(waiters, now)
        except Transient as error:
            self._world.telemetry.log("lane_not_looked_at", job_id=job.id, why=str(error))
            return False

    def _gives_way(self, waiters: Sequence[Waiter], now: int) -> bool:
        wanted_for = now - waiters[0].since
        used = max(0, min(now - self._uncharged_since, wanted_for))
        self._uncharged_since, self._contended = now, True
        self._charge(used)
        tenants = {self._tenant, *(waiter.tenant for waiter in waiters)}
        turns = _turns(self._world, tenants)
        for tenant in sorted(tenants - {self._tenant}):
            if (after := turns.caught_up(tenant, to=self._tenant)) is not None:
                self._write(tenant, turns.shares[tenant], after)
        return turns.gives_way(self._tenant, waiters)

    def close(self) -> None:
        """Charge what the attempt used of its last slice, if another job wanted it. Never
        raises."""
        used = self._world.runtime.now() - self._uncharged_since
        if not self._contended or not self._slice or used <= 0:
            return
        try:
            self._charge(used)
        except Transient as error:
            self._world.telemetry.log("turn_not_charged", tenant=self._tenant, why=str(error))

    def _charge(self, used: int) -> None:
        """Raises Transient."""
        for _ in range(CHARGE_TRIES):
            turns = _turns(self._world, {self._tenant})
            seen, after = turns.shares[self._tenant], turns.charged(self._tenant, used)
            if self._write(self._tenant, seen, after):
                return

    def _write(self, tenant: str, seen: Share, after: Share) -> bool:
        """False when another worker changed the share meanwhile. Raises Transient."""
        try:
            execute(self._world, charge_share(tenant, seen, after))
        except Rejected:
            return False
        return True
