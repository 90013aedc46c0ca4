"""An uploaded file of record ids: its format, and the file as it was when its job was created."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

UPLOAD_ID: Final = r"^[0-9a-f]{32}$"
"""The form of the id that a client names an upload by."""


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


class UploadForm(BaseModel):
    """How to read an uploaded file."""

    model_config = ConfigDict(frozen=True)

    format: Format
    column: str | None = None
    """The CSV column or the field of JSON objects with the ids, or with the keys of a lookup table.
    None: JSON strings."""
    gzip: bool = False


class Upload(UploadForm):
    """A file that was uploaded, as it was when its job was created."""

    name: str
    """The object's name."""
    version: str
    """The object store's version of this content: another file of the same name has another."""
    size: int
    """Bytes as stored."""
