"""cdk-nag's rules (AWS Solutions, Serverless): no finding is open, and each one that stands has its
reason."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from infra.settings import DeploySettings

from .rules import app_with_rules, report
from .synthesis import JOINED, settings_of

# isort: split
# infra comes first: it names the Node that runs the CDK's engine.
from aws_cdk import aws_sqs as sqs

STANDING: Final = {"S1", "IAM5", "L1", "ECS2", "VPC7", "APIG2", "COG4"}
STANDING_SERVERLESS: Final = {
    "APIGWXrayEnabled",
    "EventBusDLQ",
    "LambdaAsyncFailureDestination",
    "LambdaDLQ",
    "LambdaEventSourceMappingDestination",
    "LambdaLatestVersion",
    "LambdaTracing",
    "SQSRedrivePolicy",
}


@pytest.mark.parametrize(
    ("settings", "standing"),
    [
        (settings_of(), STANDING),
        (
            settings_of(bulk_lane={"network": "nat", "image_uri": "worker:1"}, waf={"mode": "off"}),
            STANDING | {"APIG3"},
        ),
        (DeploySettings.read({"profile": "dev"}), STANDING | {"APIG3", "IAM4"}),
        (settings_of(**JOINED), STANDING - {"VPC7"}),
    ],
    ids=["prod", "nat", "dev", "joined"],
)
def test_no_finding_is_open(tmp_path: Path, settings: DeploySettings, standing: set[str]) -> None:
    app, _ = app_with_rules(settings, tmp_path)
    app.synth()
    assert _standing(tmp_path, "AwsSolutions") == standing
    assert _standing(tmp_path, "Serverless") == STANDING_SERVERLESS


def _standing(out: Path, pack: str) -> set[str]:
    """The pack's rules whose findings stand, each with a reason; none is open."""
    rules = report(out, pack)
    assert rules["violations"] == []
    reasons = {
        one["ruleName"].split("[")[0]: one["reason"] for one in rules["suppressedViolations"]
    }
    for rule, reason in reasons.items():
        assert len(reason.split()) >= 8, rule
    return {rule.removeprefix(f"{pack}-") for rule in reasons}


def test_a_new_finding_stops_synthesis(tmp_path: Path) -> None:
    app, stack = app_with_rules(settings_of(), tmp_path)
    sqs.Queue(stack, "Plain")
    with pytest.raises(RuntimeError, match=r"(?i)validation"):
        app.synth()
    for pack, rule in (("AwsSolutions", "SQS4"), ("Serverless", "SQSRedrivePolicy")):
        found = {one["ruleName"] for one in report(tmp_path, pack)["violations"]}
        assert f"{pack}-{rule}" in found
