"""Checks of the control table and the queues: what is late, parked, stuck or held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from handlers.jobs.storage import control_table
from handlers.jobs.storage.outbox import rows_of_kinds, since
from handlers.jobs.storage.transaction import retry_transient
from handlers.jobs.transitions.quotas import lane_use
from handlers.jobs.words.job import Lane
from handlers.jobs.words.ports import LaneQueue, World
from handlers.jobs.words.timing import MINUTE, SECOND
from handlers.jobs.words.writes import Found, Index

from .finding import Finding, note, ok, wrong

LATE: Final = 5 * MINUTE
"""How long (ms) after its time a row may be untouched: recovery looks at them every minute."""
KINDS: Final = {
    control_table.DISPATCH: ("dispatches", "messages of jobs that are not in their queue"),
    control_table.LEASE: ("stuck jobs", "jobs that show no life and that recovery has not seen to"),
    control_table.ADMIT: ("held jobs", "tenants whose held jobs nobody has looked at"),
    control_table.CLEANUP: ("clean-up", "ended jobs that are not cleaned up"),
    control_table.EFFECT: ("effects", "changes that sinks have not heard of"),
    control_table.EVENT: ("events", "events that no listener has taken"),
}
"""Kinds of due rows: the name of the check, and what a row stands for."""
PARKED: Final = {
    control_table.PARKED_DISPATCH: ("dispatches", "messages of jobs", "fairlane dispatches list"),
    control_table.PARKED: ("effects", "changes", "fairlane effects list"),
    control_table.PARKED_EVENT: ("events", "events of jobs", "fairlane events list"),
}


def check_jobs(world: World, dead_letters: Mapping[Lane, LaneQueue]) -> Iterator[Finding]:
    """Raises Transient when the table or a queue cannot be asked."""
    for lane, queue in dead_letters.items():
        yield _dead_letters(lane, queue)
    for kind in KINDS:
        yield _late(world, kind)
    for kind in PARKED:
        yield from _parked(world, kind)
    yield from _held(world)
    for lane in Lane:
        yield from _waiting(world, lane)


def _dead_letters(lane: Lane, queue: LaneQueue) -> Finding:
    depth = queue.depth()
    count = depth.waiting + depth.in_flight
    if not count:
        return ok("dead letters", f"the {lane} lane has none")
    page = f"{lane.capitalize()}DeadLetters in docs/runbook.md"
    return wrong("dead letters", f"the {lane} lane has {count}", page)


def _late(world: World, kind: str) -> Finding:
    check, what = KINDS[kind]
    now = world.runtime.now()
    late = [found for found in rows_of_kinds(world, kind) if since(found) < now - LATE]
    if not late:
        return ok(check, "none is late")
    oldest = (now - min(since(found) for found in late)) // MINUTE
    return wrong(
        check,
        f"{len(late)} {what}, the oldest for {oldest} minutes: recovery does not run, or does not "
        "keep up",
        "RecoveryStopped and RecoveryItems in docs/runbook.md",
    )


def _parked(world: World, kind: str) -> Iterator[Finding]:
    check, what, command = PARKED[kind]
    errors = Counter(
        str(found.item.get("last_error", "")) or "no reason" for found in rows_of_kinds(world, kind)
    )
    if errors:
        [(why, _)] = errors.most_common(1)
        yield wrong(check, f"{errors.total()} {what} were given up, mostly for: {why}", command)


def _held(world: World) -> Iterator[Finding]:
    """Tenants whose jobs are held: stopped ones, and those that have a free slot all the same."""
    for found in rows_of_kinds(world, control_table.ADMIT):
        tenant, lane = str(found.item["tenant"]), Lane(str(found.item["lane"]))
        use = lane_use(world, tenant, lane)
        if not use.held:
            continue
        of = f"{use.held} jobs of the tenant {tenant!r} are held in the {lane} lane"
        command = f"fairlane tenants set --tenant {tenant} --{lane} N"
        if use.limit == 0:
            yield note("held jobs", f"{of}: an operator has set its limit to 0", command)
        elif use.count < use.limit and _overdue(world, found):
            yield wrong(
                "held jobs",
                f"{of} although it uses {use.count} of {use.limit} slots",
                "RecoveryItems in docs/runbook.md",
            )


def _overdue(world: World, found: Found) -> bool:
    """Recovery has had two runs since the row was due."""
    return since(found) < world.runtime.now() - 2 * MINUTE


def _waiting(world: World, lane: Lane) -> Iterator[Finding]:
    check = f"the {lane} lane's queue"
    depth = world.queues[lane].depth()
    said = f"{depth.waiting} messages wait, {depth.in_flight} are being worked on"
    oldest = _longest(world, lane)
    minutes = 0 if oldest is None else (world.runtime.now() - oldest) // MINUTE
    bound = world.timing.lost_after * SECOND
    if oldest is not None and world.runtime.now() - oldest > bound:
        yield wrong(
            check,
            f"{said}; the job that waits longest could have started {minutes} minutes ago",
            "BulkAge and BulkWithoutWorkers in docs/runbook.md",
        )
    else:
        yield ok(check, said)


def _longest(world: World, lane: Lane) -> int | None:
    """Since when (epoch ms) the lane's first job waits for a slot; only bulk jobs are listed."""
    page = retry_transient(
        world,
        lambda: world.store.query(Index.HELD, control_table.waiting_partition(lane), limit=1),
    )
    places = [str(found.item[Index.HELD.sk]) for found in page.found]
    return int(places[0].partition("#")[0]) if places else None
