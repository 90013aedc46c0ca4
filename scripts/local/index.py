"""The search index as it is when every record's document has reached it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from handlers.aws.search_mapping import create_index
from handlers.effects.documents import document, document_id
from handlers.jobs.words.record_schema import RecordSchema
from handlers.settings import EffectSettings
from scripts.opensearch.client import client_of

from .errors import LocalError

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

BATCH: Final = 1000
"""Documents of one bulk request."""


def create(url: str) -> None:
    """An empty index, where there is none. Raises WrongIndex for one of another kind."""
    with client_of(url) as client:
        create_index(client, EffectSettings().search_index, RecordSchema())


def fill(
    url: str,
    items: Iterable[Mapping[str, Any]],
    *,
    filled: Callable[[int], None] = lambda _: None,
) -> int:
    """Put each record's document into the index, under the record's version, and return their
    number. Documents that are newer stay. Raises LocalError when the index refuses one."""
    count = 0
    with client_of(url) as client:
        remaining = iter(items)
        while batch := list(islice(remaining, BATCH)):
            _send(client, batch)
            filled(len(batch))
            count += len(batch)
    return count


def _send(client: OpenSearch, batch: Sequence[Mapping[str, Any]]) -> None:
    answer = client.bulk(
        body="\n".join(line for item in batch for line in _lines(item)) + "\n",
        index=EffectSettings().search_index,
    )
    for item, result in zip(batch, answer["items"], strict=True):
        said = result["index"]
        if said["status"] not in (200, 201, 409):
            schema = RecordSchema()
            raise LocalError(
                f"the search index refuses the record {item[schema.id]!r} of tenant "
                f"{item[schema.tenant]!r}: {said.get('error', {}).get('reason', said)}. Correct "
                "it, or do without an index (--no-search)"
            )


def _lines(item: Mapping[str, Any]) -> Iterator[str]:
    schema = RecordSchema()
    tenant, record_id = item[schema.tenant], item[schema.id]
    record = schema.record(tenant, record_id, item)
    yield (
        f'{{"index":{{"_id":"{document_id(tenant, record_id)}",'
        f'"version":{record.version},"version_type":"external"}}}}'
    )
    yield document(schema, record)
