"""Jobs of a newer version, with an operation, a parameter or a word that this one does not know.

During a deployment, older workers meet such jobs. They leave them to the newer workers, for
``timing.rollout``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..storage import control_table
from ..storage.transaction import Rejected, Transaction, execute
from ..transitions.conditions import JOB
from ..words.metrics import Metric
from ..words.timing import ms
from ..words.writes import Missing, Update, as_stored

if TYPE_CHECKING:
    from ..words.ports import World
    from ..words.writes import Item

STAMP: Final = "not_understood_since"


def left_to_newer(world: World, job_id: str, item: Item, why: str) -> bool:
    """Whether the job is left to workers of a newer version, for the first time or still.

    item: of the job, with ``state``, ``fence`` and the stamp as read. Stamps the job at the first
    look. Raises Transient. Closes: stamping a job that a newer worker has begun meanwhile, and
    stamping it again, which would never end.
    """
    bound = ms(world.timing.rollout)
    if not bound:
        return False
    now, since = world.runtime.now(), item.get(STAMP)
    if isinstance(since, int):
        return now - since < bound
    stamp = Update(
        control_table.job_key(job_id),
        set={STAMP: now},
        when=(as_stored(item, "state"), as_stored(item, "fence"), Missing(STAMP)),
    )
    try:
        execute(world, Transaction("not_understood", {JOB: stamp}))
    except Rejected:
        return True  # a newer worker has begun it, or another one has stamped it
    world.telemetry.count(Metric.NOT_UNDERSTOOD)
    world.telemetry.log("left_to_newer", job_id=job_id, why=why)
    return True
