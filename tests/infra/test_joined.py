"""A deployment beside what the account has already: networks, keys, images, other accounts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.infra.grants import ROLES, listed, statements

from .synthesis import PRINCIPALS, Synthesised, referred

OUR_KEY = "arn:aws:kms:eu-west-1:123456789012:key/0123456a-0000-4000-8000-000000000000"
RECORDS_KEY = "arn:aws:kms:eu-west-1:123456789012:key/0123456b-0000-4000-8000-000000000000"
SECRET_KEY = "arn:aws:kms:eu-west-1:123456789012:key/0123456c-0000-4000-8000-000000000000"


def uses(stack: Synthesised, who: str, key: str) -> list[tuple[set[str], str]]:
    """(actions, services through which) of the rights to the key."""
    return [
        (
            {str(action) for action in listed(statement["Action"])},
            json.dumps(statement.get("Condition", {}).get("StringEquals", {})),
        )
        for statement in statements(stack, ROLES[who])
        if key in listed(statement["Resource"])
    ]


# --- customer keys ----------------------------------------------------------------------------


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize(
    ("key", "services"), [(OUR_KEY, {"dynamodb", "s3", "sqs"}), (RECORDS_KEY, {"dynamodb"})]
)
def test_whoever_uses_encrypted_data_may_use_its_key_through_that_service(
    joined: Synthesised, who: str, key: str, services: set[str]
) -> None:
    ours = [(actions, through) for actions, through in uses(joined, who, key) if through != "{}"]
    [(actions, through)] = ours
    assert actions >= {"kms:Decrypt", "kms:GenerateDataKey", "kms:Encrypt", "kms:DescribeKey"}
    assert {one for one in ("dynamodb", "s3", "sqs") if f"{one}." in through} == services


@pytest.mark.parametrize("who", ["SmallLane", "BulkLane", "Recovery"])
def test_only_who_signs_may_open_the_secret(joined: Synthesised, who: str) -> None:
    [(actions, through)] = uses(joined, who, SECRET_KEY)
    assert actions == {"kms:Decrypt"}
    assert "secretsmanager." in through
    assert not uses(joined, "Api", SECRET_KEY)


def test_everything_the_stack_makes_has_the_key(joined: Synthesised) -> None:
    assert {queue["KmsMasterKeyId"] for queue in joined.of("SQS::Queue").values()} == {OUR_KEY}
    (bucket,) = joined.of("S3::Bucket").values()
    assert OUR_KEY in json.dumps(bucket["BucketEncryption"])
    tables = joined.of("DynamoDB::GlobalTable").values()
    assert tables
    for table in tables:
        assert OUR_KEY in json.dumps(table["Replicas"])


def test_without_a_key_nobody_may_use_one(stack: Synthesised) -> None:
    assert "kms:" not in json.dumps(stack.of("IAM::Policy"))


# --- a network that was there before ----------------------------------------------------------


def test_workers_and_functions_run_in_it_and_it_is_left_alone(joined: Synthesised) -> None:
    (service,) = joined.of("ECS::Service").values()
    network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
    assert network["Subnets"] == ["subnet-0000000a", "subnet-0000000b", "subnet-0000000c"]
    assert network["SecurityGroups"] == ["sg-0000000a"]
    inside = {
        function["Handler"]: function.get("VpcConfig")
        for function in joined.of("Lambda::Function").values()
    }
    there = {"SubnetIds": network["Subnets"], "SecurityGroupIds": ["sg-0000000a"]}
    assert set(inside) == {f"handlers.{one}.handler" for one in ("api", "small_lane", "recovery")}
    assert list(inside.values()) == [there] * 3
    assert not [
        resource["Type"]
        for resource in joined.template["Resources"].values()
        if resource["Type"].startswith("AWS::EC2::")
    ]


def test_its_functions_may_have_network_interfaces_and_no_other_may(
    joined: Synthesised, stack: Synthesised
) -> None:
    def may(template: Synthesised, who: str) -> bool:
        return any(
            "ec2:CreateNetworkInterface" in listed(statement["Action"])
            for statement in statements(template, ROLES[who])
        )

    assert [who for who in ROLES if may(joined, who)] == ["SmallLane", "Api", "Recovery"]
    assert not [who for who in ROLES if may(stack, who)]


# --- waiting for a network of its own ----------------------------------------------------------


def waits_for(stack: Synthesised, kind: str) -> bool:
    service = stack.find("ECS::Service", "Service")
    waiting = set(stack.template["Resources"][service]["DependsOn"])
    wanted = set(stack.of(kind))
    return bool(wanted) and wanted <= waiting


def test_the_service_starts_when_its_tasks_can_reach_aws(
    stack: Synthesised, other: Synthesised, dev: Synthesised
) -> None:
    assert waits_for(stack, "EC2::VPCEndpoint")
    assert waits_for(other, "EC2::Route")
    assert waits_for(other, "EC2::NatGateway")
    assert waits_for(dev, "EC2::Route")
    assert not waits_for(dev, "EC2::NatGateway")


# --- an image that is ready -------------------------------------------------------------------


def test_tasks_may_pull_the_named_image(joined: Synthesised) -> None:
    (task,) = joined.of("ECS::TaskDefinition").values()
    image = json.dumps(task["ContainerDefinitions"][0]["Image"])
    assert "222222222222.dkr.ecr.eu-west-1." in image
    assert f"/team/worker@sha256:{'0' * 64}" in image
    pulls = [
        statement["Resource"]
        for statement in statements(joined, "BulkLaneTaskExecutionRole")
        if "ecr:BatchGetImage" in listed(statement["Action"])
    ]
    assert pulls == ["arn:aws:ecr:eu-west-1:222222222222:repository/team/worker"]


# --- callers of another account -----------------------------------------------------------------


def admitted(stack: Synthesised, account: str) -> set[str]:
    """The principals that the API's policy lets in, deployed to the account."""
    (api,) = stack.of("ApiGateway::RestApi").values()
    found: set[str] = set()
    for statement in api["Policy"]["Statement"]:
        match statement:
            case {"Fn::If": [condition, allowed, {"Ref": "AWS::NoValue"}]}:
                if _holds(stack.template["Conditions"][condition], account):
                    found |= set(allowed["Principal"]["AWS"])
            case {"Effect": effect}:
                assert effect == "Deny"
    return found


def _holds(condition: dict[str, Any], account: str) -> bool:
    match condition:
        case {"Fn::Not": [inner]}:
            return not _holds(inner, account)
        case {"Fn::Equals": [{"Ref": "AWS::AccountId"}, other]}:
            return bool(other == account)
    raise AssertionError(condition)


def test_callers_of_another_account_are_in_the_apis_policy_and_those_of_its_own_are_not(
    joined: Synthesised, stack: Synthesised
) -> None:
    partner = "arn:aws:iam::222222222222:role/partner"
    assert admitted(joined, "123456789012") == {partner}
    assert admitted(joined, "222222222222") == set(PRINCIPALS)
    assert admitted(joined, "333333333333") == {partner, *PRINCIPALS}
    (api,) = stack.of("ApiGateway::RestApi").values()
    assert "Policy" not in api


# --- to try it out ------------------------------------------------------------------------------


def test_an_empty_account_can_call_as_the_demonstration(dev: Synthesised) -> None:
    role = dev.find("IAM::Role", "DemoCaller")
    assert dev.of("IAM::Role")[role]["RoleName"] == "Fairlane-demo"
    (function,) = [
        one
        for one in dev.of("Lambda::Function").values()
        if one.get("Handler") == "handlers.api.handler"
    ]
    told = function["Environment"]["Variables"]["FAIRLANE_CALLER_PRINCIPALS"]["Fn::Join"][1]
    assert {"Ref": "AWS::AccountId"} in told
    assert told[-1] == ':role/Fairlane-demo":"demo"}'
    assert referred(dev.template["Outputs"]["DemoRole"]["Value"]) == role


def test_development_reserves_nothing_and_pays_for_no_network(dev: Synthesised) -> None:
    assert not [
        one for one in dev.of("Lambda::Function").values() if "ReservedConcurrentExecutions" in one
    ]
    assert not dev.of("EC2::NatGateway")
    kinds = {one["VpcEndpointType"] for one in dev.of("EC2::VPCEndpoint").values()}
    assert kinds == {"Gateway"}
    assert not dev.of("WAFv2::WebACL")
    (target,) = dev.of("ApplicationAutoScaling::ScalableTarget").values()
    assert target["MinCapacity"] == 0
    (group,) = (group for id_, group in dev.of("EC2::SecurityGroup").items() if "Service" in id_)
    assert "SecurityGroupIngress" not in group
