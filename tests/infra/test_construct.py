"""``FairlaneJobs`` in a team's own app, named and granted as a team would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.cdk import DETAIL_TYPES, AuthSettings, FairlaneJobs, SettingsError
from tests.support.pages import PAGES, blocks

from .synthesis import AUTH, CDK_JSON, OWN_OPERATIONS, PRINCIPALS, Synthesised

# isort: split
# fairlane comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template

AUTH_SETTINGS = AuthSettings.model_validate(AUTH)


def stack_of(**context: object) -> cdk.Stack:
    chosen = {**CDK_JSON, "aws:cdk:bundling-stacks": [], "fairlane": context}
    return cdk.Stack(cdk.App(context=chosen), "Shop")


@pytest.fixture(scope="module")
def shop() -> Synthesised:
    """With a table and a function's role of the team's own, and operations of its own."""
    stack = stack_of()
    table = dynamodb.Table(
        stack,
        "Products",
        partition_key=dynamodb.Attribute(name="tenant", type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
    )
    nightly = iam.Role(stack, "Nightly", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    jobs = FairlaneJobs(
        stack,
        "Jobs",
        operations=str(OWN_OPERATIONS),
        records=table,
        principals=PRINCIPALS,
        profile="dev",
    )
    jobs.grant_submit(nightly)
    sync = iam.Role(stack, "Sync", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    jobs.grant_lease(sync)
    assert jobs.queues.keys() == jobs.dead_letter_queues.keys() == {"small", "bulk"}
    assert jobs.records_table.table_name == table.table_name
    cdk.CfnOutput(stack, "Waiting", value=str(jobs.metric_waiting("bulk").metric_name))
    cdk.CfnOutput(stack, "Url", value=jobs.url)
    return Synthesised(Template.from_stack(stack).to_json())


def test_commands_find_the_deployment_by_its_outputs(shop: Synthesised) -> None:
    names = {"ApiUrl", "ControlTable", "RecordsTable", "SmallDeadLettersUrl", "BulkDeadLettersUrl"}
    assert names <= shop.template["Outputs"].keys()
    [_] = [id_ for id_ in shop.of("Lambda::Function") if "RecoveryFunction" in id_]


def test_the_teams_table_and_operations_are_what_workers_use(shop: Synthesised) -> None:
    [table] = [id_ for id_ in shop.of("DynamoDB::Table") if id_.startswith("Products")]
    told = [
        function["Environment"]["Variables"]
        for function in shop.of("Lambda::Function").values()
        if function["Handler"].startswith("handlers.")
    ]
    assert len(told) == 3
    for variables in told:
        assert variables["FAIRLANE_RECORDS_TABLE"] == {"Ref": table}
        assert variables["FAIRLANE_OPERATIONS"] == "own_operations"


def test_a_role_that_may_submit_may_call_the_api_and_no_more(shop: Synthesised) -> None:
    assert [each["Action"] for each in statements(shop, "Nightly")] == ["execute-api:Invoke"]


def test_a_worker_that_may_take_leases_may_touch_nothing_else(shop: Synthesised) -> None:
    [statement] = statements(shop, "Sync")
    assert statement["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["SUBJECT#*"]}
    }


def statements(shop: Synthesised, role: str) -> list[dict[str, Any]]:
    return [
        statement
        for policy in shop.of("IAM::Policy").values()
        if any(each["Ref"].startswith(role) for each in policy["Roles"])
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def test_a_setting_that_is_wrong_is_named() -> None:
    with pytest.raises(SettingsError, match="small_lan"):
        FairlaneJobs(stack_of(), "Jobs", auth=AUTH_SETTINGS, profile="dev", small_lan={})
    with pytest.raises(SettingsError, match="set either auth"):
        FairlaneJobs(stack_of(), "Jobs", profile="prod")


def test_the_context_goes_over_what_the_app_names() -> None:
    stack = stack_of(principals=PRINCIPALS, log_level="DEBUG")
    jobs = FairlaneJobs(stack, "Jobs", auth=AUTH_SETTINGS, profile="dev", log_retention_days=7)
    assert jobs.settings.auth is None
    assert (jobs.settings.log_level, jobs.settings.log_retention_days) == ("DEBUG", 7)
    assert jobs.settings.stack_name == "Shop"
    with pytest.raises(ValueError, match="has a FairlaneJobs already"):
        FairlaneJobs(stack, "More", auth=AUTH_SETTINGS, profile="dev")


@pytest.mark.parametrize("bus", ["ours", "arn:aws:events:eu-west-1:123456789012:event-bus/ours"])
def test_events_are_handed_out_as_rules(bus: str) -> None:
    stack = stack_of(effects={"event_bus": bus})
    jobs = FairlaneJobs(stack, "Jobs", auth=AUTH_SETTINGS, profile="dev")
    queue = sqs.Queue(stack, "Ended")
    jobs.on_event("OfEnds", "Job Ended", target=targets.SqsQueue(queue))
    jobs.on_event("OfAll")
    with pytest.raises(ValueError, match="no events are called 'Job Exploded'; there are 'Records"):
        jobs.on_event("OfNone", "Job Exploded")
    rules = Synthesised(Template.from_stack(stack).to_json()).of("Events::Rule")
    found = {
        len(rule["EventPattern"]["detail-type"]): rule
        for rule in rules.values()
        if "EventPattern" in rule
    }
    ends, every = found[1], found[len(DETAIL_TYPES)]
    assert ends["EventPattern"] == {"source": ["fairlane"], "detail-type": ["Job Ended"]}
    assert ends["EventBusName"] == "ours"
    assert len(ends["Targets"]) == 1
    assert "Records Changed" in every["EventPattern"]["detail-type"]


def test_without_a_bus_there_are_no_events() -> None:
    jobs = FairlaneJobs(stack_of(), "Jobs", auth=AUTH_SETTINGS, profile="dev")
    with pytest.raises(ValueError, match=r"set effects\.event_bus"):
        jobs.on_event("OfAll")


def test_roles_are_granted_nothing_where_callers_have_tokens() -> None:
    stack = stack_of()
    role = iam.Role(stack, "Nightly", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    jobs = FairlaneJobs(stack, "Jobs", auth=AUTH_SETTINGS, profile="dev")
    with pytest.raises(ValueError, match="set principals instead of auth"):
        jobs.grant_submit(role)


def test_the_app_of_the_page_is_synthesised(tmp_path: Path) -> None:
    """docs/construct.md; as the CDK's command does it, without the wheels of the layer."""
    source, _ = blocks(PAGES["docs/construct.md"].read_text(encoding="utf-8"), "python")
    env = {
        **os.environ,
        "OPERATIONS": str(OWN_OPERATIONS),
        "CDK_OUTDIR": str(tmp_path / "cdk.out"),
        "CDK_CONTEXT_JSON": json.dumps({"aws:cdk:bundling-stacks": []}),
    }
    subprocess.run([sys.executable, "-c", source], cwd=tmp_path, env=env, check=True)
    template = (tmp_path / "cdk.out" / "Shop.template.json").read_text(encoding="utf-8")
    assert '"FAIRLANE_OPERATIONS": "own_operations"' in template
