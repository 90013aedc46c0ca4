"""``fairlane jobs items|report``: what became of single records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ..client import Client
from ..downloads import fetch
from ..listing import write
from ..models import ReportView
from ..problems import ReportTooLarge
from ..words import Outcome, ReportFormat, ReportOf
from . import ids
from .calling import AsJson, JobId, Name, Tenant, Token, Url, calling
from .files import check_target
from .output import console

MAX_PAGE: Final = 1000
TABLE: Final = 500
"""Rows of one table: a longer list is several, so that the first is shown while others are read."""


def items(
    job_id: JobId,
    *,
    outcome: Annotated[
        list[Outcome] | None,
        typer.Option(help="List records with this outcome; repeat it. All outcomes when left out."),
    ] = None,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """List the records that failed, were skipped or were refused outside, with the reasons."""
    outcomes = list(dict.fromkeys(outcome or Outcome))
    with calling(url, token, tenant, name, as_json=as_json) as client:
        rows = _rows(client, ids.whole(client, job_id), outcomes)
        if as_json:
            for row in rows:
                print(json.dumps(row))
            return
        some = False
        while block := list(islice(rows, TABLE)):
            from . import tables

            console().print(tables.items(block))
            some = True
        if not some:
            print(f"no record: {', '.join(outcomes)}")


def report(  # noqa: PLR0913  the options of a command are its parameters
    job_id: JobId,
    *,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Download the report to this file, which is replaced."),
    ] = None,
    form: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="The format; by default that of FILE's ending, else csv."),
    ] = None,
    outcome: Annotated[
        ReportOf, typer.Option(help="Report records with this outcome.")
    ] = ReportOf.ALL,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Write a file of the records that failed, were skipped or were refused outside. Print its
    address, or download it. With --to, a report that is too large for one request is written from
    pages."""
    if to is not None:
        check_target("--to", to)
    with calling(url, token, tenant, name, as_json=as_json) as client:
        job, written = ids.whole(client, job_id), form or _form(to)
        try:
            made = client.report(job, form=written.value, outcome=outcome.value)
        except ReportTooLarge:
            if to is None:
                raise
            _write(client, job, to, written, outcome, as_json=as_json)
            return
        if to is not None:
            _download(made, to)
    _show(made, to, as_json=as_json)


# --- items ------------------------------------------------------------------------------------


def _rows(client: Client, job_id: str, outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    for outcome in outcomes:
        for item in client.items(job_id, outcome.value, limit=MAX_PAGE):
            yield {"outcome": outcome.value, **item.as_json()}


# --- report -----------------------------------------------------------------------------------


def _form(to: Path | None) -> ReportFormat:
    named = "" if to is None else to.suffix.lower().removeprefix(".")
    return ReportFormat.JSONL if named == ReportFormat.JSONL.value else ReportFormat.CSV


def _download(made: ReportView, to: Path) -> None:
    from .bar import bytes_bar

    with bytes_bar("downloading", made.bytes) as got:
        try:
            fetch(made, to, got=got)
        except OSError as error:
            raise typer.BadParameter(f"--to {to}: {error}") from error


def _write(
    client: Client,
    job_id: str,
    to: Path,
    form: ReportFormat,
    of: ReportOf,
    *,
    as_json: bool,
) -> None:
    """The same file, from pages."""
    outcomes = list(Outcome) if of is ReportOf.ALL else [Outcome(of.value)]
    rows = (
        (outcome.value, item)
        for outcome in outcomes
        for item in client.items(job_id, outcome.value, limit=MAX_PAGE)
    )
    try:
        count = write(rows, to, form)
    except OSError as error:
        raise typer.BadParameter(f"--to {to}: {error}") from error
    if as_json:
        facts = {"format": form.value, "outcome": of.value, "count": count}
        print(json.dumps({**facts, "bytes": to.stat().st_size, "file": str(to)}))
    else:
        print(f"{count} records, {to.stat().st_size} bytes, in {to}")


def _show(made: ReportView, to: Path | None, *, as_json: bool) -> None:
    if as_json:
        file = {} if to is None else {"file": str(to)}
        print(json.dumps({**made.as_json(), **file}))
        return
    where = f"good until {made.expires_at:%H:%M:%S %Z}" if to is None else f"in {to}"
    print(f"{made.count} records, {made.bytes} bytes, {where}")
    if not made.complete:
        print("the job has not ended: the report holds its records so far")
    if to is None:
        print(made.url)
