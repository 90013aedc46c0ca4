"""How long after an outage work goes on: each bound of docs/protocol.md, read from its table and
held against an outage that is long enough for every back-off to reach its cap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from unittest.mock import patch

import pytest
from botocore.exceptions import EndpointConnectionError

from handlers.effects.secret import KEPT, Secret
from handlers.jobs.lifecycle import submit as submitting
from handlers.jobs.words.errors import Denied, Transient
from handlers.jobs.words.event import ADDRESS, EVENT_BUS
from handlers.jobs.words.job import Lane, Waiting
from handlers.jobs.words.limits import INLINE_ID_BYTES, Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import MINUTE, SECOND, ms
from handlers.testing.record_query import MemoryRecordQuery
from handlers.testing.record_store import MemoryRecordStore
from handlers.testing.runtime import ManualRuntime
from tests.support.jobs import TENANT, fill, now
from tests.support.outage_bounds import CHUNK_MS, PAGE, SLACK, Noting, Slow, bounds, seconds
from tests.support.outages import Outage, deployed, work
from tests.support.selections import GROUP, made
from tests.support.sinks import Index

if TYPE_CHECKING:
    from handlers.jobs.words.event import JobEvent
    from handlers.jobs.words.job import Job
    from handlers.testing.world import MemoryWorld

    Error: TypeAlias = type[Exception]

BEGINS: Final = 30 * SECOND
LASTS: Final = 25 * MINUTE
JOBS: Final = 3
LONG: Final = 60

SCENES: Final[Sequence[tuple[str, str, Lane]]] = (
    ("control table", "control table", Lane.SMALL),
    ("control table", "control table", Lane.BULK),
    ("record table", "records", Lane.SMALL),
    ("record table", "records", Lane.BULK),
    ("payload bucket", "payloads", Lane.SMALL),
    ("a lane's queue", "small queue", Lane.SMALL),
    ("a lane's queue", "bulk queue", Lane.BULK),
    ("a sink: search index, webhook or event bus", "search", Lane.SMALL),
    ("the search index of queries", "source", Lane.BULK),
    ("event bus or address of a job's events", "listeners", Lane.SMALL),
)
"""Row of the page, what fails, and the lane of the jobs."""
ELSEWHERE: Final = {
    "a KMS key": "test_a_key_that_cannot_be_used_is_an_outage_of_what_it_encrypts",
    "Secrets Manager or Parameter Store": (
        "test_a_secret_that_cannot_be_read_is_kept_for_a_while_and_read_at_once_afterwards"
    ),
    "the issuer's key set": "test_c110_the_last_good_keys_serve_for_a_bounded_time",
    "starts of tasks (ECS)": "test_a_worker_that_cannot_be_started_costs_the_message_nothing",
    "table of answers by `Idempotency-Key`": (
        "test_a_memory_that_is_down_is_503_and_nothing_is_done"
    ),
    "functions of the small lane": "test_no_job_waits_for_a_message_that_is_a_dead_letter",
    "Lambda as a whole": "test_no_job_waits_for_a_message_that_is_a_dead_letter",
    "tasks of the bulk worker (ECS)": (
        "test_without_the_end_of_its_hiding_a_killed_job_waits_longer"
    ),
    "schedule of recovery, or its function": (
        "test_recovery_does_at_its_first_run_what_was_left_to_it"
    ),
    "API Gateway, or the functions behind it": (
        "test_a_request_that_is_cut_after_its_commit_makes_a_job_that_runs_soon"
    ),
}
"""Rows whose bound is no formula of times of a job, and the test that shows it."""
REFUSES: Final = {"control table", "payload bucket"}
ENCRYPTED: Final = tuple(scene for scene in SCENES[:6] if scene[2] is Lane.SMALL)
DOWN: Final = (State.QUEUED, Waiting.DEPENDENCY_DOWN)
SHOWN: Final = {
    "control table": (State.QUEUED, Waiting.LANE_BUSY),  # as it was; nobody can read it
    "record table": DOWN,
    "payload bucket": DOWN,
    "a lane's queue": (State.QUEUED, Waiting.LANE_BUSY),
    "a sink: search index, webhook or event bus": (State.SETTLING, Waiting.EFFECTS_OPEN),
    "the search index of queries": DOWN,
    "event bus or address of a job's events": (State.SUCCEEDED, None),
}
"""State and reason of waiting of the jobs that no worker had begun before."""


@dataclass
class Heard:
    """``Listener`` that notes when it heard of a job's end."""

    runtime: Any
    ended: dict[str, int] = field(default_factory=dict)

    def deliver_event(self, event: JobEvent) -> None:
        if event.what.value == "ended":
            self.ended[event.job_id] = self.runtime.now()


class Scene:
    """A job at work when the outage begins, some that wait for a worker then, one made in it where
    that can be, and one made afterwards."""

    def __init__(self, outage: Outage, lane: Lane) -> None:
        """outage: but for its times."""
        dependency = outage.dependency
        plain = deployed(Index() if dependency == "search" else None)
        self.store = Noting(plain.store, plain.runtime)
        self.heard = Heard(plain.runtime)
        inner: Any = self.store
        self.ids = fill(plain, LONG)
        plain.records.load(
            TENANT, {i: {"price": 10, "n": 1, "group": "g", "version": 1} for i in self.ids}
        )
        small = 1 if lane is Lane.BULK else 100
        limits = Limits(
            chunk_size=5, small_max_items=small, look_calls=0, tenant_slots_bulk=2 * JOBS
        )
        listens = dependency == "listeners"
        self.whole: MemoryWorld = replace(
            plain,
            store=inner,
            records=Slow(MemoryRecordStore(inner), plain.runtime),  # type: ignore[arg-type]  # it passes the rest on
            query=MemoryRecordQuery(plain.store),
            limits=limits,
            listeners={EVENT_BUS: self.heard, ADDRESS: self.heard} if listens else {},
            address_problem=lambda _: None,
        )
        at = plain.runtime.now() + BEGINS
        self.outage = replace(outage, begins=at, ends=at + LASTS)
        self.seen = self.outage.seen_from(self.whole)
        self.jobs: list[Job] = []
        self.refused = False
        """Whether no job could be made while it lasted."""
        self.shown: dict[str, tuple[State, Waiting | None]] = {}
        """By subject, what a client sees shortly before the end."""
        self.more: dict[str, Any] = {}
        if dependency == "search":
            self.more = {"operation": "bump", "params": {}}
        if listens:
            self.more = {"notify": {"url": "https://example.org/jobs"}}

    def ask(self, world: MemoryWorld, subject: str, count: int) -> None:
        by_query = self.outage.dependency == "source"
        what: dict[str, Any] = {"query": GROUP} if by_query else {"ids": self.ids[:count]}
        self.jobs.append(made(world, subject=subject, **what, **self.more))

    def client(self) -> None:
        runtime, outage = self.whole.runtime, self.outage
        runtime.sleep(outage.begins - 1 - runtime.now())
        for number in range(JOBS):
            self.ask(self.whole, f"waiting{number}", 5)
        runtime.sleep(2)
        try:
            self.ask(self.seen, "during", 5)
        except Transient:  # 503 to a client
            self.refused = True
        runtime.sleep(outage.ends - 1 - runtime.now())
        self.shown = {job.subject: _shown(now(self.whole, job)) for job in self.jobs}
        runtime.sleep(1)
        self.ask(self.seen, "after", 5)

    def run(self) -> None:
        """Until every job has ended well, and no message is a dead letter."""
        self.ask(self.whole, "running", LONG)
        self.whole.runtime.spawn("client", self.client)
        work(
            self.seen,
            lambda: self.jobs[-1].subject == "after" and all(map(self.over, self.jobs)),
            functions=2 * JOBS,
            bulk=2 * JOBS,
        )
        assert {now(self.whole, job).state for job in self.jobs} == {State.SUCCEEDED}
        assert not any(queue.snapshot() for queue in self.whole.dead_letters.values())

    def over(self, job: Job) -> bool:
        listens = bool(self.whole.listeners)
        return now(self.whole, job).state.terminal and (not listens or job.id in self.heard.ended)

    def late(self, job: Job) -> int:
        """How long after the outage (ms) the job went on, or what it left to do was done."""
        ends = self.outage.ends
        if self.whole.listeners:
            return self.heard.ended[job.id] - ends
        if self.outage.dependency == "search":
            return (now(self.whole, job).finished_at or 0) - ends
        after = [at for at in self.store.commits[job.id] if at >= ends]
        return min(after, default=ends) - ends


def _shown(job: Job) -> tuple[State, Waiting | None]:
    return job.state, job.waits_for


@cache
def _lasting(dependency: str, lane: Lane, *, takes: int = 0, error: Error = Transient) -> Scene:
    most_inline = 1 if dependency == "payloads" else INLINE_ID_BYTES
    with patch.object(submitting, "INLINE_ID_BYTES", most_inline):
        scene = Scene(Outage(dependency, 0, 0, takes=takes, error=error), lane)
        scene.run()
    return scene


@pytest.mark.parametrize("takes", [0, CHUNK_MS])
@pytest.mark.parametrize(("row", "dependency", "lane"), SCENES)
def test_work_goes_on_within_the_bound_of_the_page(
    row: str, dependency: str, lane: Lane, takes: int
) -> None:
    """The calls fail at once, or after a while as those of a client that waits."""
    scene = _lasting(dependency, lane, takes=takes)
    late = {job.subject: scene.late(job) for job in scene.jobs}
    assert max(late.values()) <= ms(seconds(bounds()[row], lane)) + SLACK, late


@pytest.mark.parametrize(("row", "dependency", "lane"), SCENES)
def test_meanwhile_a_client_sees_what_the_page_says(row: str, dependency: str, lane: Lane) -> None:
    scene = _lasting(dependency, lane)
    assert scene.refused is (row in REFUSES)
    waiting = {what for subject, what in scene.shown.items() if subject != "running"}
    assert waiting == {SHOWN[row]}


@pytest.mark.parametrize(("row", "dependency", "lane"), ENCRYPTED)
def test_a_key_that_cannot_be_used_is_an_outage_of_what_it_encrypts(
    row: str, dependency: str, lane: Lane
) -> None:
    """What the errors of such a key mean is in tests/contract/test_aws_errors.py."""
    scene = _lasting(dependency, lane, error=Denied)
    late = {job.subject: scene.late(job) for job in scene.jobs}
    assert max(late.values()) <= ms(seconds(bounds()[row], lane)) + SLACK, late


@pytest.mark.parametrize("down", list(Lane))
def test_a_queue_that_is_down_holds_up_its_own_lane_alone(down: Lane) -> None:
    other = Lane.SMALL if down is Lane.BULK else Lane.BULK
    scene = _lasting(f"{down} queue", other)
    assert set(scene.shown.values()) == {(State.SUCCEEDED, None)}


def test_a_secret_that_cannot_be_read_is_kept_for_a_while_and_read_at_once_afterwards() -> None:
    runtime = ManualRuntime()
    answers: list[str | Exception] = ["one"]

    def read() -> str:
        if isinstance(answers[-1], Exception):
            raise answers[-1]
        return answers[-1]

    secret = Secret(read, runtime)
    assert secret() == b"one"
    answers.append(EndpointConnectionError(endpoint_url="https://secrets"))
    runtime.sleep(KEPT - 1)
    assert secret() == b"one"
    runtime.sleep(1)
    for _ in range(2):
        with pytest.raises(Transient):
            secret()
    answers.append("two")
    assert secret() == b"two"


def test_each_row_of_the_page_has_a_test() -> None:
    assert bounds().keys() == {row for row, _, _ in SCENES} | ELSEWHERE.keys()
    for name in ELSEWHERE.values():
        assert f"def {name}(" in "".join(
            path.read_text(encoding="utf-8") for path in PAGE.parents[1].glob("tests/**/test_*.py")
        ), name
