"""Stored id lists and reports in S3."""

from __future__ import annotations

from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Final

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from .errors import Meaning, meaning_of, reading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mypy_boto3_s3 import S3Client

_IN_CALLER: Final = TransferConfig(use_threads=False)
"""Multipart above 8 MB, part after part: memory holds one part, whatever the size."""


class S3PayloadStore:
    """``PayloadStore`` on one bucket. prefix: put before every name. The client has to sign with
    ``s3v4``: what it signs by default, new regions refuse."""

    def __init__(self, client: S3Client, bucket: str, prefix: str = "") -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    def put(self, name: str, blocks: Iterable[bytes]) -> int:
        stream = _Stream(blocks)
        with reading():
            # Buffered, since a part must not be short because a block ended.
            self._client.upload_fileobj(
                BufferedReader(stream), self._bucket, self._prefix + name, Config=_IN_CALLER
            )
        return stream.size

    def read(self, name: str, offset: int, length: int) -> bytes:
        if offset < 0 or length < 1:
            raise ValueError(f"{length} bytes from {offset}")
        with reading():
            try:
                answer = self._client.get_object(
                    Bucket=self._bucket,
                    Key=self._prefix + name,
                    Range=f"bytes={offset}-{offset + length - 1}",
                )
                return answer["Body"].read()
            except ClientError as error:
                if meaning_of(error) is Meaning.PAST_END:
                    return b""
                raise

    def delete(self, name: str) -> None:
        with reading():
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def link(self, name: str, *, file_name: str, seconds: int) -> str:
        return self._client.generate_presigned_url(
            "get_object",
            Params={
                "Bucket": self._bucket,
                "Key": self._prefix + name,
                "ResponseContentDisposition": f'attachment; filename="{file_name}"',
            },
            ExpiresIn=seconds,
        )


class _Stream(RawIOBase):
    """Blocks as one readable file."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self.size = 0
        """Bytes read so far."""
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the stub names a private protocol
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        self.size += taken
        return taken
