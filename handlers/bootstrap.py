"""The only place that makes clients and adapters."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import boto3

from .aws.clients import config, s3_config
from .aws.job_store import DynamoStore
from .aws.lane_queue import SqsLaneQueue
from .aws.lazy import lazily
from .aws.record_store import DynamoRecordStore
from .aws.runtime import SystemRuntime
from .jobs.effects.sink_pause import pausing
from .jobs.words.event import ADDRESS, EVENT_BUS
from .jobs.words.job import Lane
from .jobs.words.ports import World
from .jobs.words.record_schema import RecordSchema
from .operations import all_operations
from .operations.registry import EVENT_BUS_SINK, SEARCH_INDEX, WEBHOOK
from .settings import WorkSettings
from .telemetry import EmfTelemetry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ecs import ECSClient
    from mypy_boto3_sqs import SQSClient
    from opensearchpy import OpenSearch
    from opensearchpy.serializer import Serializer

    from .jobs.words.ports import (
        LaneQueue,
        Listener,
        PayloadStore,
        RecordQuery,
        Runtime,
        Sink,
        Telemetry,
        UploadStore,
    )
    from .settings import EffectSettings


@cache
def work_settings() -> WorkSettings:
    """The settings of this process. Raises SettingsError, naming the variable."""
    return WorkSettings.from_env(os.environ)


@cache
def world(
    service: str, *, long_poll: bool = False, connections: int = 10, addresses: bool = False
) -> World:
    """Every port on AWS, as this process's environment says.

    service: the deployed part's name in logs. long_poll, connections: see ``aws.clients.config``.
    addresses: with the listener that calls the addresses named in requests.
    """
    settings = work_settings()
    telemetry = EmfTelemetry(namespace=settings.metrics_namespace, service=service)
    made = make_world(settings, telemetry, long_poll=long_poll, connections=connections)
    if addresses and settings.effects.notify:
        address = lazily(lambda: _address_listener(settings.effects, made.runtime))
        made = replace(made, listeners={**made.listeners, ADDRESS: address})
    return made


def make_world(
    settings: WorkSettings, telemetry: Telemetry, *, long_poll: bool = False, connections: int = 10
) -> World:
    """Every port on AWS, with clients of boto3's default session."""
    runtime = SystemRuntime()
    schema = RecordSchema(tenant=settings.records_tenant_key, id=settings.records_id_key)
    dynamodb = boto3.client("dynamodb", config=config(connections=connections))
    sqs = boto3.client("sqs", config=config(long_poll=long_poll, connections=connections))
    made = World(
        store=DynamoStore(
            dynamodb,
            control_table=settings.control_table,
            records_table=settings.records_table,
            schema=schema,
        ),
        records=DynamoRecordStore(
            dynamodb, table=settings.records_table, schema=schema, runtime=runtime
        ),
        queues={
            Lane.SMALL: SqsLaneQueue(sqs, settings.small_queue_url),
            Lane.BULK: _bulk_queue(settings, sqs, runtime, telemetry),
        },
        payloads=lazily(lambda: _payload_store(settings.payload_bucket)),
        runtime=runtime,
        telemetry=telemetry,
        operations=all_operations(settings.operations),
        timing=settings.timing,
        limits=settings.limits,
        due_shards=settings.due_shards,
        listeners=_listeners(settings.effects, runtime),
        address_problem=_address_problem(settings.effects),
        query=_query_of(settings, schema, dynamodb, runtime, connections),
        uploads=lazily(
            lambda: _upload_store(settings.payload_bucket, settings.limits.max_upload_bytes)
        ),
    )
    sinks = sinks_of(settings.effects, schema, runtime, connections=connections)
    return replace(made, sinks=pausing(made, sinks))


def _bulk_queue(
    settings: WorkSettings, sqs: SQSClient, runtime: Runtime, telemetry: Telemetry
) -> LaneQueue:
    queue = SqsLaneQueue(sqs, settings.bulk_queue_url)
    service = settings.bulk_service
    if service is None:
        return queue
    from .aws.wake import WakingQueue  # noqa: PLC0415  see sinks_of

    ecs: ECSClient = lazily(lambda: boto3.client("ecs", config=config()))
    return WakingQueue(queue, ecs, service, runtime, telemetry)


def sinks_of(
    settings: EffectSettings, schema: RecordSchema, runtime: Runtime, *, connections: int = 10
) -> Mapping[str, Sink]:
    """The sinks of a deployment, by the names that operations use. A sink's client is imported and
    made when the sink first delivers: most processes never do."""
    url, hook, bus = settings.search_url, settings.webhook_url, settings.event_bus
    sinks: dict[str, Sink] = {}
    if url is not None:
        sinks[SEARCH_INDEX] = lazily(
            lambda: _search_index(url, settings, schema, runtime, connections)
        )
    if hook is not None:
        sinks[WEBHOOK] = lazily(lambda: _webhook(hook, settings, runtime))
    if bus is not None:
        sinks[EVENT_BUS_SINK] = lazily(lambda: _event_bus(bus))
    return sinks


def _listeners(settings: EffectSettings, runtime: Runtime) -> Mapping[str, Listener]:
    bus = settings.event_bus
    return {} if bus is None else {EVENT_BUS: lazily(lambda: _bus_listener(bus, runtime))}


def _bus_listener(bus: str, runtime: Runtime) -> Listener:
    from .effects.listeners import BusListener  # noqa: PLC0415  see sinks_of

    return BusListener(boto3.client("events", config=config(attempts=1)), bus, runtime)


def _address_listener(settings: EffectSettings, runtime: Runtime) -> Listener:
    from .effects.listeners import AddressListener  # noqa: PLC0415  see sinks_of
    from .effects.secret import Secret  # noqa: PLC0415

    secret = Secret(secret_reader(settings), runtime)
    return AddressListener(secret, runtime, loopback=settings.webhook_loopback)


def _address_problem(settings: EffectSettings) -> Callable[[str], str | None] | None:
    if not settings.notify:
        return None

    def problem(url: str) -> str | None:
        from .effects.addresses import problem_of  # noqa: PLC0415  see sinks_of

        return problem_of(url, loopback=settings.webhook_loopback)

    return problem


def _search_index(
    url: str, settings: EffectSettings, schema: RecordSchema, runtime: Runtime, connections: int
) -> Sink:
    from .effects.search_index import SearchIndex  # noqa: PLC0415  see sinks_of

    client = _search_client(url, settings.search_region, connections)
    return SearchIndex(client, settings.search_index, schema, runtime, settings.search_fields)


def _search_client(
    url: str, region: str | None, connections: int, serializer: Serializer | None = None
) -> OpenSearch:
    from .effects.search_client import search_client  # noqa: PLC0415  see sinks_of

    session = boto3.Session()
    return search_client(
        url,
        credentials=session.get_credentials() if url.startswith("https://") else None,
        region=region or session.region_name,
        connections=connections,
        serializer=serializer,
    )


def _query_of(
    settings: WorkSettings,
    schema: RecordSchema,
    dynamodb: DynamoDBClient,
    runtime: Runtime,
    connections: int,
) -> RecordQuery:
    if settings.query.source == "search":
        return lazily(lambda: _search_query(settings, schema, runtime, connections))
    return lazily(lambda: _table_query(settings, schema, dynamodb))


def _table_query(
    settings: WorkSettings, schema: RecordSchema, dynamodb: DynamoDBClient
) -> RecordQuery:
    from .aws.table_query import TableQuery  # noqa: PLC0415  see sinks_of

    return TableQuery(dynamodb, settings.records_table, schema)


def _search_query(
    settings: WorkSettings, schema: RecordSchema, runtime: Runtime, connections: int
) -> RecordQuery:
    from .aws.search_query import RawNumbers, SearchQuery  # noqa: PLC0415  see sinks_of

    effects = settings.effects
    url = effects.search_url or ""  # WorkSettings requires one
    client = _search_client(url, effects.search_region, connections, RawNumbers())
    return SearchQuery(
        client,
        effects.search_index,
        schema,
        runtime,
        effects.search_fields,
        settings.query.order_field,
    )


def _webhook(url: str, settings: EffectSettings, runtime: Runtime) -> Sink:
    from .effects.secret import Secret  # noqa: PLC0415  see sinks_of
    from .effects.webhook import Webhook  # noqa: PLC0415

    secret = Secret(secret_reader(settings), runtime)
    return Webhook(url, secret, runtime, loopback=settings.webhook_loopback)


def secret_reader(settings: EffectSettings) -> Callable[[], str]:
    """Reads the secret that signs webhooks, and from which the keys of tenants are derived."""
    from .effects.secret import from_parameter, from_secrets_manager  # noqa: PLC0415

    if arn := settings.webhook_secret_arn:
        return partial(from_secrets_manager, boto3.client("secretsmanager", config=config()), arn)
    if name := settings.webhook_secret_parameter:
        return partial(from_parameter, boto3.client("ssm", config=config()), name)
    return lambda: settings.webhook_secret or ""


def _event_bus(bus: str) -> Sink:
    from .effects.event_bus import EventBus  # noqa: PLC0415

    return EventBus(boto3.client("events", config=config()), bus)


def _upload_store(bucket: str, max_bytes: int) -> UploadStore:
    from .aws.upload_store import S3UploadStore  # noqa: PLC0415  slow to import

    return S3UploadStore(boto3.client("s3", config=s3_config()), bucket, max_bytes=max_bytes)


def _payload_store(bucket: str) -> PayloadStore:
    # S3's transfer code is slow to import, and most small jobs never need it.
    from .aws.payload_store import S3PayloadStore  # noqa: PLC0415

    return S3PayloadStore(boto3.client("s3", config=s3_config()), bucket)
