"""The real search client over a transport that answers what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import urllib3

from handlers.aws.search_mapping import index_body
from handlers.effects.search_client import Connection, search_client
from handlers.effects.search_index import SearchIndex
from handlers.jobs.words.record_schema import RecordSchema
from handlers.testing.runtime import ManualRuntime

INDEX: Final = "records"


@dataclass(frozen=True)
class Reply:
    body: object
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes
    headers: Mapping[str, str]

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]

    def actions(self) -> list[tuple[str, dict[str, Any], Any]]:
        """Of a bulk request: verb, its options, and the document or None."""
        found = []
        lines = iter(self.lines())
        for line in lines:
            [(verb, options)] = line.items()
            found.append((verb, options, None if verb == "delete" else next(lines)))
        return found


@dataclass
class Transport:
    """What takes the place of the network: each request's answer, or the error it meets."""

    answer: Callable[[Request], Reply]
    requests: list[Request] = field(default_factory=list)
    """Without the looks at the mapping."""
    mapping: Reply = Reply({INDEX: index_body(RecordSchema(), {})})
    looks: int = 0

    def urlopen(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], **_: object
    ) -> urllib3.HTTPResponse:
        request = Request(method, url, body or b"", dict(headers))
        if url.endswith("/_mapping"):
            self.looks += 1
            reply = self.mapping
        else:
            self.requests.append(request)
            reply = self.answer(request)
        return urllib3.HTTPResponse(
            body=json.dumps(reply.body).encode(),
            headers={"content-type": "application/json", **reply.headers},
            status=reply.status,
        )

    def bulks(self) -> list[Request]:
        return [request for request in self.requests if "/_bulk" in request.path]


def sink_over(transport: Transport, runtime: ManualRuntime | None = None) -> SearchIndex:
    class Fake(Connection):
        def _create_urllib3_pool(self) -> None:
            self.pool = transport

    client = search_client(
        "http://127.0.0.1:9200", credentials=None, region=None, connection_class=Fake
    )
    return SearchIndex(client, INDEX, RecordSchema(), runtime or ManualRuntime(), {})
