"""The page of the mutants: written from verdicts, and read again to compare it with the code."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .generate import ROOT, Mutant

PAGE: Final = ROOT / "docs" / "mutants.md"
REASONS: Final = Path(__file__).with_name("survivors.toml")
TESTS: Final = ROOT / "tests" / "unit" / "jobs"
COMMAND: Final = "make mutants ARGS=--changed"
NOT_RUN: Final = "not run"
NOTICED: Final = frozenset({"caught", "crashed"})
INTRODUCTION: Final = """\
# Mutants of the rules

Each mutant is the code of `handlers/jobs` with one change: a condition of a write, a guard, or a
part of an `and` or `or` is left out, or a comparison is moved over its boundary. A mutant is caught
when an assertion of a unit test fails, or when the rules raise an error of their own where a test
expects none. It is crashed when unit tests only fail because it raises what nobody meant to raise
(mostly the type error that the guard was there for). It is an error when its process ends, or when
it cannot be run; like one that survives, it needs a reason.

`make mutants` runs all of them and writes this page; `make mutants ARGS=transitions/attempt.py`
runs those of one module. A mutant is run against the unit tests that call its function, for at most
three seconds of tests. Left out are modules that decide how fast a job goes and never what is
written, the selection of records, guards before a line of the log, and tests for None or for a
type, without which the code can only crash.

`make test` compares the list of this page with the code. A condition that is new, changed or gone
fails it until `make mutants ARGS=--changed` has run. That runs the mutants whose definition has
changed, those that nothing catches and no reason excuses, and those whose test is gone.
"""
WORDS: Final = "caught|crashed|survived|error|not run"
ROW: Final = re.compile(rf"^\| ([0-9a-f]{{10}}) \| `([^`]*)`: (.*) \| ({WORDS})(?:: (.*))? \|$")
HEADING: Final = re.compile(r"^### `(.*)`$")
Place = tuple[str, str, str]
"""Module, definition (``module`` outside of any), change."""


@dataclass(frozen=True)
class Verdict:
    word: str
    """caught; crashed: tests fail by its exception alone; survived; error: it cannot be run."""
    by: str
    """The test that caught it, or what happened."""


@dataclass(frozen=True)
class Row:
    place: Place
    key: str
    word: str
    by: str

    @property
    def is_noticed(self) -> bool:
        return self.word in NOTICED

    @property
    def module(self) -> str:
        return self.place[0]

    @property
    def text(self) -> str:
        return f"`{self.place[1]}`: {self.place[2]}"


def place_of(mutant: Mutant) -> Place:
    return mutant.module, mutant.where or "module", mutant.what


def row_of(mutant: Mutant, verdict: Verdict) -> Row:
    by = " ".join(verdict.by.replace("tests/unit/jobs/", "").split())
    return Row(place_of(mutant), mutant.key, verdict.word, by)


def reasons() -> Mapping[Place, str]:
    """Why a mutant that no test catches does no harm, by its place."""
    if not REASONS.exists():
        return {}
    entries = tomllib.loads(REASONS.read_text(encoding="utf-8")).get("survivor", [])
    return {(e["module"], e["where"], e["what"]): e["reason"] for e in entries}


def rows_of_page() -> list[Row]:
    """The page's rows; none without a page."""
    rows: list[Row] = []
    module = ""
    if not PAGE.exists():
        return rows
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := HEADING.match(line):
            module = heading[1]
        elif found := ROW.match(line):
            key, where, what, word, by = found.groups(default="")
            rows.append(Row((module, where, _plain(what)), key, word, _plain(by)))
    return rows


def write_page(every: Sequence[Mutant], rows: Iterable[Row]) -> list[Row]:
    """Write the page: each of the mutants, with the last of the rows of its place. Returns what the
    page lists."""
    known = {row.place: row for row in rows}
    listed = [known.get(place_of(m)) or row_of(m, Verdict(NOT_RUN, "")) for m in every]
    PAGE.write_text(_page(listed), encoding="utf-8")
    return listed


def to_be_run(every: Sequence[Mutant], rows: Iterable[Row]) -> list[Mutant]:
    """The mutants that have no verdict, or one that may no longer hold."""
    excused = reasons()
    good = {
        (row.place, row.key)
        for row in rows
        if (row.is_noticed and _exists(row.by)) or (_ran(row) and row.place in excused)
    }
    return [m for m in every if (place_of(m), m.key) not in good]


def complaints(every: Sequence[Mutant], rows: Sequence[Row]) -> list[str]:
    """What the page lacks, and what it has too much. rows: the page's."""
    excused = reasons()
    places = [place_of(m) for m in every]
    listed = {row.place for row in rows}
    left = {row.place for row in rows if not row.is_noticed}
    is_as_written = PAGE.exists() and PAGE.read_text(encoding="utf-8") == _page(rows)
    return [
        *(["the page is not as its results and the reasons make it"] if not is_as_written else []),
        *(f"not on the page: {_told(p)}" for p in places if p not in listed),
        *(f"no longer in the code: {_told(p)}" for p in listed.difference(places)),
        *(
            f"neither noticed nor excused: {_told(row.place)}: {row.word}: {row.by}"
            for row in rows
            if row.place in left and (row.place not in excused or not _ran(row))
        ),
        *(f"a reason for what is noticed or gone: {_told(p)}" for p in excused if p not in left),
    ]


def score(rows: Sequence[Row]) -> str:
    words = Counter(row.word for row in rows)
    excused = sum(not row.is_noticed and row.place in reasons() for row in rows)
    noticed = sum(row.is_noticed for row in rows)
    percent = 100 * noticed / max(1, len(rows))
    return (
        f"Tests notice {noticed} of {len(rows)} mutants ({percent:.1f} %): {words['caught']} are "
        f"caught, {words['crashed']} crashed. {words['survived']} survive, {words['error']} end in "
        f"an error, {words[NOT_RUN]} have not been run; {excused} of these have a reason."
    )


def _page(rows: Sequence[Row]) -> str:
    return "\n".join(_lines(rows, reasons()))


def _lines(rows: Sequence[Row], excused: Mapping[Place, str]) -> Iterator[str]:
    yield from INTRODUCTION.splitlines()
    yield from ("", "## Score", "", score(rows), "")
    yield from ("| package | mutants | noticed | left with a reason |", "| --- | --- | --- | --- |")
    packages = dict.fromkeys(row.module.split("/")[0] for row in rows)
    for package in packages:
        own = [row for row in rows if row.module.split("/")[0] == package]
        noticed = sum(row.is_noticed for row in own)
        with_reason = sum(not row.is_noticed and row.place in excused for row in own)
        yield f"| `{package}` | {len(own)} | {noticed} | {with_reason} |"
    yield from ("", "## Not noticed", "")
    yield from ("| module | mutant | why it may stay |", "| --- | --- | --- |")
    for row in rows:
        if not row.is_noticed:
            reason = excused.get(row.place, "**no reason yet**")
            yield f"| `{row.module}` | {_cell(row.text)} | {_cell(reason)} |"
    yield from ("", "## All of them", "")
    for module in dict.fromkeys(row.module for row in rows):
        yield from (f"### `{module}`", "", "| key | mutant | result |", "| --- | --- | --- |")
        for row in rows:
            if row.module == module:
                result = f"{row.word}: {_cell(row.by)}" if row.by else row.word
                yield f"| {row.key} | {_cell(row.text)} | {result} |"
        yield ""


def _ran(row: Row) -> bool:
    return row.word != NOT_RUN


def _exists(test: str) -> bool:
    """Whether the test that caught a mutant is still there."""
    file, _, name = test.partition("::")
    file = file.rpartition(" in ")[2]  # "TypeError in test_x.py::test_y"
    path = TESTS / file
    return (
        path.is_file()
        and f"def {name.rpartition('::')[2].partition('[')[0]}(" in path.read_text(encoding="utf-8")
    )


def _told(place: Place) -> str:
    return "{}: {}: {}".format(*place)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _plain(cell: str) -> str:
    return cell.replace(r"\|", "|")
