"""``fairlane bench``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from scripts.bench.framework import Bench, Measured
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
    with Steps(quiet=as_json) as steps:
        results = [(each, each.run(steps)) for each in chosen]
    if as_json:
        facts = {each.name: {**m.model_dump(), "ok": m.ok} for each, m in results}
        print(json.dumps({"ok": all(m.ok for _, m in results), "benches": facts}))
    else:
        _show(results)
    raise typer.Exit(0 if all(measured.ok for _, measured in results) else 1)


def _show(results: list[tuple[Bench, Measured]]) -> None:
    table = Table("bench", "ratio", "bound", "", "measured")
    for each, measured in results:
        figures = "\n".join(f"{value:,.1f} {what}" for what, value in measured.figures.items())
        verdict = "ok" if measured.ok else "[red]out of bounds"
        table.add_row(
            f"{each.name}\n{each.shows}",
            f"{measured.ratio:.2f}",
            measured.bound,
            verdict,
            figures,
        )
    Console().print(table)
