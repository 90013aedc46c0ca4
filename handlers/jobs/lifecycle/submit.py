"""Creating a job: subject, slot, job and dispatch in one transaction, then the message at once.

A subject that is taken is refused here, and nothing is left behind; nothing ever waits in a queue
for another job to finish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..events.rows import publish_now
from ..selection.id_sources import lines
from ..selection.resolve import check_address, lane_for, select
from ..selection.table_uploads import fix_tables
from ..selection.walk_order import permuted
from ..storage.control_table import lease_of, read_job
from ..storage.transaction import Indeterminate, Rejected, execute, retry_transient
from ..transitions.conditions import JOB, LEASE
from ..transitions.enqueue import create_job, first_fence, queued_job
from ..transitions.idempotency import REQUEST, RETRIED
from ..transitions.quotas import ACTIVE, SLOTS, active_limit
from ..transitions.takeover import take_over
from ..words.errors import Transient, Undecodable
from ..words.job import Job, Lease
from ..words.limits import INLINE_ID_BYTES
from ..words.metrics import Metric
from ..words.states import State
from ..words.timing import ms
from .admission import admit_held, admit_if_free
from .cleanup import release_if_held
from .dispatch import send_dispatch

if TYPE_CHECKING:
    from ..selection.request import Accepted
    from ..selection.resolve import Selection
    from ..storage.transaction import Transaction
    from ..words.errors import Reason
    from ..words.ports import World

MAX_TRIES: Final = 8


@dataclass(frozen=True)
class Created:
    job: Job
    replayed: bool = False
    """The same request had created it before."""


@dataclass(frozen=True)
class Busy:
    """Another job holds the subject."""

    job_id: str
    state: State | None
    """None when that job could not be read."""


@dataclass(frozen=True)
class TooMany:
    """The tenant has as many active jobs as it may."""

    limit: int

    @property
    def stopped(self) -> bool:
        """An operator lets the tenant have no jobs at all."""
        return self.limit == 0

    @property
    def why(self) -> str:
        if self.stopped:
            return "an operator has stopped the tenant: its limit of active jobs is 0"
        return f"the tenant has {self.limit} active jobs and may not have more"


SubmitResult = Created | Busy | TooMany


def submit(
    world: World,
    tenant: str,
    request: Accepted,
    *,
    idempotency: str | None = None,
    created_by: str = "",
) -> SubmitResult:
    """Create the job, or say what is in the way.

    idempotency: hash of the client's key and request; the job that was made with it, ended or
    not, is the answer to this request. created_by: the verified caller. Raises Transient
    (nothing was created), Indeterminate (the job may have been created).
    """
    check_address(world, request)
    selection = select(world, tenant, request)
    tables = fix_tables(world, tenant, request) if request.tables else {}
    job = _new_job(world, tenant, request, selection, idempotency)
    job = job.model_copy(update={"created_by": created_by, "tables": tables})
    if job.payload is not None:
        ids = selection.ids or ()
        ordered = permuted(ids, job.id) if world.limits.permute_ids else ids
        name, blocks = job.payload, list(lines(ordered))
        retry_transient(world, lambda: world.payloads.put(name, blocks))
    return submit_prepared(world, job)


def submit_prepared(world: World, job: Job) -> SubmitResult:
    """Create a job whose id list is stored already, or drop the list. As ``submit``."""
    submission = _Submission(world, job)
    try:
        result = submission.run()
    except Indeterminate:
        raise  # the job may exist after all, and would need its ids
    except Transient:
        _drop_payload(world, job)
        raise
    if not isinstance(result, Created) or result.replayed:
        _drop_payload(world, job)
        return result
    world.telemetry.log(
        "job_created",
        job_id=job.id,
        tenant=job.tenant,
        subject=job.subject,
        operation=job.operation,
        lane=job.lane.value,
        total=job.total,
        held=result.job.held,
    )
    if not result.job.held:
        send_dispatch(world, result.job)
    if submission.written is not None:
        publish_now(world, submission.written)
    if result.job.held:
        admit_if_free(world, result.job)
    if submission.dead is not None:
        admit_held(world, job.tenant, submission.dead.lane)
    return result


def _new_job(
    world: World,
    tenant: str,
    request: Accepted,
    selection: Selection,
    idempotency: str | None,
) -> Job:
    now = world.runtime.now()
    id_ = f"{now:012x}{world.runtime.token()}"
    ids = selection.ids
    inline = ids is None or sum(len(i.encode()) + 3 for i in ids) <= INLINE_ID_BYTES
    return Job(
        id=id_,
        tenant=tenant,
        subject=request.subject,
        operation=request.operation,
        params=request.params,
        lane=lane_for(selection.known, world.limits),
        state=State.QUEUED,
        ids=ids if inline else None,
        payload=None if inline else f"ids/{id_}",
        upload=selection.upload,
        query=None if selection.query is None else selection.query.to_json(),
        traversal=selection.traversal,
        total=selection.known,
        duplicates=request.duplicates + selection.duplicates,
        tolerated_failure_percent=request.tolerated_failure_percent,
        stop_when_hopeless=request.stop_when_hopeless,
        labels=request.labels,
        notify=request.notify,
        fence=first_fence(world),
        created_at=now,
        idempotency=idempotency,
    )


def _drop_payload(world: World, job: Job) -> None:
    """Best effort: what is left is removed by the bucket's own rule for orphans."""
    if job.payload is None:
        return
    try:
        world.payloads.delete(job.payload)
    except Transient as error:
        world.telemetry.log("payload_left", job_id=job.id, why=str(error))


@dataclass
class _Submission:
    """Tries until the job is created, or another job or a limit is known to be in the way."""

    world: World
    job: Job
    held: bool = False
    written: Transaction | None = None
    """The transaction that created the job."""
    dead: Job | None = None
    """The dead holder that the job took the subject from, and whose slot may be free now."""

    def run(self) -> SubmitResult:
        result = self._create()
        for _ in range(MAX_TRIES):
            if not isinstance(result, Rejected):
                return result
            result = self._answer(result)
        raise Transient("the subject's holder changed during every try")

    def _queued(self) -> Job:
        return queued_job(self.world, self.job, held=self.held)

    def _create(self) -> SubmitResult | Rejected:
        queued = self._queued()
        return self._try(queued, create_job(self.world, queued))

    def _try(self, queued: Job, transaction: Transaction) -> Created | Rejected:
        try:
            execute(self.world, transaction)
        except Rejected as rejected:
            return rejected
        self.written = transaction
        return Created(queued)

    def _answer(self, rejected: Rejected) -> SubmitResult | Rejected:
        """The result that a refusal means, or that of the next try."""
        if reason := rejected.reasons.get(REQUEST):
            return self._made_before(str((reason.item or {}).get("job_id")))
        if reason := rejected.reasons.get(RETRIED):
            return self._retried_before(reason)
        if reason := rejected.reasons.get(LEASE):
            return self._subject_refused(reason)
        if reason := rejected.reasons.get(ACTIVE):
            return TooMany(active_limit(self.world, reason.item))
        if SLOTS in rejected.reasons:
            self.held = True
        elif JOB in rejected.reasons:
            raise Transient("the job's id is taken")
        return self._create()

    def _retried_before(self, reason: Reason) -> Created:
        job_id = (reason.item or {}).get("retried_by")
        if job_id is None:
            raise Transient("the job to be retried changed meanwhile")
        return self._made_before(str(job_id))

    def _made_before(self, job_id: str) -> Created:
        """The job of an earlier try of this request, whose answer may not have reached the
        client."""
        if job_id == self.job.id:
            return Created(self._queued())
        made = retry_transient(self.world, lambda: read_job(self.world, job_id))
        if made is None:
            raise Transient("the job of this request cannot be read")
        return Created(made, replayed=True)

    def _subject_refused(self, reason: Reason) -> SubmitResult | Rejected:
        lease = Lease(fence=0) if reason.item is None else lease_of(reason.item)
        if lease.job_id is None:
            # The subject is free, but its fence is past this process's clock.
            fence = first_fence(self.world, lease)
            self.job = self.job.model_copy(update={"fence": fence})
            return self._create()
        if lease.job_id == self.job.id:
            return Created(self._queued())  # its own write, met by a retry of the client library
        return self._holder(lease, lease.job_id)

    def _holder(self, lease: Lease, holder_id: str) -> SubmitResult | Rejected:
        try:
            holder = retry_transient(self.world, lambda: read_job(self.world, holder_id))
        except Undecodable:
            return Busy(holder_id, None)  # a delivery or recovery will end it
        if holder is None:
            return Busy(holder_id, None)
        if self.job.idempotency is not None and holder.idempotency == self.job.idempotency:
            return Created(holder, replayed=True)
        if holder.state.terminal:
            release_if_held(self.world, holder)
            return self._create()
        if self._may_take_over(lease, holder):
            return self._take_over(lease, holder)
        return Busy(holder.id, holder.state)

    def _may_take_over(self, lease: Lease, holder: Job) -> bool:
        """Whether the holder is dead for so long that its own redelivery has had its chance."""
        if lease.expires_at is None or lease.fence != holder.fence:
            return False
        if holder.state not in {State.RUNNING, State.CANCELLING}:
            return False
        dead_since = lease.expires_at + ms(self.world.timing.takeover_grace)
        return self.world.runtime.now() > dead_since

    def _take_over(self, lease: Lease, holder: Job) -> Created | Rejected:
        fence = first_fence(self.world, lease)
        self.job = self.job.model_copy(update={"fence": fence})
        queued = self._queued()
        # Set before the write: _subject_refused may find later that the write was this one's.
        self.dead = holder
        result = self._try(queued, take_over(self.world, queued, lease, holder))
        if isinstance(result, Created):
            self.world.telemetry.count(
                Metric.TAKEOVERS, lane=holder.lane, operation=holder.operation
            )
            self.world.telemetry.log(
                "taken_over", job_id=self.job.id, tenant=self.job.tenant, old_job_id=holder.id
            )
        return result
