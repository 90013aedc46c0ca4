"""The page of the mutants: written from results, and read again to compare it with the code."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .generate import ROOT, Mutant, source_hash

PAGE: Final = ROOT / "docs" / "mutants.md"
REASONS: Final = Path(__file__).with_name("survivors.toml")
INTRODUCTION: Final = """\
# Mutants of the rules

Each mutant is the code of `handlers/jobs` with one change: a condition of a write, a guard, or a
part of an `and` or `or` is left out, or a comparison is moved over its boundary. A mutant is caught
when an assertion of a unit test fails, or when the rules raise an error of their own where a test
expects none. A mutant that only crashes, or whose process ends, is an error and not caught.

`make mutants` runs all of them and writes this page; `make mutants ARGS=transitions/attempt.py`
runs those of one module, and `ARGS=--changed` those that the page does not have yet. A mutant is
run against the unit tests that call its function, for at most six seconds of tests. Left out are
modules that decide how fast a job goes and never what is written, the selection of records, guards
before a line of the log, and tests for None or for a type, without which the code can only crash.
"""
ROW: Final = re.compile(r"^\| ([0-9a-f]{10}) \| (.*) \| (caught|survived|error): (.*) \|$")
HEADING: Final = re.compile(r"^### `(.*)`, from ([0-9a-f]{10})$")
Place = tuple[str, str, str]
"""Module, definition, change."""


@dataclass(frozen=True)
class Verdict:
    word: str
    """caught, survived or error: the mutant crashed, and no assertion failed."""
    by: str
    """The test that caught it, or what happened."""


@dataclass(frozen=True)
class Result:
    mutant: Mutant
    verdict: Verdict


@dataclass(frozen=True)
class Row:
    key: str
    module: str
    text: str
    word: str
    by: str


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
        elif row := ROW.match(line):
            rows.append(Row(row[1], module, row[2].replace(r"\|", "|"), row[3], row[4]))
    return rows


def write_page(results: Sequence[Result], kept: Sequence[Row] = (), *, seconds: int) -> list[str]:
    """Write the page. kept: rows of an earlier run that still stand. seconds: the time of the run.
    Returns the mutants that are not caught and have no reason."""
    made = {result.mutant.key for result in results}
    rows = [*map(_row, results), *(row for row in kept if row.key not in made)]
    rows.sort(key=lambda row: row.module)  # a stable order: that of the text, within a module
    PAGE.write_text("\n".join(_lines(rows, len(results), seconds)), encoding="utf-8")
    known = reasons()
    return [
        f"no reason: {row.module}: {row.text}: {row.word}: {row.by}"
        for row in rows
        if row.word != "caught" and place(row) not in known
    ]


def place(row: Row) -> Place:
    where, _, what = row.text.partition(": ")
    return row.module, where.strip("`"), what


def _row(result: Result) -> Row:
    mutant, verdict = result.mutant, result.verdict
    text = f"`{mutant.where or 'module'}`: {mutant.what}"
    by = verdict.by.removeprefix("tests/unit/jobs/")
    return Row(mutant.key, mutant.module, text, verdict.word, " ".join(by.split()))


def _lines(rows: Sequence[Row], run: int, seconds: int) -> Iterable[str]:
    known = reasons()
    words = Counter(row.word for row in rows)
    caught = words["caught"]
    yield from INTRODUCTION.splitlines()
    yield from (
        "",
        "## Score",
        "",
        (
            f"{caught} of {len(rows)} mutants are caught "
            f"({100 * caught / max(1, len(rows)):.1f} %);"
            f" {words['survived']} survive and {words['error']} end in an error."
        ),
        f"The last run was of {run} mutants, and took {seconds} s in two processes.",
        "",
        "| module | mutants | caught |",
        "| --- | --- | --- |",
    )
    listed = sorted({row.module for row in rows})
    for module in listed:
        own = [row.word for row in rows if row.module == module]
        yield f"| `{module}` | {len(own)} | {own.count('caught')} |"
    yield from (
        "",
        "## Not caught",
        "",
        "| module | mutant | why it may stay |",
        "| --- | --- | --- |",
    )
    for row in rows:
        if row.word != "caught":
            reason = known.get(place(row), "**no reason yet**")
            yield f"| `{row.module}` | {_cell(row.text)} | {_cell(reason)} |"
    yield from ("", "## All of them", "")
    for module in listed:
        yield from (f"### `{module}`, from {source_hash(module)}", "")
        yield from ("| key | mutant | result |", "| --- | --- | --- |")
        for row in rows:
            if row.module == module:
                yield f"| {row.key} | {_cell(row.text)} | {row.word}: {_cell(row.by)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
