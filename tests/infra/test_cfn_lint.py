"""cfn-lint over the templates: what CloudFormation would refuse, found without an account."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from .synthesis import Synthesised

STANDING: Final = {
    "W3005": "The CDK names a dependency that a reference makes anyway; CloudFormation asks once.",
}
"""Findings that stand, by rule, each with its reason. Notes about style (I) are not asked for: the
CDK writes the templates."""

TEMPLATES: Final = ("stack", "other", "dev", "joined")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schemas of the resources come with the package."""

    def refuse(*_: object) -> NoReturn:
        raise AssertionError("cfn-lint opens a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def findings(template: Mapping[str, Any]) -> dict[str, list[str]]:
    """Errors and warnings, each with its place, by rule."""
    found: dict[str, list[str]] = {}
    for match in lint(json.dumps(template), config=ManualArgs(regions=["eu-west-1"])):
        place = "/".join(map(str, match.path))
        found.setdefault(match.rule.id, []).append(f"{place}: {match.message}")
    return found


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_has_no_unexplained_finding(name: str, request: pytest.FixtureRequest) -> None:
    found = findings(request.getfixturevalue(name).template)
    assert {rule: places for rule, places in found.items() if rule not in STANDING} == {}
    assert set(found) == set(STANDING)


def test_the_check_sees_what_cloudformation_would_refuse(stack: Synthesised) -> None:
    longer = stack.spoiled("SQS::Queue", "SmallDeadLetters", MessageRetentionPeriod=1_209_601)
    unknown = stack.spoiled("SQS::Queue", "SmallDeadLetters", Sideways=True)
    for spoiled, name in ((longer, "MessageRetentionPeriod"), (unknown, "Sideways")):
        id_ = spoiled.find("SQS::Queue", "SmallDeadLetters")
        (places,) = findings({"Resources": {id_: spoiled.template["Resources"][id_]}}).values()
        assert [place.split(":")[0].split("/")[-1] for place in places] == [name]
