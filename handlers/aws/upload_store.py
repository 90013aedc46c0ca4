"""Uploaded files in S3, put there by presigned POST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..jobs.words.errors import PayloadGone, UploadGone
from ..jobs.words.ports import Stored, UploadAddress
from .errors import code_of, reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_s3 import S3Client

NOTE: Final = "x-amz-meta-"
REPLACED: Final = frozenset({"PreconditionFailed", "412"})
MISSING: Final = frozenset({"NoSuchKey", "404"})
PAST_END: Final = "InvalidRange"


class S3UploadStore:
    """``UploadStore`` on one bucket. The client has to sign with ``s3v4``: by default it signs
    forms in a way that new regions refuse."""

    def __init__(self, client: S3Client, bucket: str, *, max_bytes: int) -> None:
        self._client = client
        self._bucket = bucket
        self._max_bytes = max_bytes

    def address(self, name: str, notes: Mapping[str, str], *, seconds: int) -> UploadAddress:
        fields = {NOTE + note: value for note, value in notes.items()}
        conditions: list[Any] = [{field: value} for field, value in fields.items()]
        conditions.append(["content-length-range", 1, self._max_bytes])
        form = self._client.generate_presigned_post(
            self._bucket, name, Fields=dict(fields), Conditions=conditions, ExpiresIn=seconds
        )
        return UploadAddress(form["url"], form["fields"])

    def look(self, name: str) -> Stored | None:
        with reading():
            try:
                head = self._client.head_object(Bucket=self._bucket, Key=name)
            except ClientError as error:
                if code_of(error) in MISSING:
                    return None
                raise
        return Stored(head["ETag"], head["ContentLength"], head["Metadata"])

    def read(self, name: str, version: str, offset: int, length: int) -> bytes:
        if offset < 0 or length < 1:
            raise ValueError(f"{length} bytes from {offset}")
        try:
            with reading():
                return self._get(name, version, f"bytes={offset}-{offset + length - 1}")
        except PayloadGone as error:
            raise UploadGone from error

    def _get(self, name: str, version: str, asked: str) -> bytes:
        try:
            answer = self._client.get_object(
                Bucket=self._bucket, Key=name, Range=asked, IfMatch=version
            )
            return answer["Body"].read()
        except ClientError as error:
            if code_of(error) in REPLACED:
                raise UploadGone("the file was replaced after the job was created") from error
            if code_of(error) == PAST_END:
                return b""
            raise
