"""``fairlane bench``."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from fairlane_client.commands.files import check_target
from fairlane_client.commands.output import console
from scripts.bench.figures import Figure
from scripts.bench.framework import Result, perform
from scripts.bench.place import Place
from scripts.bench.registry import BENCHES
from scripts.local.errors import LocalError
from scripts.local.steps import Steps

from .comparing import comparing


@comparing()
def bench(
    name: Annotated[str | None, typer.Argument(help="The bench to run; all when left out.")] = None,
    *,
    short: Annotated[
        bool,
        typer.Option(
            "--short", help="Run few rounds, to see that every bench runs; only counts are judged."
        ),
    ] = False,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the results to this file, as JSON.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure what Fairlane costs. Exit status 1: a figure is out of bounds; 2: trouble."""
    chosen = [each for each in BENCHES if name in {None, each.name}]
    if not chosen:
        raise LocalError(f"no bench {name!r}; there are: " + ", ".join(b.name for b in BENCHES))
    if to:
        _prepare(to)
    results: list[Result] = []
    with Steps(quiet=as_json) as steps, Place(steps, short=short) as place:
        for each in chosen:
            results.append(perform(each, place))
            for line in _lines(results[-1], short=short):
                steps.say(line)
            if to:
                _write(to, _facts(results, short=short))
    if as_json:
        print(json.dumps(_facts(results, short=short)))
    else:
        _show(results, short=short)
    raise typer.Exit(0 if all(result.ok(short=short) for result in results) else 1)


def _facts(results: Sequence[Result], *, short: bool) -> dict[str, object]:
    return {
        "ok": all(result.ok(short=short) for result in results),
        "short": short,
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "benches": {result.bench.name: result.as_json(short=short) for result in results},
    }


def _prepare(to: Path) -> None:
    """Before the first bench: minutes later its results would be lost. Raises LocalError,
    BadParameter."""
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalError(f"--to {to}: {error}") from error
    check_target("--to", to)


def _write(to: Path, facts: dict[str, object]) -> None:
    """Raises LocalError."""
    try:
        to.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise LocalError(f"--to {to}: {error}") from error


def _lines(result: Result, *, short: bool) -> list[str]:
    """What came of one, as soon as it is known."""
    if result.measured is None:
        return [f"{result.bench.name}: failed: {result.error or ''}"]
    return [
        f"{result.bench.name}: {each.what}: {each.ratio:.2f} "
        + Text.from_markup(_verdict(each, short=short)).plain
        for each in result.measured.figures
    ]


def _verdict(figure: Figure, *, short: bool) -> str:
    """In rich's markup."""
    said = []
    if figure.bound:
        judged = "ok" if figure.kept else "[red]out of bounds[/]"
        why = "" if figure.quiet else ": the machine was busy"
        said.append(judged if figure.judged(short=short) else f"[dim]not judged{why}[/]")
    if figure.aim:
        said.append("aim kept" if figure.aim_kept else "[yellow]aim missed[/]")
    return ", ".join(said)


def _show(results: Sequence[Result], *, short: bool) -> None:
    table = Table("figure", "ratio", "middle half", "bound", "aim", "", box=None, pad_edge=False)
    for result in results:
        table.add_row(f"[bold]{result.bench.name}[/]")
        if result.measured is None:
            table.add_row(f"  {escape(result.error or '')}", "", "", "", "", "[red]failed[/]")
        for figure in result.measured.figures if result.measured else ():
            table.add_row(
                f"  {escape(figure.what)}",
                f"{figure.ratio:.3g}",
                f"{figure.low:.3g}-{figure.high:.3g}",
                str(figure.bound or ""),
                str(figure.aim or ""),
                _verdict(figure, short=short),
            )
    out = console()
    out.print(table)
    out.print("\nAbsolute numbers behind the ratios, of this run on this machine:")
    for result in results:
        if result.measured and result.measured.facts:
            facts = [f"{value:,.1f} {what}" for what, value in result.measured.facts.items()]
            out.print(f"  {result.bench.name}: {escape(', '.join(facts))}", soft_wrap=True)
