"""Uploaded files in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..jobs.words.errors import UploadGone
from ..jobs.words.ports import Stored, UploadAddress

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class _File:
    content: bytes
    notes: Mapping[str, str]

    @property
    def version(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class MemoryUploadStore:
    """``UploadStore`` in memory; ``send`` is what a client does with an address."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def address(self, name: str, notes: Mapping[str, str], *, seconds: int) -> UploadAddress:
        return UploadAddress("memory:", {**notes, "name": name, "seconds": str(seconds)})

    def send(self, address: UploadAddress, content: bytes) -> None:
        notes = {n: v for n, v in address.fields.items() if n not in {"name", "seconds"}}
        self._files[address.fields["name"]] = _File(content, notes)

    def look(self, name: str) -> Stored | None:
        file = self._files.get(name)
        return None if file is None else Stored(file.version, len(file.content), file.notes)

    def read(self, name: str, version: str, offset: int, length: int) -> bytes:
        file = self._files.get(name)
        if file is None or file.version != version:
            raise UploadGone
        return file.content[offset : offset + length]

    def drop(self, name: str) -> None:
        """Remove the file, as a bucket's lifecycle does."""
        self._files.pop(name, None)

    def names(self) -> frozenset[str]:
        return frozenset(self._files)
