"""A rolling deployment of the bulk lane under steady load, in virtual time.

ECS as its documentation has it: the new tasks start first; then, at each look at the service, old
tasks that are not protected are stopped as long as enough tasks stay up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from handlers.aws.protection import Terms

MINUTE = 60
STARTS_IN = 90
"""Seconds until a new task runs."""
STOPS_IN = 120
"""Seconds a worker may take from SIGTERM to its end: ``stop_timeout``."""
CLOUDFORMATION_GIVES_UP = 180 * MINUTE


@dataclass
class Task:
    terms: Terms
    started: int
    """When its first job began; its slots are never idle from then on."""
    stops_at: float = field(default=math.inf)

    def protected(self, now: int) -> bool:
        return self.stops_at == math.inf and self.terms.protects(now, busy=now >= self.started)


def deployment(limit: float, ages: list[int]) -> int | None:
    """Seconds from the start of a deployment until no old task is left; None if it does not end
    before CloudFormation gives up. ages: how long each old task has been busy by then."""
    longest = max(ages)
    old = [Task(Terms(limit), started=longest - age) for age in ages]
    for now in range(0, longest, 10):
        for task in old:
            task.protected(now)
    for now in range(longest, longest + CLOUDFORMATION_GIVES_UP, 10):
        protected = [task.protected(now) for task in old]
        if now % MINUTE < 10 and now >= longest + STARTS_IN:
            # As many new tasks run as there are old ones, so all of these may go.
            for task, stays in zip(old, protected, strict=True):
                if not stays and task.stops_at == math.inf:
                    task.stops_at = now + STOPS_IN
        old = [task for task in old if now < task.stops_at]
        if not old:
            return now - longest
    return None


LIMIT = 15 * MINUTE


@pytest.mark.parametrize(
    "ages",
    [
        [0],
        [LIMIT - 1],
        [LIMIT],
        [LIMIT + 4 * MINUTE, 0, 7 * MINUTE],
        [minutes * MINUTE for minutes in range(0, 40, 4)],
    ],
)
def test_a_deployment_under_steady_load_ends_within_minutes(ages: list[int]) -> None:
    took = deployment(LIMIT, ages)
    assert took is not None
    assert took <= LIMIT + STOPS_IN + 2 * MINUTE


def test_protection_without_an_end_never_lets_a_deployment_end() -> None:
    assert deployment(math.inf, [0]) is None


def test_protection_ends_after_its_limit_and_comes_back_after_a_pause() -> None:
    terms = Terms(limit=100, pause=30)
    assert terms.protects(0, busy=True)
    assert terms.protects(99, busy=True)
    assert not terms.protects(100, busy=True)
    assert not terms.protects(129, busy=True)
    assert terms.protects(130, busy=True)
    assert not terms.protects(230, busy=True)


def test_a_moment_between_two_jobs_does_not_start_the_limit_anew() -> None:
    terms = Terms(limit=100, pause=30)
    for now in range(0, 100, 10):
        assert terms.protects(now, busy=True)
        assert not terms.protects(now + 1, busy=False)
    assert not terms.protects(100, busy=True)


def test_a_task_that_was_idle_for_a_whole_pause_has_its_limit_again() -> None:
    terms = Terms(limit=100, pause=30)
    assert terms.protects(0, busy=True)
    assert not terms.protects(90, busy=False)
    assert terms.protects(120, busy=True)
    assert terms.protects(219, busy=True)
    assert not terms.protects(220, busy=True)


def test_the_next_look_is_when_something_changes() -> None:
    terms = Terms(limit=100, pause=30)
    assert terms.left(0) == 100
    terms.protects(0, busy=True)
    assert terms.left(60) == 40
    assert not terms.protects(110, busy=True)
    assert terms.left(110) == 20
