"""``fairlane token``."""

from __future__ import annotations

from typing import Annotated

import typer

from scripts.local import DEFAULT_NAME
from scripts.local.identity import SCOPES
from scripts.local.target import target


def token(
    tenant: Annotated[str, typer.Option(help="Whose token; its jobs and records only.")],
    expires: Annotated[int, typer.Option(help="Seconds until it runs out.")] = 3600,
    scope: Annotated[
        list[str] | None, typer.Option(help="What it allows; repeat for several. All by default.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Of which local stack.")] = DEFAULT_NAME,
) -> None:
    """Print a token for a tenant, signed by the local stack's development issuer."""
    issuer = target(name).issuer
    print(issuer.token(tenant, expires_in=expires, scopes=scope or SCOPES))
