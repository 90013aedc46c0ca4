"""``fairlane doctor`` on the roles of the functions."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.ops.doctor.finding import Grade
from scripts.ops.doctor.grants import Places, Rights, allowed, check_grants, needs

PLACES = Places("arn:t:control", "arn:q:small", "arn:q:bulk")


def role(part: str) -> list[dict[str, Any]]:
    return [
        {"Effect": "Allow", "Action": action, "Resource": [resource]}
        for action, resource in needs(PLACES)[part]
    ]


@pytest.mark.parametrize("part", needs(PLACES))
def test_each_right_that_is_gone_is_named(part: str) -> None:
    full = role(part)
    assert [each.grade for each in check_grants([Rights(part, full)], PLACES)] == [Grade.OK]
    for number, (action, resource) in enumerate(needs(PLACES)[part]):
        without = [*full[:number], *full[number + 1 :]]
        [finding] = check_grants([Rights(f"X{part}1", without)], PLACES)
        assert finding.grade is Grade.WRONG
        assert finding.what.endswith(f"lacks {action} on {resource.rpartition(':')[2]}")


@pytest.mark.parametrize(
    ("statement", "holds"),
    [
        ({"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}, True),
        ({"Effect": "Allow", "Action": ["SQS:sendmessage"], "Resource": ["arn:q:*"]}, True),
        ({"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "arn:q:other"}, False),
        ({"Effect": "Allow", "Action": "sqs:ReceiveMessage", "Resource": "*"}, False),
        ({"Effect": "Deny", "Action": "*", "Resource": "*"}, False),
    ],
)
def test_a_statement_covers_what_its_patterns_do(statement: dict[str, Any], *, holds: bool) -> None:
    assert allowed([statement], "sqs:SendMessage", "arn:q:small") is holds


def test_a_denial_wins_unless_it_has_a_condition() -> None:
    allow = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    deny = {"Effect": "Deny", "Action": "sqs:*", "Resource": "*"}
    assert not allowed([allow, deny], "sqs:SendMessage", "arn:q:small")
    assert allowed([allow, {**deny, "Condition": {"Bool": {}}}], "sqs:SendMessage", "arn:q:small")
