"""The only place that makes clients and adapters."""

from __future__ import annotations

import os
from functools import cache, cached_property
from typing import TYPE_CHECKING

import boto3

from .aws.clients import config
from .aws.job_store import DynamoStore
from .aws.lane_queue import SqsLaneQueue
from .aws.record_store import DynamoRecordStore
from .aws.runtime import SystemRuntime
from .jobs.model import Lane
from .jobs.ports import World
from .jobs.record_schema import RecordSchema
from .operations import all_operations
from .settings import WorkSettings
from .telemetry import EmfTelemetry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .jobs.ports import PayloadStore


@cache
def work_settings() -> WorkSettings:
    """The settings of this process. Raises SettingsError, naming the variable."""
    return WorkSettings.from_env(os.environ)


@cache
def world(service: str, *, long_poll: bool = False, connections: int = 10) -> World:
    """Every port on AWS, as this process's environment says.

    service: the deployed part's name in logs. long_poll, connections: see ``aws.clients.config``.
    """
    settings = work_settings()
    runtime = SystemRuntime()
    schema = RecordSchema(tenant=settings.records_tenant_key, id=settings.records_id_key)
    dynamodb = boto3.client("dynamodb", config=config(connections=connections))
    sqs = boto3.client("sqs", config=config(long_poll=long_poll, connections=connections))
    return World(
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
            Lane.BULK: SqsLaneQueue(sqs, settings.bulk_queue_url),
        },
        payloads=_LazyPayloads(settings.payload_bucket),
        runtime=runtime,
        telemetry=EmfTelemetry(namespace=settings.metrics_namespace, service=service),
        operations=all_operations(),
        timing=settings.timing,
        limits=settings.limits,
        due_shards=settings.due_shards,
    )


class _LazyPayloads:
    """``PayloadStore`` whose client is made when it is first needed: most small jobs never do."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    def put(self, name: str, blocks: Iterable[bytes]) -> int:
        return self._store.put(name, blocks)

    def read(self, name: str, offset: int, length: int) -> bytes:
        return self._store.read(name, offset, length)

    def delete(self, name: str) -> None:
        self._store.delete(name)

    @cached_property
    def _store(self) -> PayloadStore:
        # S3's transfer code is slow to import.
        from .aws.payload_store import S3PayloadStore  # noqa: PLC0415

        return S3PayloadStore(boto3.client("s3", config=config()), self._bucket)
