"""``fairlane aws-check``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Final

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.table import Table
from rich.text import Text

from fairlane_client import BadAddress
from fairlane_client.commands.calling import Token
from fairlane_client.commands.output import console
from handlers.jobs.words.errors import FairlaneError
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.ops.deployment import Deployment, attached, deployment
from scripts.ops.doctor.reading import resources_of
from scripts.ops.on_aws.caller import signer, takes_signatures
from scripts.ops.on_aws.rows import Row, Verdict
from scripts.ops.on_aws.run import Caller, Place, check

from .comparing import DIFFERENT, comparing
from .outbox import AsJson, Name, Stack

TENANT: Final = "aws-check"
"""Its tenant on a local stack."""
MARKS: Final = {
    Verdict.HELD: Text("✓", "green"),
    Verdict.BROKEN: Text("✗", "red"),
    Verdict.UNCHECKED: Text("?", "yellow"),
    Verdict.ON_AWS: Text("·", "dim"),
}


@comparing()
def aws_check(
    *,
    stack: Stack = None,
    token: Token = None,
    role: Annotated[
        str | None,
        typer.Option(
            "--role",
            help="Where callers sign with IAM: the ARN of the role to call as. The stack's "
            "DemoRole when left out, or your own credentials where it has none.",
        ),
    ] = None,
    items: Annotated[
        int, typer.Option("--items", min=1, max=50_000, help="Ids of each bulk job.")
    ] = 5_000,
    patience: Annotated[
        float, typer.Option("--patience", min=0, help="Seconds for one job to end.")
    ] = 600,
    own_records: Annotated[
        bool,
        typer.Option(
            "--records",
            help="Also put three records into the record table, and let jobs change and delete "
            "them. Sinks hear of them.",
        ),
    ] = False,
    name: Name = DEFAULT_NAME,
    as_json: AsJson = False,
) -> None:
    """Run harmless jobs on a stack and say what held. Exit status 1: something did not; 2: trouble.

    Creates jobs of both lanes, an upload, a report, a cancel and a redrive, and reads fair-queue
    metrics, web ACL, task protection and scaling. The jobs' ids name no records, so nothing is
    changed. On a local stack it marks what only AWS can show."""
    try:
        place = _place(stack, name, token, role)
        rows = check(place, patience=patience, items=items, own_records=own_records)
    except (ClientError, BotoCoreError, FairlaneError, BadAddress) as error:
        raise LocalError(f"the stack cannot be checked: {error}") from error
    counts = Counter(row.verdict for row in rows)
    if as_json:
        print(json.dumps({"held": not counts[Verdict.BROKEN], "rows": [*map(asdict, rows)]}))
    else:
        _show(rows)
        print(", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]))
    raise typer.Exit(DIFFERENT if counts[Verdict.BROKEN] else 0)


def _place(stack: str | None, name: str, token: str | None, role: str | None) -> Place:
    here = deployment(stack, name)
    if stack is None:
        local = attached(name)
        made = token or local.issuer.token(TENANT)
        return Place(here, local.deployed.stack, local.api.url, made, local=True)
    caller = token or _signer(stack, here, role)
    return Place(here, stack, here.outputs["ApiUrl"].rstrip("/"), caller, local=False)


def _signer(stack: str, here: Deployment, role: str | None) -> Caller:
    if not takes_signatures(resources_of(stack)):
        raise typer.BadParameter(
            f"the stack {stack!r} takes tokens: set --token or FAIRLANE_TOKEN to one of a tenant "
            "of your own"
        )
    return signer(role or here.outputs.get("DemoRole"))


def _show(rows: Sequence[Row]) -> None:
    table = Table("", "what", "", "saw", box=None)
    for row in rows:
        verdict = Text(row.verdict, "dim")
        table.add_row(MARKS[row.verdict], Text(row.what), verdict, Text(row.saw))
    console().print(table)
