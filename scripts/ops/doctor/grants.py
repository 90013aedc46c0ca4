"""Whether the roles of the functions have the rights that their work takes, as far as their own
policies tell: a boundary, an organisation's policy or a resource's own is not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from .finding import Finding, ok, wrong

QUERY: Final = "dynamodb:Query"
TABLE: Final = (
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:ConditionCheckItem",
)
TAKE: Final = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
SEND: Final = ("sqs:SendMessage",)


@dataclass(frozen=True)
class Rights:
    """What a role's own policies say."""

    part: str
    """The logical id of the function that has the role."""
    statements: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Places:
    """ARNs that the functions work with."""

    control: str
    small_queue: str
    bulk_queue: str


def needs(places: Places) -> Mapping[str, Sequence[tuple[str, str]]]:
    """(action, resource) by a part of the function's logical id."""

    def queries(*indexes: str) -> list[tuple[str, str]]:
        return [(QUERY, f"{places.control}/index/{index}") for index in indexes]

    table = [(action, places.control) for action in TABLE]
    send = [(action, queue) for action in SEND for queue in (places.small_queue, places.bulk_queue)]
    take = [(action, places.small_queue) for action in TAKE]
    return {
        "ApiFunction": [*table, (QUERY, places.control), *queries("by_tenant", "held"), *send],
        "SmallLane": [*table, *queries("held"), *send, *take],
        "RecoveryFunction": [*table, *queries("due", "held"), *send],
    }


def check_grants(rights: Sequence[Rights], places: Places) -> Iterator[Finding]:
    missing = False
    for part, needed in needs(places).items():
        for role in rights:
            if part not in role.part:
                continue
            lacks = [
                f"{action} on {resource.rpartition(':')[2]}"
                for action, resource in needed
                if not allowed(role.statements, action, resource)
            ]
            if lacks:
                missing = True
                yield wrong(
                    "grants",
                    f"the role of {role.part} lacks {', '.join(lacks)}",
                    "SmallDenied in docs/runbook.md",
                )
    if rights and not missing:
        yield ok("grants", "the functions' roles allow what the table and the queues take")


def allowed(statements: Sequence[Mapping[str, Any]], action: str, resource: str) -> bool:
    """Allowed by one of the statements and denied by none. A condition is taken to hold where it
    allows, and not to hold where it denies."""
    covering = [each for each in statements if _covers(each, action, resource)]
    if any(each["Effect"] == "Deny" and not each.get("Condition") for each in covering):
        return False
    return any(each["Effect"] == "Allow" for each in covering)


def _covers(statement: Mapping[str, Any], action: str, resource: str) -> bool:
    actions, resources = _texts(statement.get("Action")), _texts(statement.get("Resource"))
    return any(fnmatchcase(action.lower(), each.lower()) for each in actions) and any(
        fnmatchcase(resource, each) for each in resources
    )


def _texts(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    return [str(each) for each in value] if isinstance(value, list) else []
