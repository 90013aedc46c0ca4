"""Time, chance and concurrency. What passes is asserted of the virtual clock only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from handlers.aws.runtime import SystemRuntime
from handlers.testing.runtime import Deadlock, ManualRuntime

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Runtime


@pytest.fixture(params=["manual", "system"])
def runtime(request: pytest.FixtureRequest) -> Runtime:
    return ManualRuntime() if request.param == "manual" else SystemRuntime()


def test_time_is_in_milliseconds(runtime: Runtime) -> None:
    assert 1_600_000_000_000 < runtime.now() < 16_000_000_000_000
    for ms in (1, 0, -5):
        runtime.sleep(ms)


def test_tokens_and_chance(runtime: Runtime) -> None:
    tokens = {runtime.token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch(r"[0-9a-f]{20}", token) for token in tokens)
    drawn = [runtime.random() for _ in range(100)]
    assert all(0 <= value < 1 for value in drawn)
    assert len(set(drawn)) > 90


def test_an_event_wakes_who_waits(runtime: Runtime) -> None:
    start, stop = runtime.event(), runtime.event()
    seen: list[str] = []

    def work() -> None:
        assert start.wait(600_000)
        seen.append("work")
        stop.set()

    task = runtime.spawn("worker", work)
    assert not start.is_set()
    assert not stop.wait(0)
    start.set()
    assert stop.wait(600_000)
    task.join()
    task.join()
    assert seen == ["work"]
    assert stop.wait(0)


def test_a_wait_ends_without_its_event(runtime: Runtime) -> None:
    assert runtime.event().wait(1) is False


# --- the virtual clock ------------------------------------------------------------------------


def test_everyone_is_served_in_the_order_of_time() -> None:
    runtime = ManualRuntime(start=0)
    seen: list[tuple[int, str]] = []

    def every(ms: int, name: str) -> None:
        for _ in range(3):
            runtime.sleep(ms)
            seen.append((runtime.now(), name))

    tasks = [
        runtime.spawn("a", lambda: every(20, "a")),
        runtime.spawn("b", lambda: every(15, "b")),
    ]
    runtime.sleep(40)
    seen.append((runtime.now(), "main"))
    for task in tasks:
        task.join()
    assert seen == [
        (15, "b"),
        (20, "a"),
        (30, "b"),
        (40, "main"),
        (40, "a"),
        (45, "b"),
        (60, "a"),
    ]


def test_the_same_seed_is_the_same_chance() -> None:
    first, second, other = (ManualRuntime(seed) for seed in (7, 7, 8))
    drawn = [[runtime.token(), runtime.random()] for runtime in (first, second, other)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_waiting_for_nobody_is_a_deadlock() -> None:
    runtime = ManualRuntime()
    forever = runtime.event()
    caught: list[str] = []

    def wait_for_main() -> None:
        try:
            task.join()
        except Deadlock:
            caught.append("deadlock")
            forever.set()

    task = runtime.spawn("waits for itself", wait_for_main)
    task.join()
    assert caught == ["deadlock"]
