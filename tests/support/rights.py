"""Which rights the code's AWS calls need, recorded while it runs, and which ones a role has.

A right is (action, resource). Resources are named by what they are here: ``control``,
``control/index/due``, ``records``, ``payloads`` (the bucket), ``payloads/*`` (its objects),
``small`` (the queue) and ``bulk-service``; what is outside by its ARN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.signers import RequestSigner, S3PostPresigner
from ministack.core.iam_evaluator import (  # type: ignore[import-untyped]  # it has no types
    EvalContext,
    evaluate,
    parse_policy_document,
)

if TYPE_CHECKING:
    import pytest

Right = tuple[str, str]

PLACE: Final = "eu-west-1:123456789012"
"""Region and account, in ARNs."""

_TRANSACTED: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
_OBJECTS: Final = {
    "HeadObject": "GetObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
}
"""Calls that have no action of their own name."""
_MISSING: Final = frozenset({"404", "NoSuchKey"})


def rights_of(service: str, operation: str, sent: Mapping[str, Any]) -> set[Right]:
    """What IAM asks for before AWS carries out this call (service authorization reference)."""
    match service, operation:
        case "DynamoDB", "TransactWriteItems":
            return {
                (f"dynamodb:{_TRANSACTED[kind]}", what["TableName"])
                for action in sent["TransactItems"]
                for kind, what in action.items()
            }
        case "DynamoDB", "BatchGetItem":
            return {("dynamodb:BatchGetItem", table) for table in sent["RequestItems"]}
        case "DynamoDB", _:
            index = f"/index/{sent['IndexName']}" if "IndexName" in sent else ""
            return {(f"dynamodb:{operation}", sent["TableName"] + index)}
        case "SQS", _:
            return {(f"sqs:{operation.removesuffix('Batch')}", sent["QueueUrl"].rpartition("/")[2])}
        case "S3", _:
            return {(f"s3:{_OBJECTS.get(operation, operation)}", f"{sent['Bucket']}/*")}
    return {_outside(operation, sent)}


def _outside(operation: str, sent: Mapping[str, Any]) -> Right:
    match operation:
        case "PutEvents":
            [entry] = sent["Entries"]
            return "events:PutEvents", f"arn:aws:events:{PLACE}:event-bus/{entry['EventBusName']}"
        case "GetParameter":
            name = sent["Name"].removeprefix("/")
            return "ssm:GetParameter", f"arn:aws:ssm:{PLACE}:parameter/{name}"
        case "GetSecretValue":
            return "secretsmanager:GetSecretValue", sent["SecretId"]
        case "DescribeServices":
            [service] = sent["services"]
            return "ecs:DescribeServices", service
        case "UpdateService":
            return "ecs:UpdateService", sent["service"]
    raise AssertionError(f"the rights of {operation} are not known here")


@dataclass
class Recorder:
    """needed: the rights of each role, by its name in the template."""

    needed: dict[str, set[Right]] = field(default_factory=dict)
    role: str | None = None

    @contextmanager
    def acting(self, role: str) -> Iterator[None]:
        """All calls made meanwhile are this role's."""
        before, self.role = self.role, role
        try:
            yield
        finally:
            self.role = before

    def add(self, rights: set[Right]) -> None:
        if self.role is not None:
            self.needed.setdefault(self.role, set()).update(rights)


def record(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Record every call of every client from here on, and what is signed for others to call."""
    recorder = Recorder()
    call = BaseClient._make_api_call  # type: ignore[attr-defined]  # its types leave it out
    link = RequestSigner.generate_presigned_url
    post = S3PostPresigner.generate_presigned_post

    def calling(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        rights = rights_of(self.meta.service_model.service_id, operation, sent)
        recorder.add(rights)
        try:
            return call(self, operation, sent)
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                # Without it S3 answers 403: what is missing would look forbidden.
                recorder.add({("s3:ListBucket", sent["Bucket"])})
            raise

    def linking(self: RequestSigner, request_dict: Any, operation_name: str, **more: Any) -> Any:
        recorder.add({(f"s3:{operation_name}", "payloads/*")})
        return link(self, request_dict, operation_name, **more)

    def posting(self: S3PostPresigner, *sent: Any, **more: Any) -> Any:
        recorder.add({("s3:PutObject", "payloads/*")})
        return post(self, *sent, **more)

    monkeypatch.setattr(BaseClient, "_make_api_call", calling)
    monkeypatch.setattr(RequestSigner, "generate_presigned_url", linking)
    monkeypatch.setattr(S3PostPresigner, "generate_presigned_post", posting)
    return recorder


def given(statements: Sequence[Mapping[str, Any]]) -> set[Right]:
    """The rights of a role's statements in a template."""
    return {
        (str(action), _named(resource))
        for statement in statements
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }


def grants(statements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The statements, each with one action on one resource, under its name here."""
    return [
        {
            **statement,
            "Action": action,
            "Resource": _named(resource),
            "Condition": {
                operator: {key: [*map(_named, _listed(value))] for key, value in asked.items()}
                for operator, asked in statement.get("Condition", {}).items()
            },
        }
        for statement in statements
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    ]


def refused(
    statements: Sequence[Mapping[str, Any]],
    needed: Iterable[Right],
    through: Mapping[str, str] | None = None,
) -> set[Right]:
    """What IAM would refuse a role with these ``grants``. through: what conditions look at."""
    policies = [parse_policy_document({"Statement": list(statements)})]

    def decision(action: str, resource: str) -> str:
        asked = EvalContext(
            principal_arn="arn:aws:sts::123456789012:assumed-role/role/session",
            principal_type="AssumedRole",
            principal_account="123456789012",
            action=action,
            resource_arn=resource,
            region="eu-west-1",
            service_context={key.lower(): value for key, value in (through or {}).items()},
        )
        return str(evaluate(asked, policies).decision)

    return {right for right in needed if decision(*right) != "Allow"}


_NAMES: Final = {
    "StorageControl": "control",
    "StorageRecords": "records",
    "StorageIdempotency": "idempotency",
    "StoragePayloads": "payloads",
    "SmallQueue": "small",
    "BulkQueue": "bulk",
    "BulkLaneService": "bulk-service",
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::Region": PLACE.partition(":")[0],
    "AWS::AccountId": PLACE.partition(":")[2],
}


def _named(resource: Any) -> str:
    match resource:
        case {"Fn::GetAtt": [str(id_), "Arn"]} | {"Ref": str(id_)}:
            return next((name for part, name in _NAMES.items() if id_.startswith(part)), id_)
        case {"Fn::Join": ["", [*parts]]}:
            return "".join(map(_named, parts))
    return str(resource)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
