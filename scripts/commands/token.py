"""``fairlane token``."""

from __future__ import annotations

from typing import Annotated

import typer

from scripts.local import DEFAULT_NAME
from scripts.local.identity import SCOPES
from scripts.local.target import target

from .tenant_option import tenant_text


def token(
    tenant: Annotated[
        str, typer.Option(callback=tenant_text, help="The tenant that the token stands for.")
    ],
    expires: Annotated[int, typer.Option(help="Seconds until the token expires.")] = 3600,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="A scope of the token; repeat it. All scopes when left out."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="The name of the local stack.")
    ] = DEFAULT_NAME,
) -> None:
    """Print a token for a tenant, signed by the local stack's issuer."""
    issuer = target(name).issuer
    print(issuer.token(tenant, expires_in=expires, scopes=scope or SCOPES))
