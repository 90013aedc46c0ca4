"""How a command calls the API: the options that say which one and as whom, and what it makes of
refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from scripts.client import ApiProblem, Client, ClientError
from scripts.local.stack import LocalStack


def header(text: str | None) -> str | None:
    """Refuses what cannot be sent in a header; without showing it, since it can be a token."""
    if text is not None and not (text.isascii() and text.isprintable()):
        raise typer.BadParameter("it can only be printable ASCII, without line ends")
    return text


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise typer.BadParameter(f"{text!r} is not UTF-8") from error
    return text


Url: TypeAlias = Annotated[
    str | None,
    typer.Option("--url", envvar="FAIRLANE_URL", help="The API; by default the local stack's."),
]
Token: TypeAlias = Annotated[
    str | None,
    typer.Option("--token", envvar="FAIRLANE_TOKEN", callback=header, help="Whose jobs, verified."),
]
Tenant: TypeAlias = Annotated[
    str | None,
    typer.Option("--tenant", envvar="FAIRLANE_TENANT", help="Locally, instead of a token."),
]
Name: TypeAlias = Annotated[str, typer.Option("--name", help="Which local stack.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="As JSON, one object a line.")]
JobId: TypeAlias = Annotated[str, typer.Argument(callback=_text, help="The job's id.")]


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
