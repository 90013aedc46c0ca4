"""``fairlane jobs submit|get|list|watch|cancel|pause|resume|retry``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console

from handlers.jobs.states import State
from scripts.client import ApiProblem, Client, ClientError, JobPreview, JobView, NewJob
from scripts.local.stack import LocalStack
from scripts.local.state import DEFAULT_NAME

from . import job_tables
from .selecting import selected

app = typer.Typer(help="Jobs of one tenant, through the API.", no_args_is_help=True)

Url: TypeAlias = Annotated[
    str | None,
    typer.Option("--url", envvar="FAIRLANE_URL", help="The API; by default the local stack's."),
]
Token: TypeAlias = Annotated[
    str | None, typer.Option("--token", envvar="FAIRLANE_TOKEN", help="Whose jobs, verified.")
]
Tenant: TypeAlias = Annotated[
    str | None,
    typer.Option("--tenant", envvar="FAIRLANE_TENANT", help="Locally, instead of a token."),
]
Name: TypeAlias = Annotated[str, typer.Option("--name", help="Which local stack.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="As JSON, one object a line.")]
JobId: TypeAlias = Annotated[str, typer.Argument(help="The job's id.")]


@app.command()
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
            help="Records: an id a line (- is stdin), .jsonl or .csv, both also .gz. "
            "A large file is uploaded.",
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="With the ids: of a .csv, or a field of .jsonl objects.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help='Records that match, such as {"all": [...]}.')
    ] = None,
    traversal: Annotated[
        str | None, typer.Option(help="Of a query: auto, live or snapshot.")
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Say what it would do; create nothing.")
    ] = False,
    notify: Annotated[
        str | None, typer.Option(help="An https address to tell when it starts and ends.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", help="Sent again, it brings the same job.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it has ended.")] = False,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Create a job."""
    parameters = _parameters(param or [], params)
    filter_ = None if query is None else _object("--query", query)
    with calling(url, token, tenant, name, as_json=as_json) as client:
        chosen = selected(client, ids_file, column, ids or [])
        job = NewJob(
            operation=operation,
            subject=subject,
            params=parameters,
            ids=chosen.ids,
            upload_id=chosen.upload_id,
            query=filter_,
            notify=None if notify is None else {"url": notify},
            traversal=traversal,
        )
        if validate_only:
            _show_preview(client.preview(job), as_json=as_json)
            return
        created = client.submit(job, idempotency_key=idempotency_key)
        if wait:
            _follow(client, created.id, as_json=as_json)
        else:
            _show(created, as_json=as_json)


@app.command()
def get(
    job_id: JobId,
    *,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Show a job."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        _show(client.get(job_id), as_json=as_json)


@app.command("list")
def list_jobs(
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """List the newest jobs."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        jobs = list(client.jobs(limit))
        if as_json:
            for job in jobs:
                print(json.dumps(job.as_json()))
        else:
            Console().print(job_tables.many(jobs))


@app.command()
def watch(
    job_id: JobId,
    *,
    url: Url = None,
    token: Token = None,
    tenant: Tenant = None,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Follow a job until it has ended. Exit status 1 when it did not succeed."""
    with calling(url, token, tenant, name, as_json=as_json) as client:
        _follow(client, job_id, as_json=as_json)


def _verb(act: Callable[[Client, str], JobView], what: str) -> None:
    """Register ``fairlane jobs <verb>``: these commands differ only in the call."""

    def command(
        job_id: JobId,
        *,
        url: Url = None,
        token: Token = None,
        tenant: Tenant = None,
        name: Name = DEFAULT_NAME,
        as_json: AsJson = False,
    ) -> None:
        with calling(url, token, tenant, name, as_json=as_json) as client:
            _show(act(client, job_id), as_json=as_json)

    app.command(act.__name__, help=what)(command)


_verb(Client.cancel, "Cancel a job; a running one stops at its next chunk.")
_verb(Client.pause, "Pause a job; a running one stops at its next chunk.")
_verb(Client.resume, "Resume a paused job.")
_verb(Client.retry, "Run a failed job again, from where it stopped.")


# --- shared -----------------------------------------------------------------------------------


@contextmanager
def calling(
    url: str | None, token: str | None, tenant: str | None, name: str, *, as_json: bool
) -> Iterator[Client]:
    """A client; what the API refuses is printed, with exit status 1."""
    client = _client(url, token, tenant, name)
    try:
        yield client
    except ClientError as error:
        if as_json:
            print(json.dumps({"error": _described(error)}))
        else:
            console = Console(stderr=True)
            for what, value in _described(error).items():
                console.print(f"{what}: {value}", style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from error
    finally:
        client.close()


def _client(url: str | None, token: str | None, tenant: str | None, name: str) -> Client:
    if url is not None:
        if token is None:
            raise typer.BadParameter("an API needs a token: --token or FAIRLANE_TOKEN")
        return Client(url, token)
    stack = LocalStack(name).attach()
    if token is None:
        if tenant is None:
            raise typer.BadParameter("whose jobs? --tenant, such as --tenant europe, or --token")
        token = stack.issuer.token(tenant)
    return Client(stack.api.url, token)


def _described(error: ClientError) -> dict[str, object]:
    if not isinstance(error, ApiProblem):
        return {"code": type(error).__name__.lower(), "detail": str(error)}
    described = {
        "status": error.status,
        "code": error.code,
        "field": error.field,
        "detail": error.detail,
        "active_job": error.active_job_id,
    }
    return {what: value for what, value in described.items() if value is not None}


def _follow(client: Client, job_id: str, *, as_json: bool) -> None:
    job: JobView | None = None
    if as_json:
        for seen in client.watch(job_id):
            if seen != job:
                print(json.dumps(seen.as_json()), flush=True)
            job = seen
    else:
        with job_tables.Bar() as bar:
            for seen in client.watch(job_id):
                bar.show(seen)
                job = seen
    if job is None or job.state is not State.SUCCEEDED:
        raise typer.Exit(1)


def _show(job: JobView, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(job.as_json()))
    else:
        Console().print(job_tables.one(job))


def _show_preview(preview: JobPreview, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(preview.model_dump(mode="json")))
    else:
        Console().print(job_tables.preview(preview))


def _parameters(pairs: list[str], whole: str | None) -> dict[str, Any]:
    """Numbers stay exact."""
    parameters = {} if whole is None else _object("--params", whole)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"--param {pair!r} is not NAME=VALUE")
        parameters[name] = _value(f"--param {name}", value)
    return parameters


def _object(option: str, text: str) -> dict[str, Any]:
    value = _value(option, text)
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{option} is not a JSON object")
    return value


def _value(option: str, text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise typer.BadParameter(
            f'{option}: {text!r} is not JSON ({error}). A string is written "with quotes"'
        ) from error
