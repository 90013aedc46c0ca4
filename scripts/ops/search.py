"""The search index of a deployment, for operators' commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3

from handlers.effects.search_client import search_client
from handlers.jobs.words.record_schema import RecordSchema
from scripts.local.errors import LocalError

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

    from handlers.settings import WorkSettings


def client_of(settings: WorkSettings) -> OpenSearch:
    """A client with the caller's own credentials. Raises LocalError for a deployment without a
    search index."""
    url = settings.effects.search_url
    if url is None:
        raise LocalError("this deployment has no search index: set effects.search_url")
    session = boto3.Session()
    return search_client(
        url,
        credentials=session.get_credentials() if url.startswith("https://") else None,
        region=settings.effects.search_region or session.region_name,
    )


def schema_of(settings: WorkSettings) -> RecordSchema:
    return RecordSchema(tenant=settings.records_tenant_key, id=settings.records_id_key)
