"""The check from its first row to its last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from fairlane_client import Client, Signer
from scripts.ops.deployment import Deployment
from scripts.ops.doctor import reading
from scripts.ops.doctor.finding import Grade
from scripts.ops.doctor.stack import check_stack
from scripts.ops.firewall import Identify

from .jobs import Trial
from .readings import Readings, only_on_aws
from .rows import Row, judged, told

STACK: Final = "the stack is as its settings say"
Caller: TypeAlias = str | Signer
"""A token, or what signs."""


@dataclass(frozen=True)
class Place:
    here: Deployment
    stack: str
    """Its name in CloudFormation."""
    url: str
    """The API's, with its stage."""
    caller: Caller
    local: bool


def check(place: Place, *, patience: float, items: int, own_records: bool) -> list[Row]:
    """patience: seconds for one job to end. items: ids of a bulk job. own_records: also put
    records into the table, to be changed and deleted by jobs. Raises ClientError, BotoCoreError:
    the stack cannot be read."""
    start = datetime.now(UTC)
    rows: list[Row] = []
    resources = reading.resources_of(place.stack)
    readings = Readings(place.here.outputs, resources, rows)
    with told(STACK, rows):
        rows.append(_stack(place, resources))
    with Client(place.url, place.caller) as client:
        trial = Trial(client, place.here, patience, items, rows)
        try:
            trial.small()
            trial.bulk((lambda: None) if place.local else readings.look_at_tasks)
            trial.cancel()
            trial.redriven()
            if own_records:
                trial.own_records()
        finally:
            trial.end()
        if place.local:
            return [*rows, *only_on_aws()]
        readings.protection()
        readings.scaling()
        readings.firewall(client.url, identified(place.caller))
        readings.fair_queue(start)
    return rows


def identified(caller: Caller) -> Identify:
    """The headers of a request that the client does not send."""
    if isinstance(caller, Signer):
        return caller.headers
    bearer = {"authorization": f"Bearer {caller}"}
    return lambda *_: bearer


def _stack(place: Place, resources: reading.Of) -> Row:
    """What `fairlane doctor` finds wrong with the stack itself."""
    seen = reading.read(resources, place.here.outputs, service=not place.local)
    findings = list(check_stack(seen))
    wrong = [each.what for each in findings if each.grade is Grade.WRONG]
    said = "; ".join(wrong) or f"{len(findings)} checks of `fairlane doctor`"
    return judged(STACK, said, ok=not wrong)
