"""How long the first job waits whose function has to start, beside the jobs that come next.

What a start costs on Lambda is not what a process costs here. The share is shown all the same:
it is what ``small_lane.provisioned_concurrency`` takes away from the first job after an idle hour.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Final

from scripts.local.stack import LocalStack

from .fairlane_lanes import FairlaneLanes
from .figures import Figure, Limit, at_most
from .framework import Bench, Measured
from .jobs import load
from .lanes import ITEMS, SMALL_TENANT
from .place import Place

ROUNDS: Final = 5
NEXT: Final = 4
"""Jobs after the first one, each when the one before it has ended."""
AS_THE_NEXT: Final = 2.0
"""The aim: a start leaves the second job nothing to wait for."""
COUNTED: Final = '"ColdStart"'
"""In the line of the metric."""


@dataclass
class Rounds:
    """Milliseconds from the admission of a job to its start, one of each for every round."""

    first: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    """The median of those after the first."""
    counted: list[float] = field(default_factory=list)
    """Cold starts that the metric counted."""


def run(place: Place) -> Measured:
    count = place.rounds(ROUNDS, 2)
    load(place.deployment().world, ITEMS, SMALL_TENANT)
    stack = place.serving()
    lanes = FairlaneLanes(stack, 0)
    rounds = Rounds()
    _dwell(lanes)
    with place.steps.step("First jobs of a function that has to start", count) as advance:
        for _ in range(count):
            _cool(stack)
            before = _counted(stack)
            first, *rest = (_dwell(lanes) for _ in range(1 + NEXT))
            rounds.first.append(first)
            rounds.second.append(rest[0])
            rounds.warm.append(median(rest))
            rounds.counted.append(_counted(stack) - before)
            advance(1)
    return Measured(figures=_figures(rounds), facts=_facts(rounds))


BENCH: Final = Bench(
    "cold-start", "The wait of a small job whose function has to start first, and of the next", run
)


def _figures(rounds: Rounds) -> tuple[Figure, ...]:
    return (
        Figure.of("first job ÷ warm ones: cold start", rounds.first, rounds.warm),
        Figure.of("second job ÷ warm ones", rounds.second, rounds.warm, aim=at_most(AS_THE_NEXT)),
        Figure.of(
            "ColdStart counted ÷ starts that a job waited for",
            rounds.counted,
            bound=Limit(at_least=1, at_most=1),
            counted=True,
        ),
    )


def _facts(rounds: Rounds) -> dict[str, float]:
    return {
        "ms to the start: first job, cold": median(rounds.first),
        "ms to the start: second job": median(rounds.second),
        "ms to the start: warm": median(rounds.warm),
    }


def _dwell(lanes: FairlaneLanes) -> float:
    lanes.small(0)
    [waited] = lanes.waits()
    lanes.drain()
    return max(1.0, waited)


def _cool(stack: LocalStack) -> None:
    """End the processes of the small lane's function, as a change of its configuration does."""
    [name] = [
        each.id
        for id_, each in stack.deployed.resources.items()
        if each.type == "AWS::Lambda::Function" and "SmallLane" in id_
    ]
    client = stack.clients.lambda_
    memory = client.get_function_configuration(FunctionName=name)["MemorySize"]
    client.update_function_configuration(FunctionName=name, MemorySize=memory)
    client.get_waiter("function_updated_v2").wait(
        FunctionName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 600}
    )


def _counted(stack: LocalStack) -> int:
    log = stack.folder.path / "ministack.log"
    with log.open(encoding="utf-8", errors="replace") as lines:
        return sum(COUNTED in line for line in lines)
