"""A bulk worker one of whose slots hangs (C75)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from handlers import slots
from handlers.jobs.execution.decisions import DeleteMessage, KeepMessage
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message
from handlers.jobs.words.pace import PaceSettings
from handlers.testing.telemetry import MemoryTelemetry
from handlers.testing.world import memory_world

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from handlers.jobs.execution.decisions import Decision
    from handlers.jobs.execution.stopping import Worker
    from handlers.jobs.words.ports import Delivery, World


@dataclass
class Process:
    """What the process does with its messages: the first one hangs, and the others run until they
    are asked to stop."""

    for_ever: threading.Event = field(default_factory=threading.Event)
    """Never set while the process lives."""
    working: threading.Event = field(default_factory=threading.Event)
    hangs: bool = True
    threads: list[threading.Thread] = field(default_factory=list)
    given_back: list[str] = field(default_factory=list)
    said: MemoryTelemetry = field(default_factory=MemoryTelemetry)

    def on_message(self, _: World, delivery: Delivery, worker: Worker) -> Decision:
        self.threads.append(threading.current_thread())
        if '"first"' not in delivery.body:
            self.working.set()
            while not worker.stopping():
                self.for_ever.wait(0.01)
            self.given_back.append(delivery.body)
            return KeepMessage("shutdown", 0)
        self.working.wait()
        if not self.hangs:
            return DeleteMessage("done")
        worker.hung()
        self.for_ever.wait()
        return KeepMessage("ownership lost", None)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """A worker of two slots with a message for each."""
    made = Process()
    memory = replace(memory_world(), telemetry=made.said)
    memory.queues[Lane.BULK].send([Message(id_, Lane.BULK, "g") for id_ in ("first", "second")])
    lock = threading.Lock()
    receive = memory.queues[Lane.BULK].receive

    def one_at_a_time(limit: int, _: int) -> Sequence[Delivery]:
        with lock:
            return receive(limit, 0)

    monkeypatch.setattr(memory.queues[Lane.BULK], "receive", one_at_a_time)
    timing = memory.timing.model_copy(update={"stop_timeout": 0.3})
    settings = SimpleNamespace(
        bulk_slots=2,
        bulk_poll_seconds=1,
        bulk_protection_minutes=15,
        pace=PaceSettings(on=False),
        timing=timing,
    )
    monkeypatch.setattr(slots, "work_settings", lambda: settings)
    monkeypatch.setattr(slots, "world", lambda *_, **__: memory)
    monkeypatch.setattr(slots, "on_message", made.on_message)
    yield made
    made.for_ever.set()


@pytest.mark.parametrize("asked", [False, True])
def test_c75_a_process_ends_although_one_of_its_slots_never_does(
    process: Process, monkeypatch: pytest.MonkeyPatch, *, asked: bool
) -> None:
    """The other slot gives its job back first; also when the process was asked to end before."""
    signals: list[int] = []

    def after_a_signal(world: World, delivery: Delivery, worker: Worker) -> Decision:
        if '"first"' in delivery.body:
            process.working.wait()
            signals.append(15)
        return process.on_message(world, delivery, worker)

    if asked:
        monkeypatch.setattr(slots, "on_message", after_a_signal)
    assert slots.serve(signals) == 1
    assert len(process.given_back) == 1
    assert "worker_hung" in process.said.actions()
    [left] = [thread for thread in process.threads if thread.is_alive()]
    assert left.daemon, "a thread that hangs would keep the process"


def test_c75_a_process_whose_slots_return_waits_for_all_of_them(process: Process) -> None:
    process.hangs = False
    signals: list[int] = []

    def signal() -> None:
        process.working.wait()
        signals.append(15)

    threading.Thread(target=signal).start()
    assert slots.serve(signals) == 0
    assert len(process.given_back) == 1
    assert not any(thread.is_alive() for thread in process.threads)
    assert "worker_hung" not in process.said.actions()
