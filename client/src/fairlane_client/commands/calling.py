"""How a command calls the API: the options that say which one and as whom, and what becomes of
errors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final, Protocol, TypeAlias

import typer

from ..client import Client
from ..problems import ApiProblem, BadAddress, ClientError, Unreachable
from ..transport import Token as TokenSource
from .errors import CommandError
from .exits import Exit, of_error
from .ids import checked

LOCAL: Final = "fairlane.local"
"""The entry point of a distribution that has local stacks: a ``FindLocal``."""


class FindLocal(Protocol):
    def __call__(self, name: str | None) -> Local:
        """The local stack of that name, or the usual one. Raises CommandError when it is not up."""


class Local(Protocol):
    @property
    def url(self) -> str: ...
    def token(self, tenant: str) -> str:
        """A token of the tenant, as of now."""


def header(text: str | None) -> str | None:
    """Refuses what cannot be sent in a header; without showing it, since it can be a token."""
    if text is not None and not (text.isascii() and text.isprintable()):
        raise typer.BadParameter("must be printable ASCII without line ends")
    return text


Url: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--url", envvar="FAIRLANE_URL", help="The API's address; the local stack's when left out."
    ),
]
Token: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--token", envvar="FAIRLANE_TOKEN", callback=header, help="The bearer token for the API."
    ),
]
Tenant: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tenant",
        envvar="FAIRLANE_TENANT",
        help="On a local stack: the tenant, in place of a token.",
    ),
]
Name: TypeAlias = Annotated[str | None, typer.Option("--name", help="The name of the local stack.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
JobId: TypeAlias = Annotated[
    str, typer.Argument(callback=checked, help="The job's id, or its first characters.")
]


@dataclass(frozen=True)
class Where:
    """Which API, and as whom."""

    url: str | None
    token: str | None
    tenant: str | None
    name: str | None


@contextmanager
def calling(
    url: str | None, token: str | None, tenant: str | None, name: str | None, *, as_json: bool
) -> Iterator[Client]:
    """A client; an error of its calls is printed, with the exit status that ``exits`` gives it."""
    client = _client(Where(url, token, tenant, name))
    try:
        yield client
    except ClientError as error:
        described = _described(error)
        if as_json:
            print(json.dumps({"error": described}))
        else:
            for what, value in described.items():
                typer.secho(f"{what}: {value}", fg="red", err=True)
        raise typer.Exit(of_error(error)) from error
    finally:
        client.close()


def _client(where: Where) -> Client:
    url, token = _target(where)
    try:
        return Client(url, token)
    except BadAddress as error:
        raise typer.BadParameter(str(error), param_hint="--url") from error


def _target(where: Where) -> tuple[str, TokenSource]:
    if where.url is not None:
        if where.token is None:
            raise typer.BadParameter("the API needs a token: set --token or FAIRLANE_TOKEN")
        return where.url, where.token
    local, tenant = _local(where.name), where.tenant
    if where.token is not None:
        return local.url, where.token
    if not tenant:
        raise typer.BadParameter(
            "no tenant is named: set --tenant, such as --tenant europe, or --token"
        )
    return local.url, lambda: local.token(tenant)


def _local(name: str | None) -> Local:
    from importlib.metadata import entry_points

    nowhere = "no API is named: set --url or FAIRLANE_URL, and --token or FAIRLANE_TOKEN"
    for point in entry_points(group=LOCAL):
        try:
            find: FindLocal = point.load()
        except ModuleNotFoundError as error:
            why = (
                f"{nowhere} (a local stack needs `fairlane[local]`: {error.name} is not installed)"
            )
            raise CommandError(why) from error
        return find(name)
    raise typer.BadParameter(nowhere)


def _described(error: ClientError) -> Mapping[str, object]:
    if not isinstance(error, ApiProblem):
        name = Unreachable if isinstance(error, Unreachable) else type(error)
        return {"code": name.__name__.lower(), "detail": str(error)}
    described = {
        "status": error.status,
        "code": error.code,
        "field": error.field,
        "detail": error.detail,
        "active_job": error.active_job_id,
        "request_id": error.request_id,
    }
    return {what: value for what, value in described.items() if value is not None}


def ended_with(status: Exit) -> None:
    """Raises Exit for every status but 0."""
    if status is not Exit.WELL:
        raise typer.Exit(status)
