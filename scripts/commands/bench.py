"""``fairlane bench``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from fairlane_client.commands.output import console
from scripts.bench.framework import Result, perform
from scripts.bench.registry import BENCHES
from scripts.local.errors import LocalError
from scripts.local.steps import Steps


def bench(
    name: Annotated[str | None, typer.Argument(help="Only this one; all if left out.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Measure what Fairlane costs, side by side; the exit status is 1 out of bounds."""
    chosen = [each for each in BENCHES if name in {None, each.name}]
    if not chosen:
        raise LocalError(f"no bench {name!r}; there are: " + ", ".join(b.name for b in BENCHES))
    results: list[Result] = []
    with Steps(quiet=as_json) as steps:
        for each in chosen:
            results.append(perform(each, steps))
            steps.say(_line(results[-1]))
    if as_json:
        facts = {result.bench.name: result.as_json() for result in results}
        print(json.dumps({"ok": all(result.ok for result in results), "benches": facts}))
    else:
        _show(results)
    raise typer.Exit(0 if all(result.ok for result in results) else 1)


def _line(result: Result) -> str:
    """What came of one, as soon as it is known."""
    if result.measured is None:
        return f"{result.bench.name}: failed: {result.error or ''}"
    verdict = "ok" if result.ok else "out of bounds"
    return f"{result.bench.name}: {result.measured.ratio:.2f} {verdict}"


def _verdict(result: Result) -> str:
    if result.measured is None:
        return "[red]failed[/]"
    return "ok" if result.ok else "[red]out of bounds[/]"


def _show(results: list[Result]) -> None:
    table = Table("bench", "ratio", "bound", "", "measured")
    for result in results:
        of, measured = result.bench, result.measured
        if measured is None:
            ratio, bound, figures = "", "", escape(result.error or "")
        else:
            lines = [f"{value:,.1f} {what}" for what, value in measured.figures.items()]
            ratio, bound, figures = f"{measured.ratio:.2f}", measured.bound, "\n".join(lines)
        table.add_row(f"{of.name}\n{of.shows}", ratio, bound, _verdict(result), figures)
    console().print(table)
