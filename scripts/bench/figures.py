"""A figure: a ratio of two things measured in turns, its spread, and what it is held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from statistics import median, quantiles
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, computed_field


class Held(StrEnum):
    """What becomes of a figure that is not within its limit."""

    BOUND = "bound"
    """The exit status is 1."""
    COUNT = "count"
    """So too, also in the short form: what is counted, not timed, needs few rounds."""
    AIM = "aim"
    """It is shown as missed, and that is all."""
    NOTHING = "nothing"
    """Information: nobody could say honestly what it ought to be on another machine."""


class Figure(BaseModel):
    model_config = ConfigDict(frozen=True)

    what: str
    ratio: float
    """The median of the pairs."""
    low: float
    high: float
    """The middle half of the pairs."""
    pairs: int
    held: Held = Held.NOTHING
    at_least: float | None = None
    at_most: float | None = None

    @classmethod
    def of(
        cls,
        what: str,
        ones: Sequence[float],
        others: Sequence[float] | None = None,
        *,
        held: Held = Held.NOTHING,
        at_least: float | None = None,
        at_most: float | None = None,
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
            held=held,
            at_least=at_least,
            at_most=at_most,
        )

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way
    @property
    def kept(self) -> bool | None:
        """None: it is held against nothing."""
        if self.held is Held.NOTHING:
            return None
        above = self.at_least is None or self.ratio >= self.at_least
        return above and (self.at_most is None or self.ratio <= self.at_most)

    @property
    def limit(self) -> str:
        parts = (("≥", self.at_least), ("≤", self.at_most))
        return " ".join(f"{sign} {value:g}" for sign, value in parts if value is not None)

    def fails(self, *, short: bool) -> bool:
        """The exit status is 1 for it."""
        return self.kept is False and (
            self.held is Held.COUNT or (self.held is Held.BOUND and not short)
        )


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
