"""What ``fairlane dispatches``, ``effects`` and ``events`` have in common: rows of the outbox."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias

import typer

from handlers.jobs.words.errors import FairlaneError
from scripts.local.errors import LocalError

from .rows import print_rows

SHOWN: Final = 100
"""Rows of the table; --json has them all."""

Stack: TypeAlias = Annotated[
    str | None,
    typer.Option("--stack", help="The CloudFormation stack; a local stack when left out."),
]
Name: TypeAlias = Annotated[str, typer.Option("--name", help="The name of the local stack.")]
OfJob: TypeAlias = Annotated[str | None, typer.Option("--job", help="Only those of this job.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

Row: TypeAlias = Mapping[str, Any]


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Raises LocalError, saying what cannot be read and why."""
    try:
        yield
    except FairlaneError as error:
        raise LocalError(f"the {what} cannot be read: {error}") from error


def standing(*, parked: bool, since: int) -> dict[str, str]:
    """What a row says of whether and when it is tried again."""
    at = datetime.fromtimestamp(since / 1000, tz=UTC).isoformat(timespec="seconds")
    return {"state": "parked", "since": at} if parked else {"state": "open", "next": at}


def show(what: str, rows: Sequence[Row], columns: Sequence[str], *, as_json: bool) -> None:
    """Print the rows: all as JSON, or the first as a table of these columns."""
    counts = Counter(row["state"] for row in rows)
    if as_json:
        print(json.dumps({"open": counts["open"], "parked": counts["parked"], what: rows}))
        return
    print(f"{counts['parked']} parked, {counts['open']} open")
    if not rows:
        return
    print_rows(columns, [{name: _cell(row.get(name)) for name in columns} for row in rows[:SHOWN]])
    if len(rows) > SHOWN:
        print(f"and {len(rows) - SHOWN} more; --json shows all")


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(value)
    return "" if value is None else str(value)


def say_replayed(what: str, count: int, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"replayed": count}))
    else:
        print(f"{count} {what} within about a minute")
