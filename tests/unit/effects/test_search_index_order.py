"""The index ends up as the database is: late replays, deletions, records made again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.effects.documents import document_id
from handlers.effects.search_index import SearchIndex
from handlers.jobs.effects.run import FRESH, run_effect
from handlers.jobs.execution.decisions import DeleteMessage
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.effect import Batch, Delivered, Effect, EffectRun
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Key, Put, Table
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.index_model import REMEMBERED, Engine
from tests.support.search import Reply, Request, Transport, sink_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.jobs.words.job import Job
    from handlers.jobs.words.operation import Record

TENANT: Final = "acme"
IDS: Final = ("a", "b", "c")


@dataclass(frozen=True)
class Case:
    """A world with a search index, and the index behind it."""

    world: MemoryWorld
    engine: Engine

    def record(self, id_: str) -> Record | None:
        return self.world.records.read(TENANT, [id_]).get(id_)

    def put(self, id_: str, n: int, version: int) -> None:
        """As the team makes a record: at a version of its own choosing."""
        item = {"n": n, "version": version}
        self.world.store.transact("team", [Put(Key(TENANT, id_, Table.RECORDS), item)])

    def change(self, id_: str, n: int) -> None:
        record = self.record(id_)
        assert record is not None
        write = self.world.records.change(record, {"n": n}, f"job-{n}")
        self.world.store.transact("change", [write])

    def remove(self, id_: str) -> None:
        record = self.record(id_)
        assert record is not None
        self.world.store.transact("remove", [self.world.records.remove(record, "job-r")])

    def effect(self, **versions: int) -> Effect:
        todo = {"search_index": None}
        return Effect("job", 0, TENANT, "op", Lane.SMALL.value, versions, todo)

    def run(self, effect: Effect) -> EffectRun:
        return run_effect(self.world, effect)

    def agrees(self) -> None:
        records = {id_: self.record(id_) for id_ in IDS}
        assert self.engine.documents() == {
            document_id(TENANT, id_): {
                "n": record.fields["n"],
                "tenant": TENANT,
                "id": id_,
                "version": record.version,
            }
            for id_, record in records.items()
            if record is not None
        }


def a_case() -> Case:
    world = memory_world()
    engine = Engine(world.runtime)
    sink = sink_over(Transport(engine), world.runtime)
    return Case(replace(world, sinks={"search_index": sink}), engine)


@pytest.mark.parametrize("late", [0, 2 * REMEMBERED])
def test_a_deletion_beats_every_older_write_and_its_replay(late: int) -> None:
    case = a_case()
    case.put("a", 1, 1)
    case.change("a", 2)
    changed = case.effect(a=2)
    case.run(changed)
    case.remove("a")
    for effect in (case.effect(a=3), changed):
        assert not case.run(effect).todo
        case.agrees()
        case.world.runtime.sleep(late)


@pytest.mark.parametrize("late", [0, 2 * REMEMBERED])
def test_a_replay_that_overtakes_the_deletion_deletes(late: int) -> None:
    """The row of the change knows version 2 only; the document may be at 3 already."""
    case = a_case()
    case.put("a", 1, 1)
    case.change("a", 2)
    case.change("a", 3)
    case.run(case.effect(a=3))
    case.remove("a")
    case.world.runtime.sleep(late)
    assert not case.run(case.effect(a=2)).todo
    case.agrees()
    assert case.engine.documents() == {}


@pytest.mark.parametrize("indexed_first", [True, False])
@pytest.mark.parametrize("late", [0, 2 * REMEMBERED])
def test_a_record_made_again_at_a_low_version_is_indexed(late: int, *, indexed_first: bool) -> None:
    case = a_case()
    case.put("a", 1, 41)
    case.change("a", 2)
    case.run(case.effect(a=42))
    case.remove("a")
    removed = case.effect(a=43)
    if indexed_first:
        case.run(removed)
        case.world.runtime.sleep(late)
    case.put("a", 7, 1)
    case.change("a", 8)
    assert not case.run(case.effect(a=2)).todo
    case.agrees()
    assert not case.run(removed).todo
    case.agrees()
    case.change("a", 9)
    case.run(case.effect(a=3))
    case.agrees()
    case.remove("a")
    case.run(case.effect(a=4))
    case.agrees()


def test_reindexing_an_id_without_a_record_deletes_its_document() -> None:
    case = a_case()
    case.put("a", 1, 5)
    case.run(case.effect(a=5))
    case.remove("a")
    assert not case.run(case.effect(a=0)).todo
    assert case.engine.documents() == {}


def test_same_version_again_repairs_what_was_changed_by_hand() -> None:
    case = a_case()
    case.put("a", 1, 5)
    case.run(case.effect(a=5))
    case.engine.held[document_id(TENANT, "a")].source = {"n": "by hand"}
    case.run(case.effect(a=5))
    case.agrees()


@dataclass
class Between:
    """A sink around another, where something happens just before or after it is told."""

    sink: SearchIndex
    before: list[Callable[[], None]] = field(default_factory=list)
    after: list[Callable[[], None]] = field(default_factory=list)

    def deliver(self, batch: Batch) -> Delivered:
        if self.before:
            self.before.pop(0)()
        delivered = self.sink.deliver(batch)
        if self.after:
            self.after.pop(0)()
        return delivered


def between(case: Case) -> tuple[Case, Between]:
    sink = case.world.sinks["search_index"]
    assert isinstance(sink, SearchIndex)
    around = Between(sink)
    return replace(case, world=replace(case.world, sinks={"search_index": around})), around


def test_a_run_that_is_overtaken_leaves_the_newer_document() -> None:
    plain = a_case()
    plain.put("a", 1, 1)
    case, around = between(plain)

    def overtaken() -> None:
        plain.change("a", 2)
        plain.run(plain.effect(a=2))

    around.before.append(overtaken)
    assert not case.run(case.effect(a=1)).todo
    case.agrees()


def test_a_run_that_is_overtaken_while_it_writes_over_the_past_does_not_win() -> None:
    """Between its second look at the database and its write, somebody newer writes."""
    plain = a_case()
    plain.put("a", 1, 9)
    plain.run(plain.effect(a=9))
    plain.put("a", 5, 1)
    case, around = between(plain)

    def overtaken() -> None:
        plain.change("a", 6)
        assert not plain.run(plain.effect(a=2)).todo

    around.before += [lambda: None, overtaken]
    ran = case.run(case.effect(a=1))
    assert ran.todo == {"search_index": frozenset({"a"})}
    case.agrees()
    assert not case.run(case.effect(a=1)).todo
    case.agrees()


def test_a_run_that_took_longer_than_deletions_are_remembered_runs_again() -> None:
    """It read the record, slept, and wrote back what was deleted and forgotten meanwhile."""
    plain = a_case()
    plain.put("a", 1, 1)
    case, around = between(plain)

    def slept() -> None:
        plain.remove("a")
        plain.run(plain.effect(a=2))
        plain.world.runtime.sleep(REMEMBERED)

    around.before.append(slept)
    effect = case.effect(a=1)
    ran = case.run(effect)
    assert case.engine.documents() != {}
    assert ran.todo == {"search_index": None}
    assert not case.run(replace(effect, todo=ran.todo)).todo
    case.agrees()
    assert FRESH < REMEMBERED


SHARD_ERROR: Final = {"error": {"type": "no_shard_available_action_exception", "reason": "away"}}


@dataclass
class PartlyAway:
    """An engine whose bulk reads answer 200, with this in place of some documents."""

    engine: Engine
    said: dict[str, object]
    away: set[str]

    def __call__(self, request: Request) -> Reply:
        reply = self.engine(request)
        if "/_mget" in request.path:
            docs: Any = reply.body
            for doc in docs["docs"]:
                if doc["_id"] in self.away:
                    id_ = doc["_id"]
                    doc.clear()
                    doc.update(_id=id_, **self.said)
        return reply


@pytest.mark.parametrize("said", [SHARD_ERROR, {**SHARD_ERROR, "found": False}, {}])
@pytest.mark.parametrize("exists", [True, False])
def test_c99_a_document_that_the_index_could_not_read_is_not_an_absent_one(
    said: dict[str, object], *, exists: bool
) -> None:
    """The index holds documents of records that were deleted and made again, so each write
    conflicts and the documents are read; one of the two reads fails."""
    plain = a_case()
    answers = PartlyAway(plain.engine, said, {document_id(TENANT, "a")})
    sink = sink_over(Transport(answers), plain.world.runtime)
    case = replace(plain, world=replace(plain.world, sinks={"search_index": sink}))
    for id_ in ("a", "b"):
        case.put(id_, 1, 41)
        case.run(case.effect(**{id_: 41}))
        case.put(id_, 2, 1)
        if not exists:
            case.remove(id_)
    effect = case.effect(a=2, b=2)

    ran = case.run(effect)
    assert ran.todo == {"search_index": frozenset({"a"})}
    assert ran.refused == []
    assert document_id(TENANT, "a") in case.engine.documents()

    answers.away.clear()
    assert not case.run(replace(effect, todo=ran.todo)).todo
    case.agrees()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "change", "remove", "replay", "wait"]),
        st.sampled_from(IDS),
        st.integers(0, 6),
    ),
    max_size=40,
)


@given(STEPS)
def test_whatever_happened_in_whatever_order_they_agree_in_the_end(
    steps: list[tuple[str, str, int]],
) -> None:
    """Every change through Fairlane has its effect, run late, early, twice; the team makes
    records again at any version."""
    case = a_case()
    rows: list[Effect] = []
    for number, (what, id_, k) in enumerate(steps, start=1):
        record = case.record(id_)
        if what == "put" and record is None:
            case.put(id_, number, k)
            rows.append(case.effect(**{id_: k}))
        elif what == "change" and record is not None:
            case.change(id_, number)
            rows.append(case.effect(**{id_: record.version + 1}))
        elif what == "remove" and record is not None:
            case.remove(id_)
            rows.append(case.effect(**{id_: record.version + 1}))
        elif what == "replay" and rows:
            case.run(rows[k % len(rows)])
        elif what == "wait":
            case.world.runtime.sleep(k * REMEMBERED // 4)
    for row in reversed(rows):
        assert not case.run(row).todo
    case.agrees()


def test_delete_and_reindex_as_jobs() -> None:
    case = a_case()
    for number, id_ in enumerate(IDS):
        case.put(id_, number, 3)
    ids = [*IDS, "extra"]
    reindexed = run_job(case.world, "reindex", ids)
    assert (reindexed.state, reindexed.succeeded) == (State.SUCCEEDED, 4)
    case.agrees()
    before = {id_: case.record(id_) for id_ in IDS}
    deleted = run_job(case.world, "delete_records", ids)
    assert (deleted.state, deleted.succeeded, deleted.skipped) == (State.SUCCEEDED, 3, 1)
    assert all(record is not None and record.version == 3 for record in before.values())
    assert case.engine.documents() == {}
    case.agrees()


def run_job(world: MemoryWorld, operation: str, ids: list[str]) -> Job:
    body = json.dumps({"operation": operation, "subject": "s", "ids": ids})
    created = submit(world, TENANT, accept(parse(body), world.operations, max_ids=1000))
    assert isinstance(created, Created)
    [delivery] = world.queues[Lane.SMALL].receive(1, 0)
    decision = on_message(world, delivery, Worker("w"))
    assert isinstance(decision, DeleteMessage)
    world.queues[Lane.SMALL].delete(delivery.receipt)
    Recovery(world).run()
    job = read_job(world, created.job.id)
    assert job is not None
    return job
