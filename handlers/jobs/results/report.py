"""A file with the results of a job's records, for downloading."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ..storage.transaction import retry_transient
from ..words.limits import PAYLOAD_BLOCK
from .items import ItemOutcome, item_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..words.job import Job
    from ..words.ports import World
    from .items import ItemResult

REPORTS: Final = "reports"
COLUMNS: Final = ("outcome", "id", "reason", "sink")

AS_TEXT: Final = "'"
"""Before a cell: spreadsheets show it as text."""
FORMULA_STARTS: Final = (*"=+-@\t\r", *"＝＋－＠", AS_TEXT)  # noqa: RUF001  they count, too
"""With one of these a spreadsheet takes a cell for a formula."""


class ReportFormat(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Report:
    """A report that lies in the payload store."""

    name: str
    count: int
    """Records listed."""
    bytes: int
    sha256: str
    """The file's SHA-256, in hex."""


def write_report(
    world: World,
    job: Job,
    outcomes: tuple[ItemOutcome, ...],
    form: ReportFormat,
    out_of_time: Callable[[], bool],
) -> Report:
    """Write the report of a job as it was read, whatever its state. Memory does not grow with it.

    Raises Unfinished, Transient; then no file is left under a name that was given out.
    """
    report = _ReportWriter(world, job, outcomes, form, out_of_time)
    name = report.name()
    size = retry_transient(world, lambda: world.payloads.put(name, report.blocks()))
    return Report(name, report.count, size, report.hash.hexdigest())


class _ReportWriter:
    def __init__(
        self,
        world: World,
        job: Job,
        outcomes: tuple[ItemOutcome, ...],
        form: ReportFormat,
        out_of_time: Callable[[], bool],
    ) -> None:
        self._world = world
        self._job = job
        self._outcomes = outcomes
        self._form = form
        self._out_of_time = out_of_time
        self.count = 0
        self.hash = hashlib.sha256()

    def name(self) -> str:
        """The file's name. A report that can still change gets a new name every time, so that an
        address given out before always shows the file it was described with."""
        job = self._job
        final = job.state.terminal and not job.effects_open and not job.effects_parked
        of = "-".join(outcome.value for outcome in self._outcomes)
        as_read = f"{job.position}" if final else self._world.runtime.token()
        return f"{REPORTS}/{job.id}/{of}-{as_read}.{self._form.value}"

    def blocks(self) -> Iterator[bytes]:
        """The file's blocks; a second call begins again."""
        self.count, self.hash = 0, hashlib.sha256()
        waiting: list[str] = [_csv(COLUMNS)] if self._form is ReportFormat.CSV else []
        size = 0
        for outcome in self._outcomes:
            for result in item_results(self._world, self._job, outcome, self._out_of_time):
                line = self._line(result)
                self.count += 1
                size += len(line)
                waiting.append(line)
                if size >= PAYLOAD_BLOCK:
                    yield self._block(waiting)
                    waiting, size = [], 0
        yield self._block(waiting)

    def _block(self, lines: list[str]) -> bytes:
        block = "".join(lines).encode()
        self.hash.update(block)
        return block

    def _line(self, result: ItemResult) -> str:
        if self._form is ReportFormat.CSV:
            return _csv((result.outcome.value, result.id, result.reason, result.sink or ""))
        fields = {
            "outcome": result.outcome.value,
            "id": result.id,
            "reason": result.reason,
            **({} if result.sink is None else {"sink": result.sink}),
        }
        return json.dumps(fields, ensure_ascii=False) + "\n"


def _csv(row: tuple[str, ...]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(map(_cell, row))
    return text.getvalue()


def _cell(text: str) -> str:
    """The text with ``AS_TEXT`` before it where a spreadsheet would calculate, and where the text
    begins with that sign itself, so that removing one sign gives the text again."""
    return AS_TEXT + text if text.startswith(FORMULA_STARTS) else text
