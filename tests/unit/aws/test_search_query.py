"""What a search sends, and what it makes of answers that a healthy engine seldom gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
import urllib3

from handlers.aws.search_mapping import TRUSTED, index_body
from handlers.aws.search_query import RawNumbers, SearchQuery
from handlers.effects.search_client import Connection, search_client
from handlers.jobs.words.errors import Denied, QueryRefused, Transient
from handlers.jobs.words.filters import Filter
from handlers.jobs.words.record_schema import RecordSchema
from handlers.testing.runtime import ManualRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FILTER: Final = Filter.from_json(
    '{"all": [{"field": "price", "op": "gt", "value": 12345678901234567890.10}]}'
)
FIELDS: Final = {"made": "number", "price": "number"}
MAPPING: Final = json.dumps({"records": index_body(RecordSchema(), FIELDS)})
SHARDS: Final = '"timed_out":false,"_shards":{"total":1,"successful":1,"failed":0}'
COUNTED: Final = '"_shards":{"total":1,"successful":1,"failed":0}'


class Wire:
    """What takes the place of the network: text in, text out. The look at the mapping is answered
    beside the others."""

    def __init__(self, *answers: str, status: int = 200, mapping: str = MAPPING) -> None:
        self._answers = list(answers)
        self._mapping = mapping
        self.looks = 0
        self._status = status
        self.sent: list[str] = []
        self.urls: list[str] = []
        self.headers: list[Mapping[str, str]] = []

    def urlopen(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], **_: object
    ) -> urllib3.HTTPResponse:
        if url.endswith("/_mapping"):
            self.looks += 1
            return self._answer(self._mapping, 200)
        self.sent.append((body or b"").decode())
        self.urls.append(url)
        self.headers.append(headers)
        return self._answer(self._answers.pop(0), self._status)

    def _answer(self, text: str, status: int) -> urllib3.HTTPResponse:
        headers = {"content-type": "application/json"}
        return urllib3.HTTPResponse(body=text.encode(), headers=headers, status=status)


def query_over(wire: Any, *, credentials: Any = None) -> SearchQuery:
    class Fake(Connection):
        def _create_urllib3_pool(self) -> None:
            self.pool = wire

    client = search_client(
        "https://search.example" if credentials else "http://127.0.0.1:9200",
        credentials=credentials,
        region="eu-west-1" if credentials else None,
        connection_class=Fake,
        serializer=RawNumbers(),
    )
    return SearchQuery(client, "records", RecordSchema(), ManualRuntime(), FIELDS, "made")


def page(*sorts: str) -> str:
    hits = ",".join(f'{{"_id":"x","sort":{sort}}}' for sort in sorts)
    return f'{{{SHARDS},"hits":{{"hits":[{hits}]}}}}'


CURSORS: Final = [
    '[9223372036854775807,"a"]',
    '[-9223372036854775808,"a"]',
    '[1.7976931348623157E308,"a"]',
    '[1.0E-5,"a"]',
    '[0.1000,"a"]',
    '["Infinity","a"]',
    '[null,"a"]',
    '["\\u00e9\\ud83d\\ude00","\\u05d0"]',
]


@pytest.mark.parametrize("cursor", CURSORS)
def test_c43_a_cursor_goes_back_as_it_came(cursor: str) -> None:
    wire = Wire(page(cursor), page())
    query = query_over(wire)
    first = query.page("acme", FILTER, None, 1)
    assert first.next == first.found[0].cursor
    query.page("acme", FILTER, first.next, 1)
    assert "search_after" not in wire.sent[0]
    assert f'"search_after":{cursor}' in wire.sent[1]


def test_c102_the_mapping_is_looked_at_before_a_query_and_trusted_for_a_while() -> None:
    wire = Wire(*[page()] * 3)
    query = query_over(wire)
    for looks, waits in ((1, 0), (1, TRUSTED - 1), (2, 1)):
        query.runtime.sleep(waits)
        query.page("acme", FILTER, None, 10)
        assert wire.looks == looks


def test_c102_a_mapping_that_is_wrong_is_looked_at_again_and_no_query_is_sent() -> None:
    wire = Wire(mapping='{"records":{"mappings":{}}}')
    query = query_over(wire)
    for looks in (1, 2):
        with pytest.raises(QueryRefused, match="would miss records"):
            query.page("acme", FILTER, None, 10)
        assert (wire.looks, wire.sent) == (looks, [])


def test_numbers_are_sent_exactly_and_the_tenant_always() -> None:
    wire = Wire(page(), f'{{{COUNTED},"count":0}}')
    query = query_over(wire)
    query.page("acme", FILTER, None, 10)
    query.count("acme", FILTER, 10)
    for sent in wire.sent:
        assert '"gte":12345678901234567890.1' in sent
        assert {"term": {"tenant": "acme"}} in json.loads(sent)["query"]["bool"]["filter"]
    assert all(url.startswith("/records/_") for url in wire.urls)
    assert "allow_partial_search_results=false" in wire.urls[0]


def test_requests_are_signed_where_there_are_credentials() -> None:
    from botocore.credentials import Credentials  # noqa: PLC0415  only here

    signed, plain = Wire(page()), Wire(page())
    query_over(signed, credentials=Credentials("key", "secret")).page("acme", FILTER, None, 1)
    query_over(plain).page("acme", FILTER, None, 1)
    [headers] = signed.headers
    assert "AWS4-HMAC-SHA256" in str(headers)
    assert "authorization" not in {name.lower() for name in plain.headers[0]}


PARTIAL: Final = [
    '{"timed_out":true,"_shards":{"failed":0},"hits":{"hits":[]}}',
    '{"timed_out":false,"_shards":{"failed":1},"hits":{"hits":[]}}',
]


@pytest.mark.parametrize("answer", PARTIAL)
def test_an_answer_in_part_is_none(answer: str) -> None:
    with pytest.raises(Transient, match="in part"):
        query_over(Wire(answer)).page("acme", FILTER, None, 1)


def test_a_count_in_part_is_none() -> None:
    with pytest.raises(Transient, match="in part"):
        query_over(Wire('{"count":3,"_shards":{"failed":2}}')).count("acme", FILTER, 10)


ERROR: Final = (
    '{"error":{"type":"search_phase_execution_exception",'
    '"root_cause":[{"type":"query_shard_exception","reason":"failed on price"}]},"status":400}'
)


@pytest.mark.parametrize(
    ("status", "kind", "why"),
    [
        (400, QueryRefused, "failed on price"),
        (401, Denied, "does not let this role in"),
        (403, Denied, "does not let this role in"),
        (404, QueryRefused, "no search index 'records'"),
        (429, Transient, ""),
        (500, Transient, ""),
        (502, Transient, ""),
        (503, Transient, ""),
        (504, Transient, ""),
    ],
)
def test_what_an_error_means(status: int, kind: type[Exception], why: str) -> None:
    ask: list[Callable[[SearchQuery], object]] = [
        lambda query: query.page("acme", FILTER, None, 1),
        lambda query: query.count("acme", FILTER, 1),
    ]
    for call in ask:
        with pytest.raises(kind) as caught:
            call(query_over(Wire(ERROR, status=status)))
        assert why in str(caught.value)


def test_a_role_that_may_search_but_not_read_the_mapping_is_denied() -> None:
    """As those of 0.1.0 could, by a domain's own policy."""

    class Closed(Wire):
        def urlopen(self, method: str, url: str, *rest: Any, **more: Any) -> urllib3.HTTPResponse:
            if url.endswith("/_mapping"):
                return self._answer('{"message": "no permissions"}', 403)
            return super().urlopen(method, url, *rest, **more)

    with pytest.raises(Denied):
        query_over(Closed(page('["a"]'))).page("acme", FILTER, None, 1)


def test_nobody_answering_is_temporary() -> None:
    class Deaf:
        def urlopen(self, *_: object, **__: object) -> None:
            raise urllib3.exceptions.NewConnectionError(None, "refused")  # type: ignore[arg-type]  # of no connection

    with pytest.raises(Transient, match="search index"):
        query_over(Deaf()).page("acme", FILTER, None, 1)


@pytest.mark.parametrize("sort", ["[1,null]", "[1,7]", "[1,7.5]"])
def test_an_index_without_record_ids_is_refused(sort: str) -> None:
    with pytest.raises(QueryRefused, match="keywords"):
        query_over(Wire(page(sort))).page("acme", FILTER, None, 1)
