"""Rights by what they are for. No wildcard actions, and resources by name.

CDK's own grants are both too wide (Scan) and too narrow (no ConditionCheckItem).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from .lane import Lane
from .parts import DeployEffects
from .settings import DeploySettings
from .storage import Storage

TRANSACT: Final = (
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:ConditionCheckItem",
)
"""What TransactWriteItems is made of; IAM knows no action of that name."""


WRITE: Final = ("PutObject", "AbortMultipartUpload")
"""Of objects, without their ``s3:``: a large one is sent in parts, and dropped if one fails."""


def allow(who: iam.IGrantable, actions: Sequence[str], *resources: str) -> None:
    iam.Grant.add_to_principal(grantee=who, actions=list(actions), resource_arns=list(resources))


def allow_job_store(who: iam.IGrantable, storage: Storage, *indexes: str) -> None:
    """Read and transact over jobs and leases, and query these indexes."""
    allow(who, ("dynamodb:GetItem", *TRANSACT), storage.control.table_arn)
    allow(who, ("dynamodb:Query",), *(storage.index_arn(index) for index in indexes))


def allow_sending(who: iam.IGrantable, *lanes: Lane) -> None:
    allow(who, ("sqs:SendMessage",), *(lane.queue.queue_arn for lane in lanes))


def allow_polling(who: iam.IGrantable, lane: Lane) -> None:
    """What Lambda's poller does with the function's role, and the visibility that the code sets."""
    actions = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
    allow(who, [f"sqs:{action}" for action in actions], lane.queue.queue_arn)


def allow_rows(who: iam.IGrantable, storage: Storage) -> None:
    """Read the rows of one partition: a job's outcomes, or the small lane's dwell."""
    allow(who, ("dynamodb:Query",), storage.control.table_arn)


def allow_work(who: iam.IGrantable, storage: Storage) -> None:
    """What running a job takes in both lanes."""
    allow_job_store(who, storage, "held")
    allow(
        who,
        ("dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"),
        storage.records.table_arn,
    )
    allow_payloads(who, storage.payloads, "GetObject", "DeleteObject")
    allow_seeing_what_is_missing(who, storage.payloads)


def allow_payloads(who: iam.IGrantable, payloads: s3.Bucket, *actions: str) -> None:
    """Object actions without their ``s3:``. Callers acknowledge the wildcard of object names."""
    allow(who, [f"s3:{action}" for action in actions], payloads.arn_for_objects("*"))


def allow_seeing_what_is_missing(who: iam.IGrantable, payloads: s3.Bucket) -> None:
    """Without it a missing object looks forbidden instead of gone."""
    allow(who, ("s3:ListBucket",), payloads.bucket_arn)


def allow_queries(who: iam.IGrantable, storage: Storage, settings: DeploySettings) -> None:
    """Looking for records where the deployment looks for them."""
    if settings.query.source == "table":
        allow(who, ("dynamodb:Query",), storage.records.table_arn)
    elif (domain := settings.effects.search_domain_arn) is not None:
        index = f"{domain}/{settings.effects.search_index}"
        allow(who, ("es:ESHttpPost",), f"{index}/_search", f"{index}/_count")
        allow(who, ("es:ESHttpGet",), f"{index}/_mapping")


def allow_effects(stack: Stack, who: iam.IGrantable, effects: DeployEffects) -> None:
    """What telling the configured places outside takes; nothing when there are none."""
    if effects.search_domain_arn is not None:
        index = f"{effects.search_domain_arn}/{effects.search_index}"
        allow(who, ("es:ESHttpPost",), f"{index}/_bulk", f"{index}/_mget")
        allow(who, ("es:ESHttpGet",), f"{index}/_mapping")
    if effects.webhook_url is not None:
        allow_secret(stack, who, effects)
    allow_bus(stack, who, effects)


def allow_secret(stack: Stack, who: iam.IGrantable, effects: DeployEffects) -> None:
    """Signing what is sent to webhooks and addresses."""
    if effects.webhook_secret_arn is not None:
        allow(who, ("secretsmanager:GetSecretValue",), effects.webhook_secret_arn)
    if effects.webhook_secret_parameter is not None:
        name = effects.webhook_secret_parameter.removeprefix("/")
        allow(who, ("ssm:GetParameter",), _arn(stack, "ssm", "parameter", name))
    service = "ssm" if effects.webhook_secret_arn is None else "secretsmanager"
    _allow_key(stack, who, effects.webhook_secret_key_arn, ("kms:Decrypt",), service)


def allow_bus(stack: Stack, who: iam.IGrantable, effects: DeployEffects) -> None:
    """Telling the event bus of records and jobs; nothing when there is none."""
    if (bus := effects.event_bus) is not None:
        arn = bus if bus.startswith("arn:") else _arn(stack, "events", "event-bus", bus)
        allow(who, ("events:PutEvents",), arn)


def allow_starting(who: iam.IGrantable, service: ecs.IService) -> None:
    """The first worker of a lane that has none."""
    allow(who, ("ecs:DescribeServices", "ecs:UpdateService"), service.service_arn)


KEY_USE: Final = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
"""What DynamoDB, S3 and SQS do with a customer key on behalf of their caller."""


def allow_keys(stack: Stack, who: iam.IGrantable, settings: DeploySettings) -> None:
    """The customer keys of what the stack makes and of a records table that was there before."""
    _allow_key(stack, who, settings.key_arn, KEY_USE, "dynamodb", "s3", "sqs")
    _allow_key(stack, who, settings.records.key_arn, KEY_USE, "dynamodb")


def _allow_key(
    stack: Stack, who: iam.IGrantable, key: str | None, actions: Sequence[str], *services: str
) -> None:
    """Only through these services, so that the key opens nothing else."""
    if key is None:
        return
    through = [f"{service}.{stack.region}.{stack.url_suffix}" for service in services]
    iam.Grant.add_to_principal(
        grantee=who,
        actions=list(actions),
        resource_arns=[key],
        conditions={"StringEquals": {"kms:ViaService": through}},
    )


def _arn(stack: Stack, service: str, resource: str, name: str) -> str:
    return stack.format_arn(service=service, resource=resource, resource_name=name)
