"""``fairlane jobs submit``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from ..requests import NewJob
from ..words import OnConflict
from .calling import AsJson, Name, Tenant, Token, Url, calling, header
from .lookup import forms, with_tables
from .output import say
from .pairs import json_object, labels, parameters
from .selecting import selected, submitted
from .showing import Timeout, follow, show, show_preview


def submit(  # noqa: PLR0913  the options of a command are its parameters
    *,
    operation: Annotated[
        str, typer.Option(help="The operation, such as set_fields or adjust_number.")
    ],
    subject: Annotated[
        str,
        typer.Option(
            help="The name of what the job works on; no other job may work on it meanwhile."
        ),
    ],
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="A parameter; its value is JSON."),
    ] = None,
    params: Annotated[str | None, typer.Option(help="All parameters, as a JSON object.")] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME=FILE",
            help="A parameter that is a lookup table: a .jsonl or .csv, also .gz, to upload.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key", metavar="NAME=COLUMN", help="The column of that table's file with the keys."
        ),
    ] = None,
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="The id of a record; repeat it for several.")
    ] = None,
    ids_file: Annotated[
        str | None,
        typer.Option(
            "--ids-file",
            help="A file of record ids: one id a line (- reads standard input), or .jsonl or .csv, "
            "also .gz. The command uploads ids that do not fit into a request.",
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            help="The column of a .csv, or the field of .jsonl objects, that holds the ids."
        ),
    ] = None,
    upload_id: Annotated[
        str | None, typer.Option("--upload-id", help="The id of a file that was uploaded before.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help='A filter that selects the records, such as {"all": [...]}.')
    ] = None,
    traversal: Annotated[
        str | None,
        typer.Option(help="How the job walks the records of a query: auto, live or snapshot."),
    ] = None,
    tolerated_failure_percent: Annotated[
        int | None,
        typer.Option(
            "--tolerated-failure-percent",
            help="The job fails when a larger share of its records has failed.",
        ),
    ] = None,
    stop_when_hopeless: Annotated[
        bool | None,
        typer.Option(
            "--stop-when-hopeless/--try-all",
            help="Whether the job ends as soon as too many of its records have failed.",
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="NAME=VALUE", help="A label of the job; repeat it for several."
        ),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Show a preview of the job and create nothing.")
    ] = False,
    notify: Annotated[
        str | None, typer.Option(help="An https address that gets the events of the job.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key",
            callback=header,
            help="A request sent again with the same key gets the same job.",
        ),
    ] = None,
    on_conflict: Annotated[
        OnConflict | None,
        typer.Option(
            "--on-conflict", help="When another job holds the subject: refuse, or show that job."
        ),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Wait until the job has ended; the exit status is that of watch."
        ),
    ] = False,
    timeout: Timeout = None,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Create a job."""
    others = parameters(param or [], params)
    tables = forms(table or [], key or [], others)
    job = NewJob(
        operation=operation,
        subject=subject,
        params=others,
        upload_id=upload_id,
        query=None if query is None else json_object("--query", query),
        traversal=traversal,
        tolerated_failure_percent=tolerated_failure_percent,
        stop_when_hopeless=stop_when_hopeless,
        labels=labels(label or []) or None,
        notify=None if notify is None else {"url": notify},
    )
    with (
        calling(url, token, tenant, name, as_json=as_json) as client,
        selected(ids_file, column, ids or []) as records,
    ):
        job = with_tables(client, job, tables)
        if validate_only:
            show_preview(submitted(client, job, records, client.preview), as_json=as_json)
            return
        send = partial(client.submit, idempotency_key=idempotency_key, on_conflict=on_conflict)
        made = submitted(client, job, records, send)
        if made.existing:
            say(f"nothing was created: job {made.id} holds the subject")
        if wait:
            follow(client, made.id, timeout, as_json=as_json)
        else:
            show(made, as_json=as_json)
