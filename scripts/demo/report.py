"""What the demo measured, and what it claims of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from scripts.load.drive import Duplicate, Run
from scripts.load.ledger import RecordRow
from scripts.load.measures import Arrival, Busy, Dwell, Overtaking, arrivals, busy, fifo_dwells
from scripts.load.truth import Key, Ran, Truth, compare
from scripts.verify import lane_isolation as judge
from scripts.verify.framework import Expectation, Information


class Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class IdleReport(Part):
    """Small jobs before any bulk work."""

    jobs: int
    items: int
    dwell_ms: Dwell


class LaneReport(Part):
    slots: int
    jobs: int
    items: int
    """Records the jobs changed, each counted once per job."""
    dwell_ms: Dwell
    """Of the jobs that began."""


class SharedQueue(Part):
    """Computed, not run: the same jobs, each arriving when it did and taking the time it took, in
    one first-come-first-served queue before as many slots as both lanes have."""

    computed: bool = True
    slots: int
    dwell_ms_of_small: Dwell


class DuplicateReport(Part):
    status: int
    code: str
    holder: str
    """The id of the job that has the subject."""
    named: str | None
    """The id in the answer."""
    seconds: float
    left_behind: int
    """Jobs, messages and dispatches there were more of afterwards."""


class Kept(Part):
    """What ``--keep`` leaves up."""

    name: str
    api: str
    tenant: str
    token: str
    curl: tuple[str, ...]
    stop: str


class Report(Part):
    idle: IdleReport
    lanes: Mapping[Lane, LaneReport]
    bulk_slots: Busy
    order: Overtaking
    """How the small jobs got past the bulk jobs in line."""
    shared_queue: SharedQueue
    exactly_once: Truth
    duplicate: DuplicateReport
    claims: tuple[Expectation, ...]
    information: tuple[Information, ...]
    """Absolute times: the machine's as much as Fairlane's, so that none decides the exit status."""
    seconds: float
    ok: bool
    kept: Kept | None = None


def report(  # noqa: PLR0913  all that was seen of one run, named
    seen: Run,
    duplicate: Duplicate,
    cancelled: Collection[str],
    before: Mapping[Key, RecordRow],
    after: Mapping[Key, RecordRow],
    *,
    bulk_slots: int,
    small_slots: int,
    slo: int,
    seconds: float,
) -> Report:
    """Judge a run between two states of the record table.

    cancelled: ids of the bulk jobs that were asked to end. slo: ms of dwell, 95th percentile.
    """
    start, end = seen.window
    truth = compare(before, seen.all, after)
    shared = shared_queue(seen, bulk_slots + small_slots)
    claims = (
        *judge.in_their_lanes(seen),
        *judge.bulk_was_busy(seen, bulk_slots),
        *judge.overtook(seen, bulk_slots),
        judge.waits_less(seen),
        *_finished(seen, cancelled),
        *_exactly_once(truth),
        *judge.refused(duplicate),
    )
    idle = _lane(seen.idle, small_slots)
    return Report(
        idle=IdleReport(jobs=idle.jobs, items=idle.items, dwell_ms=idle.dwell_ms),
        lanes={
            Lane.SMALL: _lane(seen.small, small_slots),
            Lane.BULK: _lane(seen.bulk, bulk_slots),
        },
        bulk_slots=busy((ran.row for ran in seen.bulk), slots=bulk_slots, start=start, end=end),
        order=judge.order(seen, bulk_slots),
        shared_queue=shared,
        exactly_once=truth,
        duplicate=_duplicate(duplicate),
        claims=claims,
        information=(
            *judge.times(seen, duplicate, slots=bulk_slots, slo=slo),
            gain(judge.dwell_of_small(seen), shared),
        ),
        seconds=round(seconds, 1),
        ok=all(claim.ok for claim in claims),
    )


def _lane(ran: Sequence[Ran], slots: int) -> LaneReport:
    begun = [each.row.dwell_ms for each in ran if each.row.dwell_ms is not None]
    return LaneReport(
        slots=slots,
        jobs=len(ran),
        items=sum(each.row.succeeded for each in ran),
        dwell_ms=Dwell.of(begun),
    )


def shared_queue(seen: Run, slots: int) -> SharedQueue:
    """Computed of a run whose jobs have ended."""
    dwells = fifo_dwells(_arrivals(seen), slots)
    small = (dwells[ran.row.id] for ran in seen.small if ran.row.id in dwells)
    return SharedQueue(slots=slots, dwell_ms_of_small=Dwell.of(small))


def _arrivals(seen: Run) -> list[Arrival]:
    """The jobs with the time each took. Bulk jobs that were cancelled before they began would have
    taken as long for a record as the others."""
    rows = [ran.row for ran in seen.bulk]
    took = sum(job.duration for job in arrivals(rows))
    per_record = took / max(1, sum(row.position for row in rows))
    cancelled = [
        Arrival(ran.row.id, ran.row.created_at, round(per_record * len(ran.planned.ids)))
        for ran in seen.bulk
        if ran.row.started_at is None
    ]
    return [*arrivals(ran.row for ran in seen.all), *cancelled]


def gain(small: Dwell, shared: SharedQueue) -> Information:
    """Computed, so only told: how long the line is that one queue would have had depends on how
    fast the machine works through it. small: as it was."""
    theirs = shared.dwell_ms_of_small.p95
    return Information(
        what="p95 dwell in one shared queue (computed), against the small lane's",
        beside="",
        saw=f"{judge.ratio(theirs, small.p95)} x: {theirs} ms, {small.p95} ms",
    )


def _duplicate(made: Duplicate) -> DuplicateReport:
    return DuplicateReport(
        status=made.status,
        code=made.code,
        holder=made.holder,
        named=made.named,
        seconds=made.seconds,
        left_behind=made.new_jobs + made.small_messages + made.dispatches,
    )


def _finished(seen: Run, cancelled: Collection[str]) -> Iterator[Expectation]:
    """Every job that was not cancelled; one that had been begun at that moment may have ended in
    the middle."""
    ended = [
        ran.row for ran in seen.all if ran.row.id in cancelled and ran.row.state is State.CANCELLED
    ]
    left = len(seen.all) - len(ended)
    begun = sum(row.started_at is not None for row in ended)
    why = f"{left} (cancelled: {len(ended)}, begun by then: {begun})" if ended else left
    succeeded = sum(ran.row.state is State.SUCCEEDED for ran in seen.all)
    yield Expectation.of("jobs that succeeded", expected=why, saw=succeeded, ok=succeeded == left)
    others = sum(ran.row.failed + ran.row.skipped for ran in seen.all)
    yield Expectation.equal("records they failed or skipped", expected=0, saw=others)


def _exactly_once(truth: Truth) -> Iterator[Expectation]:
    listed = f"{truth.changes} changes of {truth.changed} records"
    yield Expectation.of(
        "records changed once by each job that lists them, found by scanning the table",
        expected="no record differs",
        saw=f"{truth.wrong} of {truth.records} differ, after {listed}"
        + "".join(f"; {each}" for each in truth.examples),
        ok=truth.wrong == 0 and truth.changed > 0,
    )
