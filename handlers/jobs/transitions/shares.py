"""A tenant's share of the bulk lane: reading it, charging it, and its weight.

The share decides only who runs next. A charge that is lost makes a turn longer or shorter and
harms nothing, so charging has a transaction of its own, outside the job's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.transaction import Transaction, execute, retry_transient
from ..words.job import Lane
from ..words.turns import MAX_WEIGHT, Share
from ..words.writes import Equals, Missing, Update

if TYPE_CHECKING:
    from ..words.ports import World
    from ..words.writes import Key, When

SHARE: Final = "share"


def share_key(tenant: str) -> Key:
    return control_table.share_key(tenant, Lane.BULK)


def read_share(world: World, tenant: str) -> Share:
    """What the tenant has used. Raises Transient."""
    item = retry_transient(world, lambda: world.store.get(share_key(tenant))) or {}
    return Share(
        used=_number(item.get("used"), 0),
        at=_number(item.get("at"), 0),
        weight=max(1, _number(item.get("weight"), 1)),
        served_at=_number(item.get("served_at"), 0),
    )


def charge_share(tenant: str, seen: Share, after: Share) -> Transaction:
    """Set what the tenant has used, from ``seen`` to ``after``.

    Closes: two workers that add to the same reading, of which one charge would be lost.
    """
    write = Update(
        share_key(tenant),
        set={"used": after.used, "at": after.at, "served_at": after.served_at},
        when=_as_read(seen),
    )
    return Transaction("charge_share", {SHARE: write})


def set_weight(world: World, tenant: str, weight: int | None) -> None:
    """Set a tenant's weight in the bulk lane; None: 1 again. It counts from the next slice that
    ends. Raises Transient, ValueError."""
    if weight is None:
        update = Update(share_key(tenant), remove=("weight",))
    elif not 1 <= weight <= MAX_WEIGHT:
        raise ValueError(f"the weight is {weight}; it must be 1 to {MAX_WEIGHT}")
    else:
        update = Update(share_key(tenant), set={"weight": weight})
    execute(world, Transaction("set_weight", {SHARE: update}))


def _as_read(seen: Share) -> When:
    if not seen.at:
        return (Missing("at"),)
    return (Equals("at", seen.at), Equals("used", seen.used))


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default
