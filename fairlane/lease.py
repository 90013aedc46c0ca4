"""The subject's lease, for workers and functions of a team's own::

    lease = take(dynamodb, control_table=table, tenant="acme", subject="products", holder="sync")
    with lease:
        for part in parts:
            lease.heartbeat()
            dynamodb.transact_write_items(TransactItems=[lease.fence_check(), *writes_of(part)])

Jobs and such a worker share one lock: while one of them has a subject, the other is refused it. The
lease alone does not keep a slow worker from writing after it has lost the subject; the fence does,
because each transaction checks it. So every write of the worker belongs into a transaction that has
``fence_check()``, at most 99 of them, in the deployment's own region and account.

The worker needs GetItem, UpdateItem and ConditionCheckItem on the control table
(``FairlaneJobs.grant_lease``). A worker that dies keeps the subject until its lease is over and the
grace after it; then another worker takes it, or recovery frees it for jobs within a minute.
"""

from __future__ import annotations

import time
from secrets import token_hex
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from handlers.aws.job_store import DynamoStore
from handlers.jobs.storage import control_table as rows
from handlers.jobs.words.errors import OutcomeUnknown, Refused, Transient
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.writes import Equals, Missing, Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from handlers.jobs.words.writes import Item, Key, Value, When

PREFIX: Final = "worker:"
"""Of holders that are no jobs."""
TRIES: Final = 5

__all__ = ["LeaseLost", "SubjectBusy", "SubjectLease", "Transient", "take"]


class SubjectBusy(Exception):
    """A job, or another worker, has the subject."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"the subject is held by {holder}")
        self.holder = holder
        """The job's id; ``worker:`` and its name for a worker."""


class LeaseLost(Exception):
    """The subject is no longer this worker's: it has to stop, and can write nothing more."""


def take(
    client: DynamoDBClient,
    *,
    control_table: str,
    tenant: str,
    subject: str,
    holder: str,
    ttl_seconds: int = 60,
    grace_seconds: int = 60,
    clock: Callable[[], float] = time.time,
) -> SubjectLease:
    """Take the lease of a tenant's subject.

    holder: the worker's name, for whoever is refused. ttl_seconds: how long the lease holds
    without a heartbeat; grace_seconds: how much longer until others may take it, for clocks that
    differ. Raises SubjectBusy at once, it never waits; Transient when DynamoDB gives no answer.
    """
    if ttl_seconds < 1 or grace_seconds < 0:
        raise ValueError("ttl_seconds has to be at least 1, and grace_seconds not negative")
    # No record is written through it.
    store = DynamoStore(
        client, control_table=control_table, records_table=control_table, schema=RecordSchema()
    )
    lease = SubjectLease(
        store,
        table=control_table,
        key=rows.lease_key(tenant, subject),
        holder=f"{PREFIX}{holder}:{token_hex(8)}",
        milliseconds=(ttl_seconds * 1000, grace_seconds * 1000),
        clock=clock,
    )
    lease._take()  # noqa: SLF001  of this module
    return lease


class SubjectLease:
    """A subject that is this worker's until it is released, or runs out."""

    def __init__(
        self,
        store: DynamoStore,
        *,
        table: str,
        key: Key,
        holder: str,
        milliseconds: tuple[int, int],
        clock: Callable[[], float],
    ) -> None:
        """``take`` makes it."""
        self.holder: Final = holder
        self.fence = 0
        self._store = store
        self._table = table
        self._key = key
        self._ttl, self._grace = milliseconds
        self._clock = clock

    def heartbeat(self) -> None:
        """Keep the lease for another ``ttl_seconds``; call it a few times in that time. Raises
        LeaseLost, Transient."""
        beat = Update(self._key, set=self._until(), when=self._mine())
        try:
            self._write("beat", beat)
        except Refused as refused:
            raise LeaseLost(f"{self.holder} has lost its subject") from refused

    def fence_check(self) -> TransactWriteItemTypeDef:
        """The part of ``transact_write_items`` that lets it through only while the subject is this
        worker's. When it is refused, ``heartbeat`` says whether the lease was why."""
        return {
            "ConditionCheck": {
                "TableName": self._table,
                "Key": {"pk": {"S": self._key.pk}, "sk": {"S": self._key.sk}},
                "ConditionExpression": "#holder = :holder AND #fence = :fence",
                "ExpressionAttributeNames": {"#holder": "job_id", "#fence": "fence"},
                "ExpressionAttributeValues": {
                    ":holder": {"S": self.holder},
                    ":fence": {"N": str(self.fence)},
                },
            }
        }

    def release(self) -> None:
        """Free the subject. Nothing happens when it is this worker's no longer. Raises
        Transient."""
        free = Update(self._key, remove=("job_id", "expires_at", *rows.NOT_DUE), when=self._mine())
        try:
            self._write("release", free)
        except Refused:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _take(self) -> None:
        for _ in range(TRIES):
            found = self._store.get(self._key)
            if found is not None and found.get("job_id") == self.holder:
                return  # an earlier try, whose reply was lost
            self._check_free(found)
            now, seen = self._now(), 0 if found is None else int(str(found["fence"]))
            self.fence = max(now, seen + 1)
            taken = {"job_id": self.holder, "fence": self.fence, **self._until()}
            try:
                self._store.transact("take", [Update(self._key, set=taken, when=_as_read(found))])
            except (Refused, OutcomeUnknown):
                continue
            return
        raise Transient("the subject's lease changed during every try")

    def _check_free(self, found: Item | None) -> None:
        """Raises SubjectBusy. Whether a job is dead, the protocol decides; a worker is when its
        lease and the grace are over."""
        if found is None or found.get("job_id") is None:
            return
        holder, over = str(found["job_id"]), found.get("expires_at")
        worker = holder.startswith(PREFIX) and isinstance(over, int)
        if not worker or self._now() <= int(str(over)) + self._grace:
            raise SubjectBusy(holder)

    def _write(self, action: str, write: Update) -> None:
        """Raises Refused when it does not hold, Transient."""
        for _ in range(TRIES):
            try:
                self._store.transact(action, [write])
            except OutcomeUnknown:
                continue
            except Refused as refused:
                if not refused.only_contention:
                    raise
            else:
                return
        raise Transient(f"{action}: no clear answer after {TRIES} tries")

    def _until(self) -> dict[str, Value]:
        """The lease's end, and when recovery frees the subject of a worker that is dead."""
        end = self._now() + self._ttl
        # One shard: every deployment looks at the first.
        due = rows.due(rows.LEASE, self.holder, end + self._grace, 1)
        return {"expires_at": end, **due}

    def _mine(self) -> When:
        """Another holder, or this one after it was taken for dead, is not this one."""
        return (Equals("job_id", self.holder), Equals("fence", self.fence))

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _as_read(found: Item | None) -> When:
    """Nobody took, renewed or freed it since the read."""
    if found is None:
        return (Missing("fence"),)
    names: tuple[str, ...] = ("job_id", "fence", "expires_at")
    return tuple(
        Missing(name) if (value := found.get(name)) is None else Equals(name, value)
        for name in names
    )
