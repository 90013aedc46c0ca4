"""The rules on a stack's real queue and tables, in this process, where a part can be taken out.

No deployed worker serves the bulk queue of this stack, and its recovery stands still: what happens
to a message or a job is what the scenario's own slots do.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from handlers.aws.lane_queue import SqsLaneQueue
from handlers.aws.protection import protection_from
from handlers.aws.record_store import DynamoRecordStore
from handlers.aws.runtime import SystemRuntime
from handlers.jobs.lifecycle.submit import Busy, Created, TooMany, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage import control_table
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.operation import Record
from handlers.jobs.words.ports import Store, World
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.timing import LaneTiming, Timing
from handlers.jobs.words.writes import Item, Key, Put, Table, Write
from handlers.operations import all_operations
from handlers.slots import Slot
from handlers.testing.telemetry import Line, MemoryTelemetry
from scripts.load.ledger import Ledger
from scripts.local.errors import LocalError
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack

from .framework import Bench
from .taps import COMMIT, Carry, TappedPayloads, TappedStore, WatchedQueue

BULK: Final = LaneTiming(
    heartbeat=0.8, lease_ttl=3, visibility=3, max_attempts=5, max_receive_count=6
)
"""Short, so that a scenario sees several of each; what the queue is deployed with, too."""
TIMING: Final = Timing(
    small=BULK.model_copy(update={"visibility": 6}),
    bulk=BULK,
    takeover_grace=7.5,
    clock_skew=0.5,
    function_timeout=1,
    stop_timeout=10,
    longest_chunk=5,
    small_reserve=0.5,
    dispatch_grace=2,
    lost_after=60,
    retry_base=0.5,
    retry_cap=15,
)
STALE: Final = BULK.lease_ttl + TIMING.takeover_grace
"""Seconds after its holder's last beat from which another job may take a subject."""
CHUNK: Final = 5
"""Records of one chunk."""
LIMITS: Final = Limits(small_max_items=1, chunk_size=CHUNK)
PROTOCOL: Final[Chosen] = {
    "timing": {"bulk": BULK.model_dump()},
    "bulk_lane": {"poll_seconds": 1},
}
FIELD: Final = "n"
ADD_ONE: Final[Mapping[str, object]] = {"field": FIELD, "add": 1}
POLL_S: Final = 1
LOOK_S: Final = 0.1
WITHIN: Final = 300
"""Seconds for one thing to happen. Far more than any takes: only what hangs runs into it."""
LOADED_AT_ONCE: Final = 50


class Took(LocalError):
    """Something did not happen in time."""


# --- seen -------------------------------------------------------------------------------------


def lines_of(log: MemoryTelemetry, job: Job, *actions: str) -> list[Line]:
    """What was logged of the job; only these actions if some are named."""
    return [
        line
        for line in tuple(log.lines)
        if line.fields.get("job_id") == job.id and (not actions or line.action in actions)
    ]


# --- the place --------------------------------------------------------------------------------


@dataclass
class Site:
    """One tenant's corner of the stack."""

    stack: LocalStack
    tenant: str
    log: MemoryTelemetry = field(default_factory=MemoryTelemetry)
    role: str | None = None
    """The ARN of the role that its calls are signed as; None: they may do everything."""

    def __post_init__(self) -> None:
        self.settings = Ledger(self.stack).settings
        everything = self.stack.clients
        self.clients = everything if self.role is None else everything.as_role(self.role)
        self.runtime = SystemRuntime()
        self.schema = RecordSchema(
            tenant=self.settings.records_tenant_key, id=self.settings.records_id_key
        )
        self.bulk = WatchedQueue(self.clients.sqs, self.settings.bulk_queue_url)
        self.world = self._world()

    def _world(self) -> World:
        clients, settings = self.clients, self.settings
        return World(
            store=self.store(lambda store, action, writes: store.transact(action, writes)),
            records=DynamoRecordStore(
                clients.dynamodb,
                table=settings.records_table,
                schema=self.schema,
                runtime=self.runtime,
            ),
            queues={
                Lane.SMALL: SqsLaneQueue(clients.sqs, settings.small_queue_url),
                Lane.BULK: self.bulk,
            },
            payloads=self.payloads(lambda: None),
            runtime=self.runtime,
            telemetry=self.log,
            operations=all_operations(),
            timing=TIMING,
            limits=LIMITS,
            due_shards=settings.due_shards,
        )

    def store(self, carry: Carry) -> TappedStore:
        return TappedStore(
            self.clients.dynamodb,
            carry,
            control_table=self.settings.control_table,
            records_table=self.settings.records_table,
            schema=self.schema,
        )

    def payloads(self, before: Callable[[], None]) -> TappedPayloads:
        return TappedPayloads(self.clients.s3, self.settings.payload_bucket, before)

    # --- records ------------------------------------------------------------------------------

    def load(self, count: int, *, name: str = "record") -> list[str]:
        """Put so many records whose number is 0; returns their ids in order."""
        ids = [f"{name}-{number:05}" for number in range(count)]
        self.put(ids)
        return ids

    def put(self, ids: Sequence[str], number: str = FIELD) -> None:
        """Put these records; the field ``number`` is 0."""
        for at in range(0, len(ids), LOADED_AT_ONCE):
            writes = [
                Put(Key(self.tenant, id_, Table.RECORDS), {number: 0, "version": 1})
                for id_ in ids[at : at + LOADED_AT_ONCE]
            ]
            self.world.store.transact("load", writes)

    def records(self, ids: Sequence[str]) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for at in range(0, len(ids), LOADED_AT_ONCE):
            found |= self.world.records.read(self.tenant, ids[at : at + LOADED_AT_ONCE])
        return found

    def changes(self, ids: Sequence[str]) -> list[int]:
        """How often each record was changed: every change adds one."""
        records = self.records(ids)
        return [int(str(records[id_].fields[FIELD])) for id_ in ids]

    # --- jobs ---------------------------------------------------------------------------------

    def ask(
        self,
        ids: Sequence[str],
        subject: str,
        world: World | None = None,
        *,
        operation: str = "adjust_number",
        params: Mapping[str, object] = ADD_ONE,
    ) -> Created | Busy:
        """Ask for a job; one that adds one to each of the records, if nothing else is said."""
        body = {
            "operation": operation,
            "subject": subject,
            "params": dict(params),
            "ids": list(ids),
        }
        here = world or self.world
        request = accept(parse(json.dumps(body)), here.operations, max_ids=len(ids))
        made = submit(here, self.tenant, request)
        if isinstance(made, TooMany):
            raise Took(f"the tenant has {made.limit} active jobs already")
        return made

    def submit(
        self,
        ids: Sequence[str],
        subject: str,
        world: World | None = None,
        *,
        operation: str = "adjust_number",
        params: Mapping[str, object] = ADD_ONE,
    ) -> Job:
        outcome = self.ask(ids, subject, world, operation=operation, params=params)
        if isinstance(outcome, Busy):
            raise Took(f"the subject {subject} is job {outcome.job_id}'s")
        return outcome.job

    def job(self, job: Job) -> Job:
        found = read_job(self.world, job.id)
        if found is None:
            raise Took(f"job {job.id} is gone")
        return found

    @property
    def died(self) -> bool:
        """A slot has died here."""
        return any(line.action == "worker_died" for line in tuple(self.log.lines))

    def lease(self, job: Job) -> Item:
        return self.world.store.get(control_table.lease_key(job.tenant, job.subject)) or {}

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Raises Took when it never comes to hold."""
        deadline = time.monotonic() + WITHIN
        while not holds():
            if time.monotonic() > deadline:
                raise Took(f"{what}: not within {WITHIN} s")
            time.sleep(LOOK_S)

    def ended(self, job: Job) -> Job:
        """The job when it has ended."""
        self.until(f"job {job.id} ends", lambda: self.job(job).state.terminal)
        return self.job(job)

    # --- messages -----------------------------------------------------------------------------

    def messages(self) -> int:
        """In the bulk queue, waiting or in flight."""
        return Ledger(self.stack).messages(Lane.BULK)

    def dead_letters(self) -> int:
        answer = self.stack.clients.sqs.get_queue_attributes(
            QueueUrl=self.stack.deployed.outputs["BulkDeadLettersUrl"],
            AttributeNames=["ApproximateNumberOfMessages"],
        )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    def emptied(self) -> None:
        """Take every message out, so that the next part begins with empty queues."""
        sqs, outputs = self.stack.clients.sqs, self.stack.deployed.outputs
        for url in (self.settings.bulk_queue_url, outputs["BulkDeadLettersUrl"]):
            sqs.purge_queue(QueueUrl=url)


@contextmanager
def site(bench: Bench, tenant: str) -> Iterator[Site]:
    """A tenant's corner of the shared stack, with empty queues before and after."""
    stack = bench.shared("protocol", settings=PROTOCOL)
    stand_still(stack)
    here = Site(stack, tenant)
    here.emptied()
    try:
        yield here
    finally:
        here.emptied()


def stand_still(stack: LocalStack) -> None:
    """Stop the schedule of recovery: what it would mend is what the scenarios look at."""
    events = stack.clients.events
    for rule in events.list_rules()["Rules"]:
        if "ScheduleExpression" in rule:
            events.disable_rule(Name=rule["Name"])


# --- workers ----------------------------------------------------------------------------------


class Died(BaseException):
    """The process of a worker ended, as by kill -9: nothing of it runs any more."""


def dying(here: Site, commits: int) -> World:
    """For a worker whose process ends when it wants to commit after so many commits."""
    done = 0

    def carry(store: Store, action: str, writes: Sequence[Write]) -> None:
        nonlocal done
        if action == COMMIT:
            if done == commits:
                raise Died
            done += 1
        store.transact(action, writes)

    return replace(here.world, store=here.store(carry))


@contextmanager
def slots(world: World, count: int = 1, *, name: str = "slot") -> Iterator[None]:
    """Slots of a bulk worker while the block runs, as threads; then they stop as on SIGTERM."""
    stopping = threading.Event()
    protection = protection_from({}, world.telemetry)

    def serve(number: int) -> None:
        slot = Slot(world, f"{name}-{number}", stopping, protection, POLL_S)
        try:
            slot.run()
        except Died:
            world.telemetry.log("worker_died", worker=slot.name)

    threads = [threading.Thread(target=serve, args=(n,), daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
