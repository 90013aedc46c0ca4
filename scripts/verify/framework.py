"""What a scenario is, and running one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict

from scripts.load import own
from scripts.load.measures import Dwell
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack
from scripts.local.state import ROOT
from scripts.local.steps import Steps

Measured = TypeVar("Measured")


class Expectation(BaseModel):
    """One thing that was expected, and what was seen."""

    model_config = ConfigDict(frozen=True)

    what: str
    expected: str
    saw: str
    ok: bool

    @classmethod
    def of(cls, what: str, *, expected: object, saw: object, ok: bool) -> Self:
        return cls(what=what, expected=str(expected), saw=str(saw), ok=ok)

    @classmethod
    def equal(cls, what: str, *, expected: object, saw: object) -> Self:
        return cls.of(what, expected=expected, saw=saw, ok=saw == expected)

    def contrary(self) -> Self:
        """What a control expects of a claim: that it does not hold there."""
        return self.of(
            f"not so here: {self.what}",
            expected=f"not {self.expected}",
            saw=self.saw,
            ok=not self.ok,
        )


class Information(BaseModel):
    """One thing that was seen and is only told: no exit status depends on it. What takes time takes
    as long as the machine needs, so absolute times are of this kind."""

    model_config = ConfigDict(frozen=True)

    what: str
    beside: str
    """What it may be compared with."""
    saw: str


class Bench:
    """What a scenario works with. A context manager: shared stacks are up until its end."""

    def __init__(self, steps: Steps, root: Path = ROOT) -> None:
        self.steps = steps
        self.dwells: dict[str, Dwell] = {}
        """What a scenario's run measured, by its name, for its control to compare with."""
        self._measured: dict[str, object] = {}
        self._root = root
        self._shared: dict[str, LocalStack] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shared.clear()
        self._open.close()

    @contextmanager
    def stack(
        self,
        name: str,
        *,
        settings: Chosen | None = None,
        workers: int = 1,
        records: bool = True,
        one_by_one: bool = False,
    ) -> Iterator[LocalStack]:
        """A local stack of the scenario's own; see LocalStack. It is taken down at the end."""
        stack = own.up(
            f"verify-{name}",
            steps=self.steps,
            settings=settings,
            workers=workers,
            records=records,
            one_by_one=one_by_one,
            root=self._root,
        )
        with own.taken_down(stack, steps=self.steps):
            yield stack

    def once(self, name: str, measure: Callable[[], Measured]) -> Measured:
        """What ``measure`` returned when that name was first asked for: a run and its control judge
        the same rounds where both ways are measured in turns."""
        if name not in self._measured:
            self._measured[name] = measure()
        return cast("Measured", self._measured[name])

    def shared(
        self, name: str, *, settings: Chosen, workers: int = 0, one_by_one: bool = False
    ) -> LocalStack:
        """A stack that several parts use one after another, without records; the first to ask
        brings it up. Each uses a tenant of its own, and leaves nothing running."""
        if name not in self._shared:
            self._shared[name] = self._open.enter_context(
                self.stack(
                    name,
                    settings=settings,
                    workers=workers,
                    records=False,
                    one_by_one=one_by_one,
                )
            )
        return self._shared[name]


Seen: TypeAlias = Expectation | Information
Part: TypeAlias = Callable[[Bench], Iterable[Seen]]


@dataclass(frozen=True)
class Scenario:
    name: str
    shows: str
    """One sentence."""
    run: Part
    control: Part
    """The same without what the claim rests on. Its expectations are that the harm is there."""


class PartReport(BaseModel):
    """The run of a scenario, or its control."""

    model_config = ConfigDict(frozen=True)

    part: Literal["run", "control"]
    expectations: tuple[Expectation, ...]
    information: tuple[Information, ...] = ()
    seconds: float

    @property
    def ok(self) -> bool:
        """A part that expected nothing has shown nothing."""
        return bool(self.expectations) and all(each.ok for each in self.expectations)


class Report(BaseModel):
    """A scenario's result."""

    model_config = ConfigDict(frozen=True)

    scenario: str
    shows: str
    parts: tuple[PartReport, ...]

    @property
    def ok(self) -> bool:
        return all(part.ok for part in self.parts)

    def as_json(self) -> dict[str, object]:
        parts = [{**part.model_dump(mode="json"), "ok": part.ok} for part in self.parts]
        return {"scenario": self.scenario, "shows": self.shows, "ok": self.ok, "parts": parts}


def perform(scenario: Scenario, bench: Bench) -> Report:
    """Run the scenario, then its control. An error in one is a difference like any other."""
    return Report(
        scenario=scenario.name,
        shows=scenario.shows,
        parts=(
            _perform("run", scenario.run, bench),
            _perform("control", scenario.control, bench),
        ),
    )


def _perform(name: Literal["run", "control"], part: Part, bench: Bench) -> PartReport:
    start = time.monotonic()
    seen: list[Seen] = []
    try:
        seen.extend(part(bench))
    except Exception as error:  # noqa: BLE001  one broken scenario must not hide the others
        said = f"{type(error).__name__}: {error}"
        seen.append(Expectation.of("it runs to its end", expected="no error", saw=said, ok=False))
    return PartReport(
        part=name,
        expectations=tuple(each for each in seen if isinstance(each, Expectation)),
        information=tuple(each for each in seen if isinstance(each, Information)),
        seconds=round(time.monotonic() - start, 1),
    )
