"""``fairlane drift``."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final

import boto3
import typer
from botocore.exceptions import BotoCoreError, ClientError
from opensearchpy.exceptions import OpenSearchException
from rich.table import Table

from fairlane_client.commands.output import console
from handlers.aws.search_mapping import mapping_problem
from handlers.jobs.lifecycle.replay_effects import open_effects_of_all
from handlers.jobs.lifecycle.submit import Busy, TooMany, submit
from handlers.jobs.selection.request import accept
from handlers.jobs.words.errors import FairlaneError
from scripts.local import DEFAULT_NAME
from scripts.local.errors import LocalError
from scripts.local.steps import Steps
from scripts.ops.deployment import Deployment, deployment
from scripts.ops.drift import Difference, Drift, Sides, find
from scripts.ops.operator_log import noted
from scripts.ops.search import client_of, schema_of

from .comparing import comparing
from .tenant_option import tenant_text

BATCH: Final = 10_000
"""Ids of one repairing job."""


@comparing()
def drift(
    *,
    tenant: Annotated[
        str,
        typer.Option(
            callback=tenant_text, help="The tenant whose records and documents are compared."
        ),
    ],
    repair: Annotated[
        bool, typer.Option("--repair", help="Submit reindex jobs for the records that differ.")
    ] = False,
    stack: Annotated[
        str | None,
        typer.Option("--stack", help="The CloudFormation stack; a local stack when left out."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="The name of the local stack.")
    ] = DEFAULT_NAME,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare the record table with the search index. Exit status 1: they differ; 2: trouble."""
    here = deployment(stack, name)
    repairs = Repairs(here, tenant)
    try:
        sides = sides_of(here, tenant)
        note = noted(here, "drift --repair", tenant=tenant) if repair else nullcontext()
        with note, Steps(quiet=as_json) as steps:
            with steps.step(f"Comparing {tenant}") as advance:
                seen = find(sides, repairs.add if repair else lambda _: None, advance)
            if repair:
                repairs.submit()
        undone = sum(each.effect.tenant == tenant for each in open_effects_of_all(here.world))
    except (OpenSearchException, FairlaneError, BotoCoreError, ClientError) as error:
        raise LocalError(f"table and index cannot be compared: {error}") from error
    facts = {**facts_of(seen), "effects_undone": undone, "jobs": repairs.jobs, "busy": repairs.busy}
    if as_json:
        print(json.dumps({"tenant": tenant, **facts}))
    else:
        _show(seen, undone, repairs)
    raise typer.Exit(1 if seen.total or repairs.busy else 0)


def sides_of(here: Deployment, tenant: str) -> Sides:
    """Raises LocalError for a deployment without a usable search index, OpenSearchException."""
    settings = here.settings
    client, schema = client_of(settings), schema_of(settings)
    index = settings.effects.search_index
    if problem := mapping_problem(client, index, schema, settings.effects.search_fields):
        raise LocalError(problem)
    return Sides(
        tenant=tenant,
        dynamodb=boto3.client("dynamodb"),
        table=settings.records_table,
        records=here.world.records,
        client=client,
        index=index,
        schema=schema,
    )


@dataclass
class Repairs:
    """Collects what differs into reindex jobs, each on a subject of its own: they change no
    record, so nobody has to wait for them."""

    here: Deployment
    tenant: str
    jobs: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    """Jobs of an earlier repair that still run, in whose way this one would be."""
    _ids: list[str] = field(default_factory=list)
    _number: int = 0

    def add(self, found: Difference) -> None:
        self._ids.append(found.id)
        if len(self._ids) == BATCH:
            self.submit()

    def submit(self) -> None:
        """Raises Transient."""
        if not self._ids:
            return
        world = self.here.world
        subject = f"search-index/{self._number}"
        body = {"operation": "reindex", "subject": subject, "ids": self._ids, "params": {}}
        request = accept(body, world.operations, max_ids=world.limits.max_inline_ids)
        outcome = submit(world, self.tenant, request)
        if isinstance(outcome, TooMany):
            then = "when its limit is raised" if outcome.stopped else "when some have ended"
            raise LocalError(f"{outcome.why}; run --repair again {then}")
        if isinstance(outcome, Busy):
            self.busy.append(outcome.job_id)
        else:
            self.jobs.append(outcome.job.id)
        self._number += 1
        self._ids = []


def facts_of(seen: Drift) -> dict[str, Any]:
    return {
        "records": seen.records,
        "documents": seen.documents,
        **{kind.value: count for kind, count in seen.counts.items()},
        "samples": {
            kind.value: [asdict(one) for one in found] for kind, found in seen.samples.items()
        },
    }


def _show(seen: Drift, undone: int, repairs: Repairs) -> None:
    print(f"{seen.records} records, {seen.documents} documents")
    if seen.total:
        table = Table("", "count", "such as")
        for kind, count in seen.counts.items():
            examples = ", ".join(f"{one.id!r} {_versions(one)}" for one in seen.samples[kind][:3])
            table.add_row(kind.value, str(count), examples)
        console().print(table)
    else:
        print("no drift")
    if undone:
        print(f"{undone} effects of this tenant are not done yet: see `fairlane effects list`")
    for job in repairs.jobs:
        print(f"repairing: job {job}")
    for job in repairs.busy:
        print(f"partly repaired: job {job} of an earlier repair still runs; repeat --repair later")


def _versions(one: Difference) -> str:
    table, index = ("-" if version is None else version for version in (one.table, one.index))
    return f"(table {table}, index {index})"
