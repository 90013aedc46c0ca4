"""The bodies that are sent. The API checks them; these give them their shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from .exact import exact_json

INLINE_IDS: Final = 51_000
"""Ids in one request, unless a deployment takes fewer."""
BODY: Final = 2_000_000
"""Bytes of one request, as sent."""
MAX_ID_BYTES: Final = 256


class NewJob(BaseModel):
    """The body of ``POST /v1/jobs``. Raises InexactNumber for a float in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    operation: str
    subject: str
    ids: Sequence[str] | None = None
    upload_id: str | None = None
    query: Mapping[str, Any] | None = None
    """Exactly one of these three says which records."""
    traversal: str | None = None
    """Of a query: auto, live or snapshot."""
    params: Mapping[str, Any] = Field(default_factory=dict)
    """JSON values, with ``int`` or ``Decimal`` for numbers."""
    tolerated_failure_percent: int | None = None
    stop_when_hopeless: bool | None = None
    """False: every record is tried, also when too many have failed already."""
    labels: Mapping[str, str] | None = None
    notify: Mapping[str, str] | None = None
    """``{"url": ...}``: an https address that is told when the job starts and ends."""

    @field_validator("query", "params", mode="before")
    @classmethod
    def _exact(cls, value: Any, info: Any) -> Any:
        exact_json(value, info.field_name)
        return value

    def json_body(self) -> bytes:
        """Exact: a Decimal stays the number it is. Raises InexactNumber."""
        return exact_json(self.model_dump(mode="python", exclude_none=True)).encode()


class NewUpload(BaseModel):
    """The body of ``POST /v1/uploads``: how to read the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: str
    """``jsonl`` or ``csv``."""
    column: str | None = None
    """The CSV column or the field of JSON objects with the ids, or with the keys of a lookup table.
    None: JSON strings."""
    gzip: bool = False

    def json_body(self) -> bytes:
        return self.model_dump_json(exclude_none=True).encode()
