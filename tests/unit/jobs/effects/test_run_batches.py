"""What a run of an effect sends, and what it makes of the sinks' answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.effects.run import FRESH, SLOW, effect_of_chunk, run_effect
from handlers.jobs.words.effect import Delivered, Effect
from handlers.jobs.words.errors import NotAsked, Transient
from handlers.jobs.words.operation import Fail, Plan, Skip, Touch
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT
from tests.support.sinks import OPERATION, Index, a_world, run_job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from handlers.jobs.words.effect import Batch
    from handlers.jobs.words.operation import Record
    from handlers.testing.world import MemoryWorld

IDS: Final = ("a", "b", "c")


@dataclass
class Sink:
    """A sink that gives each of its answers once, and keeps what it was sent."""

    answers: list[Delivered | Exception] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    sent: list[dict[str, int]] = field(default_factory=list)
    """Record ids and versions, by call."""
    instead_of: Mapping[str, object] = field(default_factory=dict)

    def deliver(self, batch: Batch) -> Delivered:
        self.before()
        self.sent.append({p.id: p.version for p in batch.records})
        self.instead_of = batch.instead_of
        answer = self.answers.pop(0) if self.answers else Delivered()
        if isinstance(answer, Exception):
            raise answer
        return answer


def world_with(**sinks: Sink) -> MemoryWorld:
    world = memory_world()
    world.records.load(TENANT, {id_: {"n": 1, "version": 2} for id_ in IDS})
    return replace(world, sinks=dict(sinks))


def effect(*sinks: str) -> Effect:
    versions = dict.fromkeys(IDS, 2)
    return Effect("j", 0, TENANT, "bump", "small", versions, dict.fromkeys(sinks))


def test_a_chunk_that_changed_nothing_has_no_effect() -> None:
    world = a_world(Index())
    job = run_job(world, 1)
    plans = [Plan("a", Skip("not wanted")), Plan("b", Fail("bad"))]
    assert effect_of_chunk(world, job, plans) is None
    touched = effect_of_chunk(world, job, [*plans, Plan("c", Touch(), version=3)])
    assert touched is not None
    assert touched.versions == {"c": 3}
    assert OPERATION.sinks == tuple(touched.todo)


def test_a_sink_is_sent_what_it_has_not_taken_yet() -> None:
    index = Sink()
    left = replace(effect("index"), todo={"index": frozenset({"a", "c"})})
    run_effect(world_with(index=index), left)
    assert index.sent == [{"a": 2, "c": 2}]


# --- a sink is not asked ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "put_off"),
    [
        (NotAsked("paused"), NotAsked("paused"), True),
        (NotAsked("paused"), Delivered(), False),
        (Delivered(), NotAsked("paused"), False),
        (NotAsked("paused"), Transient("down"), False),
        (Transient("down"), NotAsked("paused"), False),
        (ZeroDivisionError("a bug"), NotAsked("paused"), False),
        (Delivered(), Delivered(), False),
    ],
)
def test_a_run_is_put_off_when_no_sink_was_asked(
    first: Delivered | Exception, second: Delivered | Exception, *, put_off: bool
) -> None:
    ran = run_effect(world_with(a=Sink([first]), b=Sink([second])), effect("a", "b"))
    assert ran.put_off is put_off


def test_only_a_sink_that_was_asked_has_answered() -> None:
    ran = run_effect(
        world_with(a=Sink([NotAsked("paused")]), b=Sink([Transient("down")])), effect("a", "b")
    )
    assert ran.todo.keys() == {"a", "b"}
    assert ran.answers.keys() == {"b"}


def test_a_run_without_a_sink_is_done() -> None:
    ran = run_effect(world_with(), effect("gone"))
    assert (ran.todo, ran.put_off) == ({}, False)


# --- a sink takes its time --------------------------------------------------------------------


@pytest.mark.parametrize(("takes", "left"), [(FRESH, False), (FRESH + 1, True)])
def test_a_delivery_that_took_too_long_is_made_again(takes: int, *, left: bool) -> None:
    slow = Sink()
    world = world_with(a=slow)
    slow.before = lambda: world.runtime.sleep(takes)
    assert bool(run_effect(world, effect("a")).todo) is left


@pytest.mark.parametrize(("takes", "sent"), [(FRESH, 1), (FRESH + 1, 0)])
def test_records_that_were_read_too_long_ago_are_not_sent(takes: int, sent: int) -> None:
    slow, late = Sink(), Sink()
    world = world_with(slow=slow, late=late)
    slow.before = lambda: world.runtime.sleep(takes)
    ran = run_effect(world, effect("slow", "late"))
    assert len(late.sent) == sent
    assert ("late" in ran.todo) is (not sent)


# --- a sink knows a newer state ---------------------------------------------------------------


def test_what_a_sink_calls_newer_is_sent_again_if_it_has_not_changed_since() -> None:
    index = Sink([Delivered(newer={"a": "x", "b": "y"}), Delivered()])
    world = world_with(index=index)

    def change_b() -> None:
        record = world.records.read(TENANT, ["b"])["b"]
        world.store.transact("outside", [world.records.change(record, {"n": 5}, "other")])
        index.before = lambda: None

    index.before = change_b
    assert not run_effect(world, effect("index")).todo
    assert index.sent == [{"a": 2, "b": 2, "c": 2}, {"a": 2}]
    assert index.instead_of == {"a": "x", "b": "y"}


def test_nothing_is_sent_again_when_all_have_changed_or_none_is_newer() -> None:
    index = Sink()
    assert not run_effect(world_with(index=index), effect("index")).todo
    assert len(index.sent) == 1


def test_both_answers_count() -> None:
    first = Delivered(
        again=frozenset({"b"}), refused={"c": "bad"}, newer={"a": "x"}, retry_after_ms=10
    )
    for second, again, wait in (
        (Delivered(newer={"a": "x"}), {"a", "b"}, 10),
        (Delivered(again=frozenset({"a"}), retry_after_ms=20), {"a", "b"}, 20),
        (Delivered(refused={"a": "bad, too"}), {"b"}, 10),
    ):
        ran = run_effect(world_with(index=Sink([first, second])), effect("index"))
        assert set(ran.todo["index"] or ()) == again
        assert ran.retry_after_ms == wait
        refused = {id_ for _, id_, _ in ran.refused}
        assert refused == {"c", *second.refused}


def test_a_removed_record_that_is_not_called_newer_is_not_sent_again() -> None:
    index = Sink([Delivered(newer={"a": "x"})])
    world = world_with(index=index)
    record = world.records.read(TENANT, ["b"])["b"]
    world.store.transact("outside", [world.records.remove(record, "other")])
    assert not run_effect(world, effect("index")).todo
    assert [*index.sent[1]] == ["a"]


def test_a_batch_without_removals_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with(index=Sink())
    read: list[object] = []
    below = world.records.read

    def watched(tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        read.append(ids)
        return below(tenant, ids)

    monkeypatch.setattr(world.records, "read", watched)
    run_effect(world, effect("index"))
    assert len(read) == 1


@pytest.mark.parametrize(
    ("takes", "version", "sent"),
    [(SLOW + 1, 1, ["a"]), (SLOW, 1, []), (SLOW + 1, 2, []), (SLOW + 1, 3, [])],
)
def test_what_was_made_again_during_a_slow_delivery_is_sent_again(
    takes: int, version: int, sent: list[str]
) -> None:
    """A record that was removed and made again begins with a lower version."""
    index = Sink()
    world = world_with(index=index)

    def made_again() -> None:
        index.before = lambda: None
        world.runtime.sleep(takes)
        world.records.load(TENANT, {"a": {"n": 9, "version": version}})

    index.before = made_again
    assert not run_effect(world, effect("index")).todo
    assert [id_ for batch in index.sent[1:] for id_ in batch] == sent


def test_a_removed_record_that_was_made_again_is_sent_again_however_quick_it_was() -> None:
    index = Sink()
    world = world_with(index=index)
    record = world.records.read(TENANT, ["b"])["b"]
    world.store.transact("outside", [world.records.remove(record, "other")])

    def made_again() -> None:
        index.before = lambda: None
        world.records.load(TENANT, {"b": {"n": 9, "version": 7}})

    index.before = made_again
    assert not run_effect(world, effect("index")).todo
    assert [*index.sent[1]] == ["b"]
