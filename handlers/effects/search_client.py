"""The client of the search index: signed on AWS, plain on loopback, and never retrying by
itself: the rules decide when something is sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth, Urllib3HttpConnection
from opensearchpy.exceptions import TransportError
from opensearchpy.serializer import JSONSerializer

from .search_index import RETRY_AFTER

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from opensearchpy.serializer import Serializer

TIMEOUT: Final = 10
"""Seconds for one answer. A request and its effect's other calls stay well within
``effects.run.FRESH``."""
SERVICE: Final = "es"
BUSY: Final = (429, 503)


class Connection(Urllib3HttpConnection):
    """Keeps the Retry-After of a busy server, which the client drops."""

    def perform_request(self, *args: Any, **options: Any) -> Any:
        ignore = tuple(options.pop("ignore", ()))
        options["ignore"] = (*ignore, *BUSY)
        status, headers, body = super().perform_request(*args, **options)
        if status in BUSY and status not in ignore:
            info = {RETRY_AFTER: headers.get("retry-after"), "body": body[:500]}
            raise TransportError(status, "busy", info)
        return status, headers, body


def search_client(
    url: str,
    *,
    credentials: Credentials | None,
    region: str | None,
    connections: int = 10,
    serializer: Serializer | None = None,
    connection_class: type[Connection] = Connection,
) -> OpenSearch:
    """credentials, region: sign every request (SigV4); without, requests are plain. serializer:
    the one for JSON, in place of the client's own."""
    signer = Urllib3AWSV4SignerAuth(credentials, region, SERVICE) if credentials else None
    return OpenSearch(
        hosts=[url],
        connection_class=connection_class,
        http_auth=signer,
        timeout=TIMEOUT,
        max_retries=0,
        retry_on_timeout=False,
        pool_maxsize=connections,
        serializer=serializer or JSONSerializer(),
    )
