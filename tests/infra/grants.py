"""The rights of each part, as a synthesised template gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.infra.synthesis import Properties, Synthesised, referred

ROLES = {
    "SmallLane": "SmallLaneRole",
    "BulkLane": "BulkLaneTaskTaskRole",
    "Api": "ApiRole",
    "Recovery": "RecoveryRole",
}


def statements(stack: Synthesised, role: str) -> Iterator[Properties]:
    for policy in stack.of("IAM::Policy").values():
        if any(referred(attached).startswith(role) for attached in policy["Roles"]):
            yield from policy["PolicyDocument"]["Statement"]


def actions_on(stack: Synthesised, who: str, resource: str) -> set[str]:
    """Actions a part may take on the resource whose logical id starts so (itself, not parts)."""
    return {
        str(action)
        for statement in statements(stack, ROLES[who])
        if any(_is(target, resource) for target in listed(statement["Resource"]))
        for action in listed(statement["Action"])
    }


def listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _is(target: object, resource: str) -> bool:
    return isinstance(target, dict) and (
        target.get("Fn::GetAtt", [""])[0].startswith(resource)
        or any(
            isinstance(part, dict) and part.get("Fn::GetAtt", [""])[0].startswith(resource)
            for part in target.get("Fn::Join", ["", []])[1][:1]
        )
    )


DOMAIN: Final = "arn:aws:es:eu-west-1:123456789012:domain/products"
SEARCH: Final = {"search_url": "https://search.example", "search_domain_arn": DOMAIN}
NAT: Final = {"network": "nat"}


def rights(stack: Synthesised, who: str, service: str) -> list[Any]:
    """(actions, resources) of the statements that are about the service."""
    return [
        (statement["Action"], statement["Resource"])
        for statement in statements(stack, ROLES[who])
        if str(statement["Action"]).strip("['").startswith(service)
    ]
