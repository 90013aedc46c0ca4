"""``fairlane jobs submit``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from ..requests import NewJob
from ..words import OnConflict
from .calling import AsJson, Name, Tenant, Token, Url, calling, header
from .output import say
from .pairs import json_object, labels, parameters
from .selecting import selected, submitted
from .showing import Timeout, follow, show, show_preview


def submit(  # noqa: PLR0913  the options of a command are its parameters
    *,
    operation: Annotated[str, typer.Option(help="Such as set_fields or adjust_number.")],
    subject: Annotated[str, typer.Option(help="What no other job may work on meanwhile.")],
    param: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="NAME=VALUE", help="A parameter; its value is JSON."),
    ] = None,
    params: Annotated[str | None, typer.Option(help="All parameters, as a JSON object.")] = None,
    ids: Annotated[list[str] | None, typer.Option("--id", help="A record; repeat it.")] = None,
    ids_file: Annotated[
        str | None,
        typer.Option(
            "--ids-file",
            help="Records: an id a line (- is stdin), .jsonl or .csv, both also .gz. What does not "
            "fit a request is uploaded.",
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="With the ids: of a .csv, or a field of .jsonl objects.")
    ] = None,
    upload_id: Annotated[
        str | None, typer.Option("--upload-id", help="Records: a file that was uploaded before.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help='Records that match, such as {"all": [...]}.')
    ] = None,
    traversal: Annotated[
        str | None, typer.Option(help="Of a query: auto, live or snapshot.")
    ] = None,
    tolerated_failure_percent: Annotated[
        int | None,
        typer.Option(
            "--tolerated-failure-percent", help="With more failed records than that, it failed."
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=VALUE", help="To find it again by; repeat it."),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Say what it would do; create nothing.")
    ] = False,
    notify: Annotated[
        str | None, typer.Option(help="An https address to tell when it starts and ends.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            "--idempotency-key", callback=header, help="Sent again, it brings the same job."
        ),
    ] = None,
    on_conflict: Annotated[
        OnConflict | None,
        typer.Option("--on-conflict", help="When another job has the subject: refuse, or show it."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until it has ended; the exit status is that of watch.")
    ] = False,
    timeout: Timeout = None,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Create a job."""
    job = NewJob(
        operation=operation,
        subject=subject,
        params=parameters(param or [], params),
        upload_id=upload_id,
        query=None if query is None else json_object("--query", query),
        traversal=traversal,
        tolerated_failure_percent=tolerated_failure_percent,
        labels=labels(label or []) or None,
        notify=None if notify is None else {"url": notify},
    )
    with (
        calling(url, token, tenant, name, as_json=as_json) as client,
        selected(ids_file, column, ids or []) as records,
    ):
        if validate_only:
            show_preview(submitted(client, job, records, client.preview), as_json=as_json)
            return
        send = partial(client.submit, idempotency_key=idempotency_key, on_conflict=on_conflict)
        made = submitted(client, job, records, send)
        if made.existing:
            say(f"nothing was created: job {made.id} has the subject")
        if wait:
            follow(client, made.id, timeout, as_json=as_json)
        else:
            show(made, as_json=as_json)
