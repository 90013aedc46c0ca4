"""``fairlane payload-budget``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fairlane_client.commands.output import console
from handlers.jobs.selection.request import BadRequest
from handlers.jobs.words.limits import MAX_BODY_BYTES, MAX_ID_BYTES, UUID_CHARS, Limits
from infra.parts import WafSettings
from scripts.budget.budget import Budget, budget
from scripts.budget.ids import like, of_length

from .comparing import comparing

KIB = 1024


@comparing()
def payload_budget(
    *,
    id_length: Annotated[
        int | None,
        typer.Option(
            "--id-length", min=1, max=MAX_ID_BYTES, help="Characters of an ASCII id. [default: 36]"
        ),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            "--sample", exists=True, dir_okay=False, help="A file of ids like yours, one a line."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Build the largest request that is accepted and measure it in every layer.

    The limits are those of a deployment by default. Exit status 1: the request is too large for a
    layer; 2: trouble.
    """
    if id_length is not None and sample is not None:
        raise typer.BadParameter("set either --id-length or --sample")
    ids = _like_file(sample) if sample is not None else of_length(id_length or UUID_CHARS)
    try:
        found = budget(ids, limits=Limits(), inspected=WafSettings().inspect_kb * KIB)
    except BadRequest as error:
        raise typer.BadParameter(f"no request takes such ids: {error.field} {error}") from error
    if as_json:
        print(
            json.dumps(
                {"ok": found.ok, "body_limit": MAX_BODY_BYTES, **found.model_dump(mode="json")}
            )
        )
    else:
        _show(found)
    raise typer.Exit(0 if found.ok else 1)


def _like_file(path: Path) -> Iterator[str]:
    try:
        ids = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{path} is not UTF-8") from error
    if not ids:
        raise typer.BadParameter(f"{path} holds no id")
    return like(ids)


def _show(found: Budget) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("layer", no_wrap=True)
    for name in ("limit", "largest", "ids that fit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("measured")
    for row in found.rows:
        used = "not refused" if row.used is None else f"{row.used:,}"
        colour = "" if row.ok else "[red]"
        fit = "any number" if row.ids_fit is None else f"{row.ids_fit:,}"
        table.add_row(row.layer, f"{row.limit:,}", colour + used, fit, row.of)
    out = console()
    out.print(table)
    out.print(
        f"\nSizes are in bytes. The largest accepted request holds {found.max_ids:,} such ids of "
        f"{found.id_bytes:g} bytes.\nA request with one more is answered with 413; send more ids "
        "as a file, by POST /v1/uploads.\n--json names the source of each limit.",
        highlight=False,
    )
