"""A pair that other programs disturbed is measured again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count

import psutil
import pytest

from scripts.bench.figures import Figure, at_least
from scripts.bench.quiet import Pairs, own_seconds, quiet_pairs


def measured(rounds: int, disturbed: list[bool]) -> tuple[Pairs, list[str]]:
    order: list[str] = []
    numbers = count()
    says: Iterator[bool] = iter(disturbed)

    def side(name: str) -> Callable[[], float]:
        def run() -> float:
            order.append(name)
            return float(next(numbers))

        return run

    def run_pair(pair: Callable[[], None]) -> bool:
        pair()
        return next(says)

    return quiet_pairs(side("a"), side("b"), rounds, disturbed=run_pair), order


def test_on_a_quiet_machine_each_pair_is_measured_once_in_turns() -> None:
    pairs, order = measured(3, [False] * 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert (pairs.ones, pairs.others, pairs.quiet) == ([0, 3, 4], [1, 2, 5], True)


def test_a_disturbed_pair_is_replaced() -> None:
    pairs, _ = measured(2, [True, False, False])
    assert (pairs.ones, pairs.others, pairs.quiet) == ([3, 4], [2, 5], True)


@pytest.mark.parametrize(("quiet", "enough"), [(1, False), (2, True)])
def test_a_machine_that_stays_busy_is_said_to_be(quiet: int, enough: bool) -> None:  # noqa: FBT001
    pairs, _ = measured(4, [False] * quiet + [True] * (8 - quiet))
    assert pairs.quiet is enough
    assert len(pairs.ones) == (quiet if enough else 8)


def test_what_a_busy_machine_measured_is_not_judged() -> None:
    def figure(*, quiet: bool) -> Figure:
        return Figure.of("x", [1.0, 1.0], [2.0, 2.0], bound=at_least(0.95), quiet=quiet)

    assert figure(quiet=True).judged(short=False)
    assert not figure(quiet=False).judged(short=False)


def test_what_this_process_started_is_no_other_program() -> None:
    """The local AWS of a bench is a process of its own."""
    code = "sum(range(3_000_000)); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        worked = sum(psutil.Process(child.pid).cpu_times()[:2])
        alone = sum(psutil.Process().cpu_times()[:2])
        assert own_seconds() >= worked + alone > alone
        child.communicate("\n")
