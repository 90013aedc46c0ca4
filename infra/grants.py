"""Rights by what they are for. No wildcard actions, and resources by name.

CDK's own grants are both too wide (Scan) and too narrow (no ConditionCheckItem).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from .lane import Lane
from .storage import Storage

TRANSACT: Final = (
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:ConditionCheckItem",
)
"""What TransactWriteItems is made of; IAM knows no action of that name."""


def allow(who: iam.IGrantable, actions: Sequence[str], *resources: str) -> None:
    iam.Grant.add_to_principal(grantee=who, actions=list(actions), resource_arns=list(resources))


def allow_job_store(who: iam.IGrantable, storage: Storage, *indexes: str) -> None:
    """Read, query and transact over jobs and leases, and query these indexes."""
    allow(who, ("dynamodb:GetItem", "dynamodb:Query", *TRANSACT), storage.control.table_arn)
    allow(who, ("dynamodb:Query",), *(storage.index_arn(index) for index in indexes))


def allow_sending(who: iam.IGrantable, *lanes: Lane) -> None:
    allow(who, ("sqs:SendMessage",), *(lane.queue.queue_arn for lane in lanes))


def allow_work(who: iam.IGrantable, storage: Storage, lanes: Sequence[Lane]) -> None:
    """What running a job takes. Both lanes run the same code, so both have the same rights."""
    allow_job_store(who, storage, "held")
    allow(
        who,
        (
            "dynamodb:BatchGetItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:ConditionCheckItem",
        ),
        storage.records.table_arn,
    )
    allow_payloads(who, storage.payloads, "GetObject", "DeleteObject")
    # Without it a missing object looks forbidden instead of gone.
    allow(who, ("s3:ListBucket",), storage.payloads.bucket_arn)
    # Promotion and hand-over send to the bulk lane; whoever frees a slot admits that lane's next.
    allow_sending(who, *lanes)


def allow_payloads(who: iam.IGrantable, payloads: s3.Bucket, *actions: str) -> None:
    """Object actions without their ``s3:``. Callers acknowledge the wildcard of object names."""
    allow(who, [f"s3:{action}" for action in actions], payloads.arn_for_objects("*"))
