"""Every order of the calls of a few processes keeps the rules, and a missing guard is found."""

from __future__ import annotations

from typing import Final

import pytest

from handlers.jobs.words.job import Lane
from tests.simulation.timing import TO_EXPIRE

from .explore import Bounds, Found, Search
from .mutations import ALL
from .plays import PLAYS
from .schedule import Choice
from .stage import Play, Stage

ORDERS: Final = Bounds(faults=0, switches=2, states=250)
FAULTS: Final = Bounds(faults=1, switches=1, states=250)
TWO_FAULTS: Final = Bounds(faults=2, switches=0, states=250)
"""What ``make test`` looks at in each play. ``make explore`` looks at more."""

FOUND_IN: Final[dict[str, tuple[str, Bounds]]] = {
    "a job of another lane is taken": ("a promotion", Bounds(0, 1, 1500)),
    "a dead holder gets no grace": ("a takeover", Bounds(0, 1, 1500)),
    "a takeover does not end the old job": ("a takeover", Bounds(0, 1, 1500)),
    "a resuming attempt ignores a beat in between": ("two workers", Bounds(0, 2, 1500)),
    "an attempt is concluded before its heartbeat stops": ("two workers", Bounds(0, 2, 1500)),
    "an ended job is ended again": ("two workers", Bounds(0, 2, 1500)),
    "a dispatch row is dropped before its message is sent": ("a promotion", Bounds(1, 0, 1500)),
    "a subject is given away twice": ("two creates", Bounds(0, 1, 1500)),
    "no state check in the chunk commit": ("a cancel", Bounds(0, 1, 1500)),
    "no fence check in the chunk commit": ("two workers", Bounds(0, 2, 1500)),
    "no position check in the chunk commit": ("two workers", Bounds(0, 2, 3000)),
    "stopping the heartbeat does not wait": ("two workers", Bounds(0, 2, 1500)),
    "a living worker's job is begun again": ("two workers", Bounds(0, 1, 1500)),
    "no condition on the lease when an attempt begins": ("two workers", Bounds(0, 2, 1500)),
    "no condition on the job when an attempt begins": ("a pause", Bounds(0, 2, 1500)),
    "no state check when a client asks to stop": ("a pause", Bounds(0, 2, 1500)),
    "an attempt concludes whatever it finds": ("a cancel", Bounds(0, 2, 1500)),
    "a takeover ignores a holder that came back": ("a dead holder", Bounds(0, 2, 1500)),
    "dispatch numbers are used twice": ("a lost message", Bounds(0, 1, 1500)),
    "letting go does not raise the fence": ("a late beat", Bounds(1, 1, 1500)),
    "a lost reply counts as applied": ("two workers", Bounds(1, 1, 1500)),
    "a lost reply counts as not applied": ("a create", Bounds(1, 1, 3000)),
    "recovery takes a row that another run has": ("an unsent message", Bounds(1, 1, 1500)),
    "a keyed request is not remembered": ("a repeated request", Bounds(0, 1, 1500)),
    "slots are taken beyond the limit": ("a held job", Bounds(0, 1, 1500)),
    "a held job is admitted whatever became of it": ("a held job", Bounds(0, 1, 1500)),
    "a record is written whatever its version": ("another program", Bounds(0, 1, 1500)),
    "records the job carries already are changed again": ("an id twice", Bounds(0, 0, 1500)),
}
"""The play that shows a missing guard, and how far to look."""

GUARDED_TWICE: Final[dict[str, tuple[str, Bounds, tuple[str, ...]]]] = {
    "an attempt begins whatever either fence": (
        "a stop",
        Bounds(0, 2, 1500),
        ("an attempt begins whatever the lease's fence", "an attempt begins whatever the job's"),
    ),
    "a record is written whatever it is": (
        "an id twice",
        Bounds(0, 1, 1500),
        ("a record is written whatever its version", "a record is written whatever its mark"),
    ),
}
"""Two guards taken out at once, with the play that shows it; and each of the two alone."""


@pytest.mark.parametrize("bounds", [ORDERS, FAULTS, TWO_FAULTS], ids=["orders", "fault", "faults"])
@pytest.mark.parametrize("play", PLAYS)
def test_every_order_keeps_the_rules(play: str, bounds: Bounds) -> None:
    found = search(play, bounds)
    print(found)  # noqa: T201  what pytest -rP is asked for
    assert not found.wrong, "\n".join([*found.wrong, *found.trace])
    assert found.states > 100
    assert found.ends > 5


@pytest.mark.parametrize("name", FOUND_IN)
def test_a_missing_guard_is_found(name: str) -> None:
    play, bounds = FOUND_IN[name]
    with ALL[name]():
        found = search(play, bounds)
    assert found.wrong, f"{found} sees nothing"
    assert not any("TypeError" in each or "AttributeError" in each for each in found.wrong)
    print(f"{name}: {found}: {found.wrong[0]}")  # noqa: T201  what pytest -rP is asked for


@pytest.mark.parametrize("name", GUARDED_TWICE)
def test_a_guard_with_a_second_one_is_found_when_both_are_missing(name: str) -> None:
    play, bounds, singles = GUARDED_TWICE[name]
    for single in singles:
        with ALL[single]():
            found = search(play, bounds)
        assert found.complete, f"{single}: {found}: {found.wrong}"
    with ALL[name]():
        found = search(play, bounds)
    assert found.wrong, f"{found} sees nothing"
    print(f"{name}: {found}: {found.wrong[0]}")  # noqa: T201  what pytest -rP is asked for


def test_a_search_is_always_the_same() -> None:
    bounds = Bounds(faults=1, switches=1, states=200)
    assert search("two workers", bounds) == search("two workers", bounds)


def test_every_function_whose_time_is_over_ends() -> None:
    def people(stage: Stage) -> None:
        stage.job(Lane.SMALL)
        stage.worker("function", Lane.SMALL, function=True)
        stage.worker("other function", Lane.SMALL, function=True)
        stage.clock(TO_EXPIRE, TO_EXPIRE)

    stage = Stage(Play("two functions", people))
    try:
        for thread in ("fn function", "fn other function", "clock"):
            while (ready := stage.schedule.at_once()) is not None:
                stage.schedule.step_without_fault(ready)
            stage.schedule.step(Choice(thread))
        assert stage.processes["function"].dead
        assert stage.processes["other function"].dead
        assert [choice.thread for choice in stage.schedule.choices(0)] == ["clock"]
    finally:
        stage.close()


def search(play: str, bounds: Bounds) -> Found:
    return Search(PLAYS[play], bounds).run()
