"""What a bench is, and running one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from scripts.local.errors import LocalError
from scripts.local.steps import Steps


class Measured(BaseModel):
    """A ratio and what it was made of."""

    model_config = ConfigDict(frozen=True)

    ratio: float
    at_least: float | None = None
    at_most: float | None = None
    """The bound; one of both."""
    figures: dict[str, float] = Field(default_factory=dict)
    """What was measured, by names with units."""

    @property
    def ok(self) -> bool:
        above = self.at_least is None or self.ratio >= self.at_least
        return above and (self.at_most is None or self.ratio <= self.at_most)

    @property
    def bound(self) -> str:
        parts = (("at least", self.at_least), ("at most", self.at_most))
        return ", ".join(f"{words} {value:.2f}" for words, value in parts if value is not None)


@dataclass(frozen=True)
class Bench:
    name: str
    shows: str
    """One sentence; what the ratio is of."""
    run: Callable[[Steps], Measured]


@dataclass(frozen=True)
class Result:
    bench: Bench
    measured: Measured | None
    error: str | None = None
    """Why there is nothing measured."""

    @property
    def ok(self) -> bool:
        return self.measured is not None and self.measured.ok

    def as_json(self) -> dict[str, object]:
        if self.measured is None:
            return {"ok": False, "error": self.error}
        return {**self.measured.model_dump(), "ok": self.ok}


def perform(bench: Bench, steps: Steps) -> Result:
    """Run the bench. An error in it is its result: the others have theirs all the same."""
    try:
        return Result(bench, bench.run(steps))
    except LocalError as error:
        return Result(bench, None, str(error))
    except Exception as error:  # noqa: BLE001  one broken bench must not hide the others
        return Result(bench, None, f"{type(error).__name__}: {error}")


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
