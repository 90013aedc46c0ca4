"""A figure: a ratio of two things measured in turns, its spread, and what it is held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median, quantiles
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, computed_field


class Limit(BaseModel):
    """What a ratio should be; one of both, or both."""

    model_config = ConfigDict(frozen=True)

    at_least: float | None = None
    at_most: float | None = None

    def holds(self, ratio: float) -> bool:
        above = self.at_least is None or ratio >= self.at_least
        return above and (self.at_most is None or ratio <= self.at_most)

    def __str__(self) -> str:
        parts = (("≥", self.at_least), ("≤", self.at_most))
        return " ".join(f"{sign} {value:.4g}" for sign, value in parts if value is not None)


def at_least(ratio: float) -> Limit:
    return Limit(at_least=ratio)


def at_most(ratio: float) -> Limit:
    return Limit(at_most=ratio)


class Figure(BaseModel):
    """Without a bound and an aim it is information: nobody could say honestly what it ought to be
    on another machine."""

    model_config = ConfigDict(frozen=True)

    what: str
    ratio: float
    """The median of the pairs."""
    low: float
    high: float
    """The middle half of the pairs."""
    pairs: int
    bound: Limit | None = None
    """Out of it, the exit status is 1: it has to hold on a busy machine, too."""
    counted: bool = False
    """Not timed: the bound holds in the short form as well, where few rounds say as much as
    many."""
    aim: Limit | None = None
    """What is wanted. It is shown as kept or missed, and that is all."""
    quiet: bool = True
    """False: other programs used the machine all the time, so that the ratio says nothing of the
    bound."""

    @classmethod
    def of(
        cls,
        what: str,
        ones: Sequence[float],
        others: Sequence[float] | None = None,
        *,
        bound: Limit | None = None,
        counted: bool = False,
        aim: Limit | None = None,
        quiet: bool = True,
    ) -> Self:
        """Each of ``ones`` by the one of ``others`` that was measured beside it (by 1 without)."""
        ratios = [a / b for a, b in zip(ones, others or [1] * len(ones), strict=True)]
        low, high = _middle_half(ratios)
        return cls(
            what=what,
            ratio=median(ratios),
            low=low,
            high=high,
            pairs=len(ratios),
            bound=bound,
            counted=counted,
            aim=aim,
            quiet=quiet,
        )

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way
    @property
    def kept(self) -> bool | None:
        """The bound; None without one."""
        return None if self.bound is None else self.bound.holds(self.ratio)

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way
    @property
    def aim_kept(self) -> bool | None:
        return None if self.aim is None else self.aim.holds(self.ratio)

    def judged(self, *, short: bool) -> bool:
        """The exit status depends on it."""
        return self.bound is not None and self.quiet and (self.counted or not short)


def in_turns(
    one: Callable[[], float], other: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """Run both so often, in an order that treats drift of the machine's speed alike: A B B A."""
    ones: list[float] = []
    others: list[float] = []
    for number in range(rounds):
        for which in (one, other) if number % 2 == 0 else (other, one):
            (ones if which is one else others).append(which())
    return ones, others


ENOUGH: Final = 2
"""Pairs from which on there is a spread."""


def _middle_half(ratios: Sequence[float]) -> tuple[float, float]:
    if len(ratios) < ENOUGH:
        return ratios[0], ratios[0]
    low, _, high = quantiles(ratios, n=4, method="inclusive")
    return low, high
