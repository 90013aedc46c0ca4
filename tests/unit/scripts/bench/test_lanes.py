"""The isolation bench: every bulk slot is at work until the last small job has begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from scripts.bench import celery_lanes, lanes
from scripts.bench.lanes import Load, Phase
from scripts.local.errors import LocalError
from scripts.local.stack import LocalStack


@dataclass
class Fast:
    """Ends its bulk jobs before the small ones have come, unless there are enough of them."""

    enough: int
    filled: list[int] = field(default_factory=list)
    smalls: list[int] = field(default_factory=list)
    drained: int = 0
    chunks: int = 0

    def fill(self, jobs: int) -> None:
        self.filled.append(jobs)

    def small(self, number: int) -> None:
        self.smalls.append(number)

    def waits(self) -> Sequence[float]:
        return [float(number) for number in range(1, 21)]

    def full(self) -> bool:
        return self.filled[-1] >= self.enough

    def done(self) -> int:
        """Each look finds another chunk of them, if there are bulk jobs."""
        self.chunks += bool(self.filled)
        return 96 * self.chunks

    def drain(self) -> None:
        self.drained += 1


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes with each look at the clock: with three small jobs, four in a phase."""
    clock = SimpleNamespace(monotonic=partial(next, map(float, count())), sleep=lambda _: None)
    monkeypatch.setattr(lanes, "time", clock)


def test_a_faster_machine_gets_more_bulk_work_until_it_lasts() -> None:
    system = Fast(enough=20)
    load = Load(small=3, bulk=8)
    assert load.loaded(system) == Phase(p50=10, p95=19, bulk=96 / 4)
    assert system.filled == [8, 16, 32]
    assert system.drained == 3  # also after what was no measurement
    load.loaded(system)
    assert system.filled[3:] == [32]


def test_a_phase_without_bulk_work_all_the_time_is_no_measurement() -> None:
    system = Fast(enough=10**6)
    with pytest.raises(LocalError, match="bulk jobs end before 3 small ones"):
        Load(small=3).loaded(system)


def test_an_idle_phase_has_no_bulk_jobs_and_small_ones_in_their_order() -> None:
    system = Fast(enough=1)
    assert Load(small=3).idle(system) == Phase(p50=10, p95=19, bulk=0)
    assert (system.filled, system.smalls, system.drained) == ([], [0, 1, 2], 1)


def test_without_celery_it_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(celery_lanes, "find_spec", lambda _: None)
    with (
        pytest.raises(LocalError, match="make bench"),
        celery_lanes.celery_lanes(LocalStack("none"), "records", 1),
    ):
        pass
