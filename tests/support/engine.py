"""A search engine that answers: the address given in the environment, or the embedded one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from handlers.aws.search_mapping import index_body
from handlers.aws.search_query import RawNumbers
from handlers.effects.documents import document, document_id
from handlers.effects.search_client import search_client
from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import RecordSchema
from scripts.opensearch.embedded import EmbeddedSearch
from scripts.opensearch.node import ADDRESS

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

    from handlers.jobs.words.writes import Item

SCHEMA: Final = RecordSchema()
FIELDS: Final = {
    **dict.fromkeys(("group", "t", "unknown"), "text"),
    **dict.fromkeys(("made", "n"), "number"),
    "b": "boolean",
}
"""The searchable fields of the records that tests of queries put into an index."""


@contextmanager
def engine(folder: Path) -> Iterator[OpenSearch]:
    """A client as a deployment's query has it. folder: for the embedded engine's log."""
    if given := os.environ.get(ADDRESS):
        with client_of(given) as client:
            yield client
        return
    with EmbeddedSearch(folder) as embedded, client_of(embedded.url) as client:
        yield client


def client_of(url: str) -> OpenSearch:
    return search_client(url, credentials=None, region=None, serializer=RawNumbers())


@contextmanager
def new_index(client: OpenSearch) -> Iterator[str]:
    """An index of records' documents, gone afterwards."""
    name = f"records-{uuid4().hex}"
    client.indices.create(index=name, body=index_body(SCHEMA, FIELDS))
    try:
        yield name
    finally:
        client.indices.delete(index=name)


def put_documents(client: OpenSearch, index: str, tenant: str, records: Mapping[str, Item]) -> None:
    """As the effect that follows the records writes them, and to be seen at once."""
    lines: list[str] = []
    for id_, item in records.items():
        record = Record(tenant, id_, version=1, fields=item)
        lines.append(f'{{"index":{{"_index":"{index}","_id":"{document_id(tenant, id_)}"}}}}')
        lines.append(document(SCHEMA, record, FIELDS))
    answer: Any = client.bulk(body="\n".join(lines) + "\n", params={"refresh": "true"})
    assert not answer["errors"], answer
