"""Rate limits in the control table, and the grants that the workers share.

A grant is about a second's worth of a limit. The row of a limit has the time up to which it is
granted: whoever takes a grant moves that time on, on condition that it is as it was read. So a
limit costs about one write a second, however high it is and however many workers share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..words.job import Lane
from ..words.rates import MAX_RATE, RateLimit, Unit
from ..words.timing import SECOND
from ..words.writes import Key, Update, as_stored
from .control_table import safe, tenant_items
from .transaction import Rejected, Transaction, execute, retry_transient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..words.ports import World

AHEAD: Final = 3 * SECOND
"""How far ahead (ms) of now a grant may begin: workers stand in line for no longer."""
CATCH_UP: Final = 1 * SECOND
"""How much (ms) of the time that nobody used may be used later."""
UNTIL: Final = "granted_until"
ROW: Final = "row"


# --- the limits -------------------------------------------------------------------------------


def read_limits(world: World, *, tenant: str, operation: str) -> tuple[RateLimit, ...]:
    """The limits of a bulk job. Two reads. Raises Transient."""
    of_tenant = retry_transient(world, lambda: world.store.get(tenant_key(tenant))) or {}
    of_lane = retry_transient(world, lambda: world.store.get(lane_key())) or {}
    found = []
    for unit in Unit:
        for scope, rate in (
            (f"tenant#{safe(tenant)}", of_tenant.get(unit.value)),
            (f"operation#{safe(operation)}", of_lane.get(_of_operation(unit, operation))),
            (f"lane#{Lane.BULK}", of_lane.get(unit.value)),
        ):
            if isinstance(rate, int) and rate > 0:
                found.append(RateLimit(scope, unit, rate))
    return tuple(found)


def tenant_limits(world: World, tenant: str) -> Mapping[Unit, int]:
    """The limits of a tenant's own. Raises Transient."""
    item = retry_transient(world, lambda: world.store.get(tenant_key(tenant))) or {}
    return {u: rate for u in Unit if isinstance(rate := item.get(u.value), int)}


def lane_limits(world: World, operation: str | None = None) -> Mapping[Unit, int]:
    """The limits of the bulk lane, or of an operation in it. Raises Transient."""
    item = retry_transient(world, lambda: world.store.get(lane_key())) or {}
    return {
        unit: rate
        for unit in Unit
        if isinstance(rate := item.get(_of_operation(unit, operation)), int)
    }


def set_tenant_limit(world: World, tenant: str, unit: Unit, rate: int | None) -> None:
    """None: no limit. Workers follow within seconds. Raises Transient, ValueError."""
    _set(world, tenant_key(tenant), unit.value, rate)


def set_lane_limit(world: World, unit: Unit, rate: int | None, operation: str | None) -> None:
    """As ``set_tenant_limit``, for the bulk lane or for one operation in it."""
    _set(world, lane_key(), _of_operation(unit, operation), rate)


def tenant_key(tenant: str) -> Key:
    return Key(tenant_items(tenant), "RATES")


def lane_key() -> Key:
    return Key(f"LANE#{Lane.BULK}", "RATES")


def _of_operation(unit: Unit, operation: str | None) -> str:
    return unit.value if operation is None else f"{unit.value}@{operation}"


def _set(world: World, key: Key, name: str, rate: int | None) -> None:
    if rate is None:
        update = Update(key, remove=(name,))
    elif not 1 <= rate <= MAX_RATE:
        raise ValueError(f"the rate is {rate}; it must be from 1 to {MAX_RATE}")
    else:
        update = Update(key, set={name: rate})
    execute(world, Transaction("set_rate", {ROW: update}))


# --- grants -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grant:
    """So many of a unit, to be used from a time on."""

    amount: int
    start: int
    """Epoch ms."""
    until: int
    """The time up to which the limit is granted with it."""


def next_grant(limit: RateLimit, granted_until: int | None, now: int) -> Grant | None:
    """The grant after those given out so far; None when it would begin too far ahead.

    granted_until: as stored; None when nothing was ever granted."""
    start = max(granted_until or 0, now - CATCH_UP)
    if start > now + AHEAD:
        return None
    return Grant(limit.rate, start, start + SECOND)


def take_grant(world: World, limit: RateLimit) -> Grant | None:
    """Take the next grant for this worker; None when it would begin too far ahead, or another
    worker took it. Raises Transient."""
    key = Key(f"RATE#{limit.scope}", limit.unit.value)
    item = retry_transient(world, lambda: world.store.get(key)) or {}
    until = item.get(UNTIL)
    grant = next_grant(limit, until if isinstance(until, int) else None, world.runtime.now())
    if grant is None:
        return None
    taken = Update(key, set={UNTIL: grant.until}, when=(as_stored(item, UNTIL),))
    try:
        execute(world, Transaction("take_grant", {ROW: taken}))
    except Rejected:
        return None
    return grant
