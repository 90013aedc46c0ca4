"""The AWS Solutions rules: no finding is open, and each one that stands has its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from infra.settings import DeploySettings
from infra.stacks import FairlaneStack

from .synthesis import app_and_stack, settings_of

# isort: split
# infra comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk
from aws_cdk import aws_sqs as sqs
from cdk_nag import AwsSolutionsChecks


def app_with_rules(settings: DeploySettings, out: Path) -> tuple[cdk.App, FairlaneStack]:
    app, stack = app_and_stack(settings, out)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app, stack


def report(out: Path) -> dict[str, Any]:
    content = json.loads((out / "validation-report.json").read_text(encoding="utf-8"))
    (rules,) = [one for one in content["pluginReports"] if one["pluginName"] == "AwsSolutions"]
    return dict(rules)


@pytest.mark.parametrize(
    ("bulk_lane", "waf"), [({}, "block"), ({"network": "nat", "image_uri": "worker:1"}, "off")]
)
def test_no_finding_is_open(tmp_path: Path, bulk_lane: dict[str, str], waf: str) -> None:
    app, _ = app_with_rules(settings_of(bulk_lane=bulk_lane, waf={"mode": waf}), tmp_path)
    app.synth()
    rules = report(tmp_path)
    assert rules["violations"] == []
    stands = {one["ruleName"].split("[")[0]: one["reason"] for one in rules["suppressedViolations"]}
    assert set(stands) == {
        f"AwsSolutions-{rule}"
        for rule in ("S1", "IAM4", "IAM5", "L1", "ECS2", "VPC7", "APIG2", "COG4")
    } | ({"AwsSolutions-APIG3"} if waf == "off" else set())
    for rule, reason in stands.items():
        assert len(reason.split()) >= 8, rule


def test_a_new_finding_stops_synthesis(tmp_path: Path) -> None:
    app, stack = app_with_rules(settings_of(), tmp_path)
    sqs.Queue(stack, "Plain")
    with pytest.raises(RuntimeError, match=r"(?i)validation"):
        app.synth()
    assert {one["ruleName"] for one in report(tmp_path)["violations"]} >= {"AwsSolutions-SQS4"}
