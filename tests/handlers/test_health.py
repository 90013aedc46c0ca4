"""A worker that cannot work: what it says of itself, and when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handlers.health import BEAT, FRESH, GIVE_UP, LONGEST_PAUSE, Health, check


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sign(tmp_path: Path) -> Path:
    return tmp_path / "works"


@pytest.fixture
def health(clock: Clock, sign: Path) -> Health:
    return Health(clock, file=sign)


def test_a_worker_works_from_its_first_receive_on(health: Health, sign: Path) -> None:
    health.beat()
    assert check(sign) == 1
    health.received()
    health.beat()
    assert check(sign) == 0


def test_what_an_earlier_process_left_is_no_sign(clock: Clock, sign: Path) -> None:
    sign.touch()
    Health(clock, file=sign)
    assert check(sign) == 1


def test_an_old_sign_is_none(sign: Path) -> None:
    sign.touch()
    old = sign.stat().st_mtime - FRESH - 1
    os.utime(sign, (old, old))
    assert check(sign) == 1


def test_refused_receives_make_it_unhealthy_and_then_hopeless(
    health: Health, clock: Clock, sign: Path
) -> None:
    health.received()
    health.beat()
    clock.now += FRESH
    assert not health.works
    assert not health.hopeless
    sign.unlink()
    health.beat()
    assert check(sign) == 1
    clock.now += GIVE_UP - FRESH
    assert not health.hopeless
    clock.now += 1
    assert health.hopeless


def test_a_worker_that_never_received_ends_too(health: Health, clock: Clock) -> None:
    clock.now += GIVE_UP + 1
    assert health.hopeless


def test_a_long_job_is_work_and_its_end_begins_anew(health: Health, clock: Clock) -> None:
    health.received()
    with health.serving():
        clock.now += 8 * 3600
        assert health.works
        assert not health.hopeless
    assert not health.hopeless
    clock.now += GIVE_UP + 1
    assert health.hopeless


def test_pauses_grow_to_a_bound_that_keeps_a_worker_healthy(health: Health) -> None:
    pauses = [health.failed(1.0) for _ in range(20)]
    assert pauses[:5] == [1, 2, 4, 8, 16]
    assert pauses[-1] == LONGEST_PAUSE
    assert LONGEST_PAUSE + 2 * 20 < FRESH
    health.received()
    assert health.failed(1.0) == 1


def test_signs_are_seconds_apart(health: Health, clock: Clock, sign: Path) -> None:
    health.received()
    health.beat()
    sign.unlink()
    clock.now += BEAT - 1
    health.beat()
    assert not sign.exists()
    clock.now += 1
    health.beat()
    assert sign.exists()


def test_the_check_is_a_process_that_imports_nothing_slow(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "handlers.health"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert not [name for name in ("boto", "pydantic", "powertools") if name in run.stderr]
