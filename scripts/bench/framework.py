"""What a bench is, and running one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from scripts.local.errors import LocalError

from .figures import Figure
from .place import Place


class Measured(BaseModel):
    """What came of a bench."""

    model_config = ConfigDict(frozen=True)

    figures: tuple[Figure, ...]
    facts: Mapping[str, float] = Field(default_factory=dict)
    """What the ratios were made of, by names with units: of this machine in this hour."""


@dataclass(frozen=True)
class Bench:
    name: str
    shows: str
    """One sentence."""
    run: Callable[[Place], Measured]


@dataclass(frozen=True)
class Result:
    bench: Bench
    seconds: float
    measured: Measured | None
    error: str | None = None
    """Why there is nothing measured."""

    def ok(self, *, short: bool) -> bool:
        """It ran, and no bound is broken."""
        return self.measured is not None and all(
            figure.kept for figure in self.measured.figures if figure.judged(short=short)
        )

    def as_json(self, *, short: bool) -> dict[str, object]:
        facts: dict[str, object] = {
            "ok": self.ok(short=short),
            "shows": self.bench.shows,
            "seconds": round(self.seconds, 1),
        }
        if self.measured is None:
            return {**facts, "error": self.error}
        return {**facts, **self.measured.model_dump(mode="json")}


def perform(bench: Bench, place: Place) -> Result:
    """Run the bench. An error in it is its result: the others have theirs all the same."""
    start = time.monotonic()
    try:
        return Result(bench, measured=bench.run(place), seconds=time.monotonic() - start)
    except LocalError as error:
        said = str(error)
    except Exception as error:  # noqa: BLE001  one broken bench must not hide the others
        said = f"{type(error).__name__}: {error}"
    # Nobody knows how it left the stack; the next one gets another.
    place.close()
    return Result(bench, measured=None, error=said, seconds=time.monotonic() - start)
