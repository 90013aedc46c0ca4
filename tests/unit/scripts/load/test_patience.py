"""Patience lasts as long as something moves, and not longer."""

from __future__ import annotations

from scripts.load.patience import Patience


def test_it_lasts_while_something_moves_however_long_that_takes() -> None:
    clock = [0.0]
    patience = Patience(10, now=lambda: clock[0])
    for step in range(100):
        clock[0] += 9
        assert patience.lasts(step)


def test_it_ends_when_nothing_has_moved_for_its_time() -> None:
    clock = [0.0]
    patience = Patience(10, now=lambda: clock[0])
    assert patience.lasts("here")
    clock[0] = 9
    assert patience.lasts("here")
    clock[0] = 10
    assert not patience.lasts("here")
    assert patience.lasts("further")
