"""What must be true when everything has come to rest."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from handlers.jobs.words.event import ADDRESS, EVENT_BUS, JobEvent
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Table

from .crowd import compares_shares
from .items import OVER, int_of, number_of, short
from .outside import about

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from handlers.jobs.words.writes import Item

    from .scenario import Scenario
    from .watched_store import WatchedStore


STANDS_STILL: Final = 45_000
"""The longest time (ms) that a worker stands still after the faults have ended."""
ENDS: Final = frozenset({"payload_gone", "taken_over", "attempts_exhausted", "too_many_failed"})
"""Why any job may fail."""
RECOVERY_EVERY: Final = 9000
"""The longest time (ms) between two runs of recovery."""


def unrest(store: WatchedStore) -> list[str]:
    """What still has to happen."""
    found = []
    for key, item in store.all_items().items():
        if key.table is Table.RECORDS:
            continue
        if key.sk == "JOB":
            if item["state"] not in OVER and item["state"] != "PAUSED":
                found.append(f"job {short(str(item['id']))} is {item['state']}")
            elif item.get("cleanup"):
                found.append(f"job {short(str(item['id']))} has clean-up left")
        elif key.sk.startswith("DISPATCH"):
            found.append(f"dispatch row of job {short(key.pk)}")
        elif "due_pk" in item:
            found.append(f"{key.pk} {key.sk} is due")
    return found


def judge(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Broken rules, with what broke them."""
    for job in scenario.watch.jobs.values():
        yield from _job(scenario, job)
    yield from _requests(scenario)
    yield from _counters(scenario)
    yield from _leases(scenario)
    yield from _outside(scenario)
    yield from _heard(scenario)
    yield from _waits(scenario)
    yield from _dead_letters(scenario)


def _waits(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """How long jobs wait for a worker once the faults have ended. A message that is lost is missed
    after ``lost_after``, at recovery's next run; one that was received too often is hidden for two
    visibility times; and a worker may stand still for a while yet. In a lane that is full for
    minutes they wait for each other: there the books of turns judge."""
    if compares_shares(scenario):
        return
    timing = scenario.timing
    bound = ms(timing.lost_after + 2 * timing.bulk.visibility) + STANDS_STILL + RECOVERY_EVERY
    for waited, until, id_ in scenario.watch.waits.ended:
        since_calm = min(waited, until - scenario.calm_at)
        if since_calm > bound:
            yield "waits", f"job {short(id_)} waited {since_calm} ms for a worker after the faults"


def _dead_letters(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """No message is given up without a cause: a receive of it that was cut off, or deliveries
    that nobody asked for. An outage is none."""
    for lane, dead in scenario.dead.items():
        for id_, receives in dead.receives.items():
            receipts = {f"{id_}#{number + 1}" for number in range(receives)}
            if id_ not in scenario.watch.early and receipts <= scenario.watch.decided:
                yield "dead letters", f"{lane} message {id_} is given up, each receive was decided"


def _heard(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Every listener heard of the beginning and the end of every job, and of nothing else."""
    heard = {(e.job_id, e.listener, e.what.value, _state_in(e)) for e in scenario.heard}
    for job in scenario.watch.jobs.values():
        id_, state = str(job["id"]), str(job["state"])
        wanted = {ADDRESS} if job.get("notify") else set()
        for listener in wanted | ({EVENT_BUS} if scenario.has_bus else set()):
            name = f"{listener} of job {short(id_)}"
            if (id_, listener, "created", "QUEUED") not in heard:
                yield "4", f"{name} was not told that it was created"
            if "started_at" in job and (id_, listener, "started", "RUNNING") not in heard:
                yield "4", f"{name} was not told that it started"
            if id_ in scenario.watch.damaged:
                continue  # perhaps nobody could say any more what has ended
            if state in OVER and (id_, listener, "ended", state) not in heard:
                yield "4", f"{name} was not told that it ended {state}"
    for event in scenario.heard:
        about = scenario.watch.jobs.get(event.job_id)
        if about is None:
            yield "8", f"{event.listener} was told of job {short(event.job_id)}, which there is not"
        elif event.listener == ADDRESS and event.to != about.get("notify"):
            yield "4", f"{event.to} was told of job {short(event.job_id)}"


def _state_in(event: JobEvent) -> str:
    return str(json.loads(event.detail)["job"]["state"])


def _job(scenario: Scenario, job: Item) -> Iterator[tuple[str, str]]:
    id_, state = str(job["id"]), str(job["state"])
    name = f"job {short(id_)}"
    asked = scenario.asked[id_]
    if state == "PAUSED" and "pause" not in asked:
        yield "3", f"{name} is paused and nobody asked for it"
    damaged = scenario.watch.damaged.get(id_)
    if state == "SUCCEEDED" and scenario.requests[number_of(job)].bad_file and "upload" in job:
        yield "1", f"{name} succeeded over a file with a bad line"
    if state == "CANCELLED" and "cancel" not in asked and not damaged:
        yield "3", f"{name} is cancelled and nobody asked for it"
    reason = job.get("end_reason")
    if state == "FAILED":
        lost = job.get("payload") in scenario.payload_lost
        if reason == "payload_gone" and not lost:
            yield "3", f"{name} failed because its payload is gone, and nothing removed it"
        if reason == "undecodable" and damaged:
            return
        if reason not in {*ENDS, *_of_the_file(scenario, job)}:
            yield "3", f"{name} failed: {reason}"
    if (
        state in {"SUCCEEDED", "CANCELLED"}
        and not damaged
        and job.get("payload") in scenario.payloads.names()
    ):
        yield "5", f"{name} is {state} and its stored id list is still there"
    yield from _records(scenario, job, name)


def _of_the_file(scenario: Scenario, job: Item) -> Iterator[str]:
    """Why a job may fail whose ids are in a file."""
    if scenario.requests[number_of(job)].bad_file:
        yield "bad_upload"
    upload = job.get("upload")
    if isinstance(upload, Mapping) and upload["name"] in scenario.selecting.lost:
        yield "upload_gone"


def _asked_for(scenario: Scenario, job: Item) -> set[str]:
    """The records that the job was made for."""
    request, history = scenario.requests[number_of(job)], scenario.watch.history
    if (old := job.get("retry_of")) is None and request.query is not None:
        assert history is not None
        return history.must_be_found(
            request.query, str(job["tenant"]), str(job["id"]), request.asked_at
        )
    if old is None:
        return set(request.ids)
    return {
        entry["id"]  # type: ignore[call-overload,index,misc]
        for key, item in scenario.store.all_items().items()
        if key.pk == f"JOB#{old}" and key.sk.startswith("FAILED#")
        for entry in item.get("failed", ())  # type: ignore[union-attr]
    }


def _records(scenario: Scenario, job: Item, name: str) -> Iterator[tuple[str, str]]:
    """Rules 1 and 6, from what happened to the records."""
    id_, tenant = str(job["id"]), str(job["tenant"])
    rows = [
        item
        for key, item in scenario.store.all_items().items()
        if key.pk == f"JOB#{id_}" and key.sk.startswith(("FAILED#", "SKIPPED#"))
    ]
    listed = {
        kind: [entry["id"] for row in rows for entry in row.get(kind, ())]  # type: ignore[union-attr,call-overload,index]
        for kind in ("failed", "skipped")
    }
    for kind, ids in listed.items():
        if len(ids) != int_of(job, kind):
            yield "6", f"{name} counts {job[kind]} {kind} and lists {len(ids)}"
    changed = [
        record
        for (t, record), jobs in scenario.watch.changes.items()
        if t == tenant and id_ in jobs
    ]
    if job["state"] == "SUCCEEDED":
        if job["position"] != job["total"]:
            yield "6", f"{name} succeeded at {job['position']} of {job['total']}"
        wanted = _asked_for(scenario, job) - set(listed["failed"]) - set(listed["skipped"])
        for record in sorted(wanted - set(changed)):
            yield "1", f"{name} succeeded without changing {record}"
        yield from _left_out(scenario, job, name, rows)
    for record in sorted(set(changed) & set(listed["failed"])):
        yield "1", f"{name} lists {record} as failed and changed it"


def _left_out(
    scenario: Scenario, job: Item, name: str, rows: Sequence[Item]
) -> Iterator[tuple[str, str]]:
    """A record that matched the query all the time is not skipped because it does not."""
    if scenario.requests[number_of(job)].query is None or job.get("retry_of"):
        return
    wanted = _asked_for(scenario, job)
    for row in rows:
        for entry in row.get("skipped", ()):  # type: ignore[union-attr]
            if entry["id"] in wanted and "no longer matches" in entry["reason"]:  # type: ignore[call-overload,index,operator]
                yield "1", f"{name} skips {entry['id']}, which matches"  # type: ignore[call-overload,index]


def _requests(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Rule 8. The tries of one keyed request make one job between them."""
    made: dict[int, list[str]] = defaultdict(list)
    for job in scenario.watch.jobs.values():
        if not job.get("retry_of"):
            made[number_of(job)].append(str(job["id"]))
    for request in scenario.requests:
        ids = made[request.number]
        tries = [request, *request.repeats]
        answers = {each.answer for each in tries}
        if len(ids) > 1:
            yield "8", f"request {request.number} made {len(ids)} jobs"
        if "created" in answers and not ids:
            yield "8", f"request {request.number} was accepted and has no job"
        if answers <= {"busy", "error"} and ids:
            yield "8", f"request {request.number} was answered {answers} and has a job"
        for each in tries:
            if each.job_id is not None and each.job_id not in ids:
                yield "8", f"request {request.number} was told of another job, {each.job_id}"


def _leases(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Rule 3: only a paused job holds a subject for ever."""
    for key, item in scenario.store.all_items().items():
        if key.sk == "LEASE" and (id_ := item.get("job_id")) is not None:
            holder = scenario.watch.jobs[str(id_)]
            if holder["state"] != "PAUSED":
                yield "3", f"{key.pk} is held by job {short(str(id_))}, {holder['state']}"


def _counters(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for key, item in scenario.store.all_items().items():
        if key.sk.startswith("SLOTS") and (item.get("in_flight") or item.get("held")):
            yield "3", f"{key.pk} {key.sk} still counts {item}"


def _outside(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Rule 4."""
    if scenario.outside is None:
        return
    records = {
        (key.pk, key.sk): about(item)
        for key, item in scenario.store.all_items().items()
        if key.table is Table.RECORDS
    }
    documents = {k: (d.version, d.value) for k, d in scenario.outside.documents.items()}
    for key in sorted(records.keys() | documents.keys()):
        if records.get(key) != documents.get(key):
            yield "4", f"{key} is {records.get(key)} in the table, {documents.get(key)} outside"
