"""The fast path of the outbox: send the message of a dispatch row at once, then drop the row.

Nothing that happens here can lose a job: the row stays until the message is known to be sent, and
recovery sends what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..storage import control_table
from ..words.errors import OutcomeUnknown, Refused, Transient
from ..words.messages import message_for
from ..words.writes import Delete

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import World


def send_dispatch(world: World, job: Job) -> bool:
    """Send the job's newest dispatch. False when that is left to recovery."""
    try:
        refused = world.queues[job.lane].send([message_for(job)])
    except (Transient, OutcomeUnknown) as error:
        world.telemetry.log("dispatch_left", job_id=job.id, tenant=job.tenant, why=str(error))
        return False
    except Exception as error:  # noqa: BLE001  the job is committed; its message is recovery's
        world.telemetry.log("dispatch_crashed", job_id=job.id, tenant=job.tenant, error=error)
        return False
    if refused:
        world.telemetry.log("dispatch_left", job_id=job.id, tenant=job.tenant, why="refused")
        return False
    drop_dispatch(world, job.id, job.dispatches)
    return True


def drop_dispatch(world: World, job_id: str, number: int) -> None:
    """Drop a dispatch row whose message was sent. Left behind, it costs one harmless duplicate."""
    try:
        world.store.transact("dispatch_sent", [Delete(control_table.dispatch_key(job_id, number))])
    except (Transient, OutcomeUnknown, Refused) as error:
        world.telemetry.log("dispatch_row_left", job_id=job_id, why=str(error))
