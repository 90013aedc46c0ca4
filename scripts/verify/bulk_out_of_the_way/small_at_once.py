"""Part 3: a query over three records and an upload of five start before the line of bulk jobs.

Judged by the order of starts. The control makes no bounded look, so both wait in the bulk lane.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairlane_client import NewUpload
from handlers.jobs.words.job import Lane
from scripts.load.ledger import JobRow
from scripts.verify.framework import Bench, Expectation, Seen

from .town import Town, town

BULK: Final = "crowd"
SMALL: Final = "few"
LINE: Final = 4
"""Bulk jobs, for one slot."""
EACH: Final = 1500
"""Records of one of them: seconds of work."""
BY_QUERY: Final = 3
BY_FILE: Final = 5
API: Final = "ApiFunction"
"""Part of the name of the function that looks."""


def run(bench: Bench) -> Iterator[Seen]:
    yield from claims(_measure(town(bench, "small-at-once")))


def control(bench: Bench) -> Iterator[Seen]:
    """The same without a look: what is named by a query or a file is bulk."""
    here = town(bench, "looked-not")
    with here.told(API, {"limits_look_calls": 0}):
        seen = _measure(here)
    yield from (each.contrary() for each in claims(seen))


def _measure(here: Town) -> dict[str, list[JobRow]]:
    ids = here.load(BULK, EACH)
    here.load(SMALL, BY_QUERY, kind="wanted")
    with here.working({"bulk_slots": 1}):
        line = [here.submit(BULK, ids) for _ in range(LINE)]
        here.running(line, 1)
        where = {"all": [{"field": "kind", "op": "eq", "value": "wanted"}]}
        asked = [here.submit(SMALL, query=where)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ids.csv"
            path.write_text("id\n" + "".join(f"{id_}\n" for id_ in ids[:BY_FILE]), encoding="utf-8")
            upload = here.client(SMALL).upload(path, NewUpload(format="csv", column="id"))
        asked.append(here.submit(SMALL, upload_id=upload))
        ended = here.ended([*asked, *line])
    return {"asked": ended[: len(asked)], "line": ended[len(asked) :]}


def claims(seen: dict[str, list[JobRow]]) -> Iterator[Expectation]:
    asked, line = seen["asked"], seen["line"]
    yield Expectation.equal(
        "part 3: lanes of a query over 3 records and a file of 5 ids",
        expected=[Lane.SMALL.value] * 2,
        saw=[row.lane.value for row in asked],
    )
    last = max(row.started_at or 0 for row in line)
    before = sum((row.started_at or last) < last for row in asked)
    yield Expectation.of(
        "part 3: of these two, started before the last bulk job of the line",
        expected=2,
        saw=f"{before}; dwell {[row.dwell_ms for row in asked]} ms",
        ok=before == len(asked),
    )
