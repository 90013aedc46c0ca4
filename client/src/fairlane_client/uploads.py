"""Sending one file to the address that the API gave for it."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Final
from uuid import uuid4

import urllib3

from .models import UploadAddress
from .problems import FileTooLarge, Unreachable

TIMEOUT_S: Final = 600.0
FIRST_ERROR: Final = 400


def send(address: UploadAddress, path: Path, *, sent: Callable[[int], None]) -> None:
    """Send the file, in pieces. sent: told of the bytes of each piece.

    Raises FileTooLarge, Unreachable (also when the store refuses the file), OSError.
    """
    size = path.stat().st_size
    if size > address.max_bytes:
        raise FileTooLarge(f"{path}: {size} bytes, at most {address.max_bytes} are allowed")
    with path.open("rb") as file, urllib3.PoolManager(timeout=TIMEOUT_S) as pool:
        form = _Form(address.fields, file, size, sent)
        try:
            reply = pool.request(
                "POST",
                address.url,
                body=io.BufferedReader(form, buffer_size=256 * 1024),
                headers={
                    "content-type": f"multipart/form-data; boundary={form.boundary}",
                    # The store wants to know how much comes before it does.
                    "content-length": str(form.size),
                },
                retries=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"the upload failed: {error}") from error
    if reply.status >= FIRST_ERROR:
        said = reply.data[:500].decode(errors="replace")
        raise Unreachable(f"the upload was refused with {reply.status}: {said}")


class _Form(io.RawIOBase):
    """The form as one stream: the fields, then the file, which is never held."""

    def __init__(
        self, fields: Mapping[str, str], file: IO[bytes], size: int, sent: Callable[[int], None]
    ) -> None:
        self.boundary = uuid4().hex
        before = "".join(
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        before += (
            f"--{self.boundary}\r\n"
            'Content-Disposition: form-data; name="file"; filename="ids"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        after = f"\r\n--{self.boundary}--\r\n"
        self.size = len(before.encode()) + size + len(after)
        self._parts: list[io.BytesIO | _Counted] = [
            io.BytesIO(before.encode()),
            _Counted(file, sent),
            io.BytesIO(after.encode()),
        ]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the stub names a private protocol
        view = memoryview(buffer)
        while self._parts:
            piece = self._parts[0].read(len(view))
            if piece:
                view[: len(piece)] = piece
                return len(piece)
            del self._parts[0]
        return 0


class _Counted:
    def __init__(self, file: IO[bytes], sent: Callable[[int], None]) -> None:
        self._file = file
        self._sent = sent

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._sent(len(piece))
        return piece
