"""``GET /v1/subjects``: which job holds a subject, in two reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..jobs.storage import control_table
from ..jobs.storage.transaction import retry_transient
from ..jobs.words.errors import Undecodable
from ..jobs.words.limits import MAX_SUBJECT_BYTES
from ..jobs.words.text_rules import text_problem
from .addresses import location
from .problems import bad_request
from .views import timestamp

if TYPE_CHECKING:
    from ..jobs.words.job import Job
    from ..jobs.words.ports import World
    from .query import Query


def subject_view(world: World, tenant: str, query: Query, base: str) -> dict[str, Any]:
    """base: see ``addresses``. Raises Problem, Transient, Undecodable."""
    name = query.get("name")
    if name is None:
        raise bad_request("name", "must name the subject")
    if problem := text_problem(name, MAX_SUBJECT_BYTES):
        raise bad_request("name", problem)
    item = retry_transient(world, lambda: world.store.get(control_table.lease_key(tenant, name)))
    lease = None if item is None else control_table.lease_of(item)
    if lease is None or lease.job_id is None:
        return {"subject": name}
    job = _holder(world, lease.job_id)
    parts = {
        "subject": name,
        "holder": {
            "id": lease.job_id,
            "state": "unknown" if job is None else job.state.value,
            "url": location(lease.job_id, base),
        },
        "since": None if job is None else timestamp(job.created_at),
        "until": timestamp(lease.expires_at),
    }
    return {part: value for part, value in parts.items() if value is not None}


def _holder(world: World, job_id: str) -> Job | None:
    """None for a job that cannot be read."""
    try:
        return retry_transient(world, lambda: control_table.read_job(world, job_id))
    except Undecodable:
        return None
