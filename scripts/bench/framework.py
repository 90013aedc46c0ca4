"""What a bench is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from scripts.local.steps import Steps


class Measured(BaseModel):
    """A ratio and what it was made of."""

    model_config = ConfigDict(frozen=True)

    ratio: float
    at_least: float
    """The bound."""
    figures: dict[str, float] = Field(default_factory=dict)
    """What was measured, by names with units."""

    @property
    def ok(self) -> bool:
        return self.ratio >= self.at_least


@dataclass(frozen=True)
class Bench:
    name: str
    shows: str
    """One sentence; what the ratio is of."""
    run: Callable[[Steps], Measured]


def compare(
    one: Callable[[], float], other: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """Run both so often, in an order that treats drift of the machine's speed alike: A B B A."""
    ones: list[float] = []
    others: list[float] = []
    for number in range(rounds):
        for which in (one, other) if number % 2 == 0 else (other, one):
            (ones if which is one else others).append(which())
    return ones, others
