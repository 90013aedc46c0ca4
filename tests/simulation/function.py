"""The small lane's function as it is deployed: the real entrypoint with its batches, and what the
event source mapping does with its answer."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from handlers import small_lane
from handlers.jobs.execution.dwell_report import DwellReport
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.job import Lane
from handlers.testing.lane_queue import Stored
from tests.support.sqs import sqs_record

from .hub import SimRuntime

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from handlers.jobs.words.ports import Delivery, World

    from .hub import Hub, Process
    from .scenario import Scenario

FOREIGN: Final = (
    "",
    "{",
    "null",
    "hello",
    '{"version": 1}',
    json.dumps({"version": 99, "job_id": "x", "lane": "small"}),
)
"""Bodies of messages that Fairlane did not send."""
FOREIGN_ONES: Final = 4
"""How many there are in a third of the seeds in which functions get batches."""


@dataclass
class Functions:
    """Those of one scenario."""

    here: Scenario
    names: Random = field(init=False)
    """Of the workers' names and the foreign messages, so that a seed's other choices stay as they
    were."""
    _worlds: dict[Process, World] = field(default_factory=dict)
    _reports: dict[Process, DwellReport] = field(default_factory=dict)
    unsettled: dict[Process, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Messages by id whose decision the queue did not take, as each function logged it."""

    def __post_init__(self) -> None:
        self.names = Random(f"functions {self.here.seed}")  # noqa: S311  repeatable

    @contextmanager
    def deployed(self) -> Iterator[None]:
        """The entrypoint's module, in the process that runs at the moment."""
        with (
            patch.object(small_lane, "world", lambda _service: self._world()),
            patch.object(small_lane, "dwells", self._dwells),
        ):
            yield

    def serve(self, process: Process, batch: Sequence[Delivery], deadline: int) -> None:
        """Invoke the function, and delete what it does not report as failed. deadline: ms of the
        hub's clock. A function that is killed meanwhile has reported nothing."""
        hub, watch = self.here.hub, self.here.watch
        world = self._worlds[process] = self.here.world_of(process)
        for delivery in batch:
            hub.note("received", delivery)
        context: Any = _Context(process.name, hub, deadline)
        answer = small_lane.handler({"Records": [sqs_record(each) for each in batch]}, context)
        failed = {str(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]}
        hub.note("reported", sorted(failed))
        for delivery in batch:
            if delivery.message_id not in failed:
                try:
                    world.queues[Lane.SMALL].delete(delivery.receipt)
                except FairlaneError:
                    continue
            elif delivery.message_id in self.unsettled[process]:
                continue
            watch.decided.add(delivery.receipt)
        del self._worlds[process]
        self._reports.pop(process, None)

    def plan(self) -> None:
        span = self.here.calm_at - self.here.hub.now
        count = self.names.choice((0, 0, FOREIGN_ONES)) if self.here.extras.batch > 1 else 0
        for _ in range(count):
            self.here.hub.after(self.names.random() * span, self._send_foreign)

    def _send_foreign(self) -> None:
        """Somebody sends what is no pointer to a job."""
        queue, now = self.here.queues[Lane.SMALL], self.here.hub.now
        body = self.names.choice(FOREIGN)
        id_ = f"{Lane.SMALL}-foreign-{self.names.getrandbits(40):010x}"
        queue.accept_dead_letter(Stored(id_, body, "foreign", now, now), now)
        self.here.hub.note("a foreign message", body)

    def _world(self) -> World:
        process = self._process()
        runtime = _Naming(self.here.hub, process, self.names)
        return replace(self._worlds[process], runtime=runtime)

    def _dwells(self) -> DwellReport:
        process = self._process()
        if process not in self._reports:
            self._reports[process] = DwellReport(self._world())
        return self._reports[process]

    def _process(self) -> Process:
        assert self.here.hub.current is not None
        return self.here.hub.current.process


class _Naming(SimRuntime):
    """The first token that it gives out is a name, and no choice of the seed's."""

    def __init__(self, hub: Hub, process: Process, names: Random) -> None:
        super().__init__(hub, process)
        self._names: Random | None = names

    def token(self) -> str:
        names, self._names = self._names, None
        return super().token() if names is None else f"{names.getrandbits(80):020x}"


@dataclass(frozen=True)
class _Context:
    """What Lambda tells a function about its invocation."""

    aws_request_id: str
    hub: Hub
    deadline: int

    def get_remaining_time_in_millis(self) -> int:
        return self.deadline - self.hub.now
