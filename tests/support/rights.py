"""Which rights the code's AWS calls need, recorded while it runs, and which ones a role has.

A right is (action, resource). Resources are named by what they are here: ``control``,
``control/index/due``, ``records``, ``payloads`` (the bucket), ``payloads/*`` (its objects) and
``small`` (the queue).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.signers import RequestSigner, S3PostPresigner

if TYPE_CHECKING:
    import pytest

Right = tuple[str, str]

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
    raise AssertionError(f"the rights of {service}.{operation} are not known here")


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


_NAMES: Final = {
    "StorageControl": "control",
    "StorageRecords": "records",
    "StorageIdempotency": "idempotency",
    "StoragePayloads": "payloads",
    "SmallQueue": "small",
    "BulkQueue": "bulk",
}


def _named(resource: Any) -> str:
    match resource:
        case {"Fn::GetAtt": [str(id_), "Arn"]}:
            return next((name for part, name in _NAMES.items() if id_.startswith(part)), id_)
        case {"Fn::Join": ["", [dict() as first, str(rest)]]}:
            return _named(first) + rest
    return str(resource)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
