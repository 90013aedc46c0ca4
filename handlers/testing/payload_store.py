"""Stored id lists in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..jobs.words.errors import PayloadGone

if TYPE_CHECKING:
    from collections.abc import Iterable


class MemoryPayloadStore:
    """``PayloadStore`` in memory."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def put(self, name: str, blocks: Iterable[bytes]) -> int:
        content = b"".join(blocks)
        self._objects[name] = content
        return len(content)

    def read(self, name: str, offset: int, length: int) -> bytes:
        if offset < 0 or length < 1:
            raise ValueError(f"{length} bytes from {offset}")
        try:
            content = self._objects[name]
        except KeyError:
            raise PayloadGone from None
        return content[offset : offset + length]

    def delete(self, name: str) -> None:
        self._objects.pop(name, None)

    def link(self, name: str, *, file_name: str, seconds: int) -> str:
        return f"memory:{name}?as={file_name}&seconds={seconds}"

    def names(self) -> frozenset[str]:
        """Every stored object, for assertions."""
        return frozenset(self._objects)
