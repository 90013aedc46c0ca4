"""C106: what a tenant does is counted over all processes, and has a bound it cannot pass."""

from __future__ import annotations

import pytest

from handlers.jobs.storage.windows import REQUEST_WINDOW, SAMPLE, RequestRate, count_in_window
from handlers.jobs.words.errors import Transient
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT

WINDOW = 60_000


def take(world: MemoryWorld, tenant: str = TENANT, limit: int = 3) -> int | None:
    return count_in_window(world, "UPLOADS", tenant, limit=limit, window=WINDOW)


def at_the_start_of_a_window(world: MemoryWorld, window: int = WINDOW) -> None:
    world.runtime.sleep(window - world.runtime.now() % window)


def test_c106_a_window_takes_so_many_and_says_when_the_next_begins() -> None:
    world = memory_world()
    at_the_start_of_a_window(world)
    assert [take(world) for _ in range(3)] == [None] * 3
    world.runtime.sleep(20_000)
    assert take(world) == 40_000
    assert take(world, "other") is None
    world.runtime.sleep(39_999)
    assert take(world) == 1
    world.runtime.sleep(1)
    assert take(world) is None


def test_c106_a_sample_that_has_no_room_is_not_counted() -> None:
    world = memory_world()
    at_the_start_of_a_window(world)

    def count(by: int) -> bool:
        wait = count_in_window(world, "R", TENANT, limit=10, window=WINDOW, by=by)
        return wait is None

    assert [count(8), count(8), count(2), count(1)] == [True, False, True, False]


def test_c106_rows_of_windows_go_by_themselves() -> None:
    world = memory_world()
    take(world)
    [item] = world.store.snapshot().values()
    assert int(str(item["expires_at_seconds"])) > (world.runtime.now() + WINDOW) // 1000


def test_c106_a_low_limit_of_requests_is_exact_over_all_processes() -> None:
    world = memory_world()
    at_the_start_of_a_window(world, REQUEST_WINDOW)
    processes = [RequestRate(world, 2) for _ in range(3)]
    answered = [processes[n % 3].wait_ms(TENANT) is None for n in range(30)]
    assert answered == [True] * 20 + [False] * 10
    assert processes[0].wait_ms("other") is None
    world.runtime.sleep(REQUEST_WINDOW)
    assert [process.wait_ms(TENANT) for process in processes] == [None] * 3


def test_c106_a_high_limit_costs_a_write_for_every_eighth_request() -> None:
    world = memory_world(seed=7)
    at_the_start_of_a_window(world, REQUEST_WINDOW)
    rate = RequestRate(world, 200)
    answered = sum(rate.wait_ms(TENANT) is None for _ in range(6_000))
    assert 1_500 < answered < 2_500
    [item] = world.store.snapshot().values()
    assert item["count"] == 2_000 - 2_000 % SAMPLE


def test_c106_a_full_window_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()
    at_the_start_of_a_window(world, REQUEST_WINDOW)
    rate = RequestRate(world, 1)
    assert any(rate.wait_ms(TENANT) is not None for _ in range(20))
    before = world.runtime.now()

    def asked(action: str, writes: object) -> None:
        raise AssertionError(action)

    monkeypatch.setattr(world.store, "transact", asked)
    assert rate.wait_ms(TENANT) == REQUEST_WINDOW - before % REQUEST_WINDOW


def test_c106_a_table_that_is_away_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    world = memory_world()

    def away(action: str, writes: object) -> None:
        raise Transient("away")

    monkeypatch.setattr(world.store, "transact", away)
    assert RequestRate(world, 1).wait_ms(TENANT) is None


@pytest.mark.parametrize(("chance", "counted"), [(1 / SAMPLE - 0.001, True), (1 / SAMPLE, False)])
def test_c106_one_request_in_eight_is_counted(
    chance: float,
    counted: bool,  # noqa: FBT001  a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = memory_world()
    monkeypatch.setattr(world.runtime, "random", lambda: chance)
    assert RequestRate(world, 10_000).wait_ms(TENANT) is None
    assert bool(world.store.snapshot()) is counted
