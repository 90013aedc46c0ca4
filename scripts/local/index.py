"""The search index as it is when every record's document has reached it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from handlers.aws.search_mapping import WrongIndex, create_index
from handlers.effects.documents import document, document_id
from handlers.jobs.words.record_schema import RecordSchema
from handlers.settings import PREFIX, EffectSettings, WorkSettings
from scripts.opensearch.client import client_of

from .errors import LocalError

if TYPE_CHECKING:
    from mypy_boto3_ecs import ECSClient
    from opensearchpy import OpenSearch

BATCH: Final = 1000
"""Documents of one bulk request."""


def effects_of(ecs: ECSClient, task_definition: str) -> EffectSettings:
    """What the deployed workers are told of the index."""
    answer = ecs.describe_task_definition(taskDefinition=task_definition)
    [container] = answer["taskDefinition"].get("containerDefinitions", [])
    told = {entry["name"]: entry["value"] for entry in container.get("environment", [])}
    variables = {name: value for name, value in told.items() if name.startswith(PREFIX)}
    return WorkSettings.from_env(variables).effects


def create(url: str, effects: EffectSettings) -> bool:
    """Make an empty index, also in place of one with other fields; false when there is the right
    one."""
    with client_of(url) as client:
        try:
            return create_index(client, effects.search_index, RecordSchema(), effects.search_fields)
        except WrongIndex:
            for name in client.indices.get_mapping(index=effects.search_index):
                client.indices.delete(index=name)
            return create_index(client, effects.search_index, RecordSchema(), effects.search_fields)


def fill(
    url: str,
    effects: EffectSettings,
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
            _send(client, effects, batch)
            filled(len(batch))
            count += len(batch)
    return count


def _send(client: OpenSearch, effects: EffectSettings, batch: Sequence[Mapping[str, Any]]) -> None:
    answer = client.bulk(
        body="\n".join(line for item in batch for line in _lines(item, effects)) + "\n",
        index=effects.search_index,
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


def _lines(item: Mapping[str, Any], effects: EffectSettings) -> Iterator[str]:
    schema = RecordSchema()
    tenant, record_id = item[schema.tenant], item[schema.id]
    record = schema.record(tenant, record_id, item)
    yield (
        f'{{"index":{{"_id":"{document_id(tenant, record_id)}",'
        f'"version":{record.version},"version_type":"external"}}}}'
    )
    yield document(schema, record, effects.search_fields)
