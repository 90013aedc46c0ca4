"""Reading what the checks of the stack and of the grants look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from handlers.jobs.words.job import Lane

from .finding import Finding, unreadable
from .grants import Places, Rights
from .stack import Function, Resources, Service

FUNCTION: Final = "AWS::Lambda::Function"
MAPPING: Final = "AWS::Lambda::EventSourceMapping"
RULE: Final = "AWS::Events::Rule"
SERVICE: Final = "AWS::ECS::Service"
QUEUES: Final = {
    Lane.SMALL: ("SmallQueueUrl", "SmallDeadLettersUrl"),
    Lane.BULK: ("BulkQueueUrl", "BulkDeadLettersUrl"),
}
TABLES: Final = ("ControlTable", "IdempotencyTable", "RecordsTable")
OURS: Final = ("ApiFunction", "Authorizer", "SmallLane", "RecoveryFunction")
"""Parts of the logical ids of Fairlane's functions: a team's stack may have others."""

Of = Mapping[str, Mapping[str, str]]
"""Physical ids by type and logical id."""


def resources_of(stack: str) -> Of:
    """Raises ClientError, BotoCoreError."""
    found: dict[str, dict[str, str]] = {}
    pages = boto3.client("cloudformation").get_paginator("list_stack_resources")
    for page in pages.paginate(StackName=stack):
        for each in page["StackResourceSummaries"]:
            kind = found.setdefault(each["ResourceType"], {})
            kind[each["LogicalResourceId"]] = each.get("PhysicalResourceId", "")
    return found


def read(of: Of, outputs: Mapping[str, str], *, service: bool) -> Resources:
    """service: look at the bulk workers' service. Raises ClientError, BotoCoreError."""
    queues = {lane: _attributes(outputs[names[0]]) for lane, names in QUEUES.items()}
    letters = {lane: _attributes(outputs[names[1]]) for lane, names in QUEUES.items()}
    return Resources(
        functions=[_function(part, name) for part, name in _functions(of)],
        queues=queues,
        dead_letters=letters,
        mapping=_mapping(of, queues[Lane.SMALL]["QueueArn"]),
        schedule=_schedule(of),
        tables=dict(_tables(outputs)),
        service=_service(outputs) if service else None,
    )


def rights_of(seen: Resources) -> tuple[list[Rights], list[Finding]]:
    """The roles' own policies, and what could not be read of them."""
    iam = boto3.client("iam")
    rights, problems = [], []
    for function in seen.functions:
        try:
            statements = list(_statements(iam, function.role))
        except (ClientError, BotoCoreError) as error:
            problems.append(unreadable("grants", f"the role of {function.part}: {error}"))
        else:
            rights.append(Rights(function.part, statements))
    return rights, problems


def places_of(seen: Resources, control: str) -> Places:
    """control: the name of the control table. Raises ClientError, BotoCoreError."""
    table = boto3.client("dynamodb").describe_table(TableName=control)["Table"]
    return Places(
        control=table["TableArn"],
        small_queue=seen.queues[Lane.SMALL]["QueueArn"],
        bulk_queue=seen.queues[Lane.BULK]["QueueArn"],
    )


# --- each kind --------------------------------------------------------------------------------


def _functions(of: Of) -> Iterator[tuple[str, str]]:
    for part, name in of.get(FUNCTION, {}).items():
        if any(each in part for each in OURS):
            yield part, name


def _function(part: str, name: str) -> Function:
    client = boto3.client("lambda")
    found = client.get_function_configuration(FunctionName=name)
    reserved = client.get_function_concurrency(FunctionName=name)
    return Function(
        part=part,
        variables=found.get("Environment", {}).get("Variables", {}),
        code=found["CodeSha256"],
        runtime=found.get("Runtime", ""),
        timeout=found["Timeout"],
        state=found.get("State", "Active"),
        reserved=reserved.get("ReservedConcurrentExecutions"),
        role=found["Role"].rpartition("/")[2],
    )


def _attributes(url: str) -> Mapping[str, str]:
    answer = boto3.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return {str(name): value for name, value in answer["Attributes"].items()}


def _mapping(of: Of, queue: str) -> Mapping[str, Any] | None:
    client = boto3.client("lambda")
    for id_ in of.get(MAPPING, {}).values():
        found = client.get_event_source_mapping(UUID=id_)
        if found.get("EventSourceArn") == queue:
            return {**found}
    return None


def _schedule(of: Of) -> str | None:
    for part, name in of.get(RULE, {}).items():
        if "EveryMinute" in part:
            rule = name.rpartition("/")[2]
            return boto3.client("events").describe_rule(Name=rule).get("State")
    return None


def _tables(outputs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for output in TABLES:
        table = boto3.client("dynamodb").describe_table(TableName=outputs[output])["Table"]
        yield table["TableName"], table["TableStatus"]
        for index in table.get("GlobalSecondaryIndexes", []):
            yield f"{table['TableName']}/{index['IndexName']}", index.get("IndexStatus", "ACTIVE")


def _service(outputs: Mapping[str, str]) -> Service | None:
    found = boto3.client("ecs").describe_services(
        cluster=outputs["BulkCluster"], services=[outputs["BulkService"]]
    )["services"]
    for each in found:
        return Service(
            desired=each["desiredCount"],
            running=each["runningCount"],
            rollouts=[one.get("rolloutState", "COMPLETED") for one in each["deployments"]],
        )
    return None


def _statements(iam: Any, role: str) -> Iterator[Mapping[str, Any]]:
    for page in iam.get_paginator("list_role_policies").paginate(RoleName=role):
        for name in page["PolicyNames"]:
            yield from _parsed(
                iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            )
    for page in iam.get_paginator("list_attached_role_policies").paginate(RoleName=role):
        for attached in page["AttachedPolicies"]:
            arn = attached["PolicyArn"]
            version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
            found = iam.get_policy_version(PolicyArn=arn, VersionId=version)
            yield from _parsed(found["PolicyVersion"]["Document"])


def _parsed(document: Any) -> Sequence[Mapping[str, Any]]:
    """boto3 decodes the document; a double of IAM may not."""
    read = json.loads(unquote(document)) if isinstance(document, str) else document
    found = read["Statement"]
    return found if isinstance(found, list) else [found]
