"""A record as a search document."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from boto3.dynamodb.types import Binary

from ..aws.search_mapping import UNINDEXED
from ..jobs.words.exact_json import exact_json

if TYPE_CHECKING:
    from ..aws.search_mapping import SearchFields
    from ..jobs.words.operation import Record
    from ..jobs.words.record_schema import RecordSchema


LONGEST: Final = 32_766
"""Bytes of the longest text that an index holds as one term."""
_BYTES: Final = (Binary, bytes, bytearray)


def document_id(tenant: str, record_id: str) -> str:
    """The document's id, one for each tenant and record id, whatever characters they hold. It is a
    hash, since the two together may exceed OpenSearch's 512 bytes."""
    return hashlib.sha256(f"{len(tenant)}:{tenant}{record_id}".encode()).hexdigest()


def document(schema: RecordSchema, record: Record, fields: SearchFields) -> str:
    """The record's fields with its tenant, id and version under their names in the record table,
    as JSON on one line. Numbers are exact, sets are sorted lists, bytes are base64. Raises
    TypeError for what has no JSON form.

    fields: the searchable ones. A value that the index cannot hold as its field's type is left
    out, and ``UNINDEXED`` names the field; so are names that an index takes for paths."""
    found = dict(record.fields)
    unfit = [n for n, kind in fields.items() if n in found and not _fits(found[n], kind)]
    left_out = {*unfit, UNINDEXED}
    found = {n: v for n, v in found.items() if n not in left_out and n.strip() and "." not in n}
    return exact_json(
        {
            **{name: _plain(value) for name, value in found.items()},
            **({UNINDEXED: unfit} if unfit else {}),
            schema.tenant: record.tenant,
            schema.id: record.id,
            schema.version: record.version,
        }
    )


def _fits(value: object, kind: str) -> bool:
    match kind:
        case _ if value is None:
            return True
        case "text":
            return isinstance(value, str) and len(value.encode(errors="surrogatepass")) <= LONGEST
        case "number":
            return isinstance(value, int | Decimal) and not isinstance(value, bool)
        case _:
            return isinstance(value, bool)


def existence(answer: Mapping[str, Any]) -> bool | None:
    """Whether a document exists, by its answer in a bulk read; None: its shard could not tell. The
    status of the whole request is 200 in each case."""
    found = answer.get("found")
    return found if isinstance(found, bool) and "error" not in answer else None


def _plain(value: Any) -> Any:
    """The value without the types that a team's own table may hold and JSON does not know."""
    if isinstance(value, _BYTES):
        raw: Any = value
        return base64.b64encode(bytes(raw)).decode()
    match value:
        case str() | bool() | int() | None:
            return value
        case Mapping():
            return {name: _plain(part) for name, part in value.items()}
        case set() | frozenset():
            return sorted((_plain(part) for part in value), key=str)
        case Sequence():
            return [_plain(part) for part in value]
        case _:
            return value
