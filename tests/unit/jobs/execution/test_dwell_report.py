"""What a process of the small lane tells the governors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from handlers.jobs.execution.dwell_report import EVERY, SPAN, DwellReport, quiet_of
from handlers.jobs.storage.small_dwell import read_dwells
from handlers.jobs.words.errors import Transient
from handlers.testing.job_store import MemoryStore
from handlers.testing.world import memory_world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handlers.jobs.words.writes import Write
    from handlers.testing.world import MemoryWorld


def report(world: MemoryWorld) -> DwellReport:
    made = DwellReport(world)
    made.started(900)  # of the process's own start
    return made


def leave(world: MemoryWorld, of: DwellReport, *dwells: int) -> list[tuple[int, int]]:
    world.runtime.sleep(EVERY)
    before = world.runtime.now() - 1
    for each in dwells:
        of.started(each)
    of.leave()
    return list(read_dwells(world, since=before))


def test_a_sample_is_the_median_of_what_started_since_the_last_one() -> None:
    world = memory_world()
    of = report(world)
    assert leave(world, of, 30, 500, 40) == [(40, 40)]
    assert leave(world, of, 60) == [(60, 40)]
    assert leave(world, of) == []


def test_the_first_start_of_a_process_is_its_own() -> None:
    world = memory_world()
    assert leave(world, DwellReport(world), 900) == []


def test_samples_are_seldom() -> None:
    world = memory_world()
    of = report(world)
    leave(world, of, 30)
    before = world.runtime.now()
    of.started(40)
    of.leave()
    assert read_dwells(world, since=before) == []
    assert leave(world, of, 42) == [(42, 30)]


def test_quiet_times_are_remembered_for_a_while() -> None:
    world = memory_world()
    of = report(world)
    leave(world, of, 30)
    world.runtime.sleep(SPAN)
    assert leave(world, of, 600) == [(600, 30)]
    world.runtime.sleep(SPAN)
    assert leave(world, of, 700) == [(700, 600)]


def test_the_quiet_dwell_is_no_lucky_moment() -> None:
    assert quiet_of([1, 30, 31, 32, 33, 34, 35, 36, 37, 38]) == 31


class Refusing(MemoryStore):
    def transact(self, action: str, writes: Sequence[Write]) -> None:
        raise Transient


def test_a_store_that_takes_no_sample_harms_no_job() -> None:
    world = memory_world()
    broken = replace(world, store=Refusing())
    of = report(broken)
    assert leave(broken, of, 30) == []
    assert "dwell_not_left" in world.telemetry.actions()
