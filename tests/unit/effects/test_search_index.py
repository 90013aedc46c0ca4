"""The search index through the real client: each item's own status decides."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest
import urllib3
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from handlers.aws.search_mapping import TRUSTED, index_body
from handlers.effects.documents import document, document_id
from handlers.effects.search_client import Connection, search_client
from handlers.effects.search_index import MAX_BODY, SearchIndex
from handlers.jobs.words.effect import Batch, Projection
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import RecordSchema
from handlers.testing.runtime import START, ManualRuntime
from tests.support.search import Reply, Request, Transport, sink_over

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Value

TENANT: Final = "acme"


def there(id_: str, version: int = 1, **fields: Value) -> Projection:
    return Projection(id_, version, Record(TENANT, id_, version, fields))


def gone(id_: str, version: int = 1) -> Projection:
    return Projection(id_, version, None)


def batch(*records: Projection) -> Batch:
    return Batch("job", 0, TENANT, "set_fields", records)


def statuses(given: dict[str, int], **errors: dict[str, Any]) -> Transport:
    """Answers each item of a bulk with the status given for its record id, 200 by default."""
    names = {document_id(TENANT, id_): id_ for id_ in given}

    def answer(request: Request) -> Reply:
        if "/_bulk" not in request.path:
            docs = [{"_id": id_, "found": False} for id_ in json.loads(request.body)["ids"]]
            return Reply({"docs": docs})
        items = []
        for verb, options, _ in request.actions():
            id_ = names.get(options["_id"], "")
            status = given.get(id_, 200)
            said: dict[str, Any] = {"_id": options["_id"], "status": status}
            if status >= 400 and not (verb == "delete" and status == 404 and id_ not in errors):
                said["error"] = errors.get(id_, {"type": "some_exception", "reason": "it said so"})
            items.append({verb: said})
        return Reply({"errors": True, "items": items})

    return Transport(answer)


def ids_of(request: Request, *candidates: str) -> list[str]:
    names = {document_id(TENANT, id_): id_ for id_ in candidates}
    return [names[options["_id"]] for _, options, _ in request.actions()]


def test_c47_only_what_was_refused_for_now_is_sent_again() -> None:
    ids = ("ok", "busy", "away", "bad", "newer")
    transport = statuses({"busy": 429, "away": 503, "bad": 400, "newer": 409})
    sink = sink_over(transport)
    everything = batch(*(there(id_) for id_ in ids))

    first = sink.deliver(everything)
    assert first.again == {"busy", "away"}
    assert first.refused == {"bad": "some_exception: it said so"}
    assert first.newer.keys() == {"newer"}

    left = [each for each in everything.records if each.id in first.again]
    sink.deliver(replace(everything, records=left))
    assert [ids_of(request, *ids) for request in transport.bulks()] == [
        list(ids),
        ["busy", "away"],
    ]


def test_a_document_is_the_record_at_its_version_with_exact_numbers() -> None:
    transport = statuses({})
    exact = Decimal("12345678901234567890.123456789")
    sink_over(transport).deliver(
        batch(there("a", 7, price=exact, n=10**30, tags=["x", None], on=True), gone("b", 9))
    )

    [request] = transport.bulks()
    first, written, second = request.body.splitlines()
    options = {"version": 7, "version_type": "external_gte"}
    assert request.path == "/records/_bulk"
    target = {"_id": document_id(TENANT, "a")}
    assert json.loads(first) == {"index": {**target, **options}}
    assert json.loads(written, parse_float=Decimal) == {
        "price": exact,
        "n": 10**30,
        "tags": ["x", None],
        "on": True,
        "tenant": TENANT,
        "id": "a",
        "version": 7,
    }
    assert json.loads(second)["delete"] | options == json.loads(second)["delete"] | {
        "version": 7,
        "version_type": "external_gte",
    }
    assert json.loads(second)["delete"]["version"] == 9


def test_deleting_what_is_not_there_is_done() -> None:
    delivered = sink_over(statuses({"a": 404})).deliver(batch(gone("a")))
    assert (delivered.again, delivered.refused) == (frozenset(), {})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "index_closed_exception"),
        (404, "index_not_found_exception"),
        (403, "cluster_block_exception"),
        (403, "security_exception"),
        (500, "anything"),
        (429, "circuit_breaking_exception"),
    ],
)
@pytest.mark.parametrize("record", [there("a"), gone("a")])
def test_what_is_the_index_own_trouble_is_no_records_fault(
    status: int, kind: str, record: Projection
) -> None:
    error = {"type": kind, "reason": "not now"}
    delivered = sink_over(statuses({"a": status}, a=error)).deliver(batch(record))
    assert (set(delivered.again), dict(delivered.refused)) == ({"a"}, {})


@pytest.mark.parametrize("record", [there("a"), gone("a")])
def test_c100_an_item_is_refused_only_for_what_it_holds(record: Projection) -> None:
    error = {"type": "anything", "reason": "not now"}
    for status in sorted(set(range(400, 600)) - {400, 409, 413}):
        delivered = sink_over(statuses({"a": status}, a=error)).deliver(batch(record))
        assert (set(delivered.again), dict(delivered.refused)) == ({"a"}, {}), status


def test_why_a_document_does_not_fit_is_told() -> None:
    error = {
        "type": "mapper_parsing_exception",
        "reason": "failed to parse field [n]",
        "caused_by": {"reason": "not a number" * 100},
    }
    refused = sink_over(statuses({"a": 400}, a=error)).deliver(batch(there("a"))).refused
    assert refused["a"].startswith("mapper_parsing_exception: failed to parse field [n]: not a n")
    assert len(refused["a"]) == 300


@pytest.mark.parametrize("index", ["records", "records-000001"])
def test_c113_an_alias_is_looked_at_once_a_minute_and_an_index_each_time(index: str) -> None:
    """An alias can refuse to be made by a write; a plain index cannot."""
    runtime, transport = ManualRuntime(), statuses({})
    transport.mapping = Reply({index: index_body(RecordSchema(), {})})
    sink = sink_over(transport, runtime)
    for _ in range(3):
        sink.deliver(batch(there("a")))
    alias = index != "records"
    assert transport.looks == (1 if alias else 3)
    required = [request.path.endswith("?require_alias=true") for request in transport.requests]
    assert required == [alias] * 3
    runtime.sleep(TRUSTED)
    sink.deliver(batch(there("a")))
    assert transport.looks == (2 if alias else 4)


@pytest.mark.parametrize("version", [-1, 2**63])
def test_a_version_that_orders_nothing_is_refused_and_the_rest_sent(version: int) -> None:
    transport = statuses({})
    delivered = sink_over(transport).deliver(batch(there("a", version), there("b")))
    assert delivered.refused.keys() == {"a"}
    assert ids_of(transport.bulks()[0], "a", "b") == ["b"]


def test_nothing_to_send_is_no_request() -> None:
    transport = statuses({})
    sink_over(transport).deliver(batch(there("a", -1)))
    assert transport.requests == []


def test_a_large_chunk_goes_in_several_requests() -> None:
    transport = statuses({})
    big = "x" * (MAX_BODY // 4)
    sink_over(transport).deliver(batch(*(there(f"r{n}", text=big) for n in range(7))))
    assert [len(request.actions()) for request in transport.bulks()] == [3, 3, 1]
    assert all(len(request.body) <= MAX_BODY for request in transport.bulks())


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("said", "asked"),
    [("7", 7000), ("Tue, 14 Nov 2023 22:14:20 GMT", 60_000), ("soon", None), (None, None)],
)
def test_a_busy_index_is_asked_again_when_it_says(
    status: int, said: str | None, asked: int | None
) -> None:
    headers = {} if said is None else {"Retry-After": said}
    transport = Transport(lambda _: Reply({"error": "busy"}, status, headers))
    assert START == 1_700_000_000_000  # 22:13:20 on that day
    with pytest.raises(Transient) as raised:
        sink_over(transport, ManualRuntime()).deliver(batch(there("a")))
    assert raised.value.retry_after_ms == asked
    assert len(transport.requests) == 1


@pytest.mark.parametrize(
    "failure",
    [
        urllib3.exceptions.ReadTimeoutError(
            urllib3.HTTPConnectionPool("127.0.0.1"), "/", "timed out"
        ),
        urllib3.exceptions.ProtocolError("closed"),
    ],
)
def test_no_answer_is_tried_again_by_the_rules_alone(failure: Exception) -> None:
    def fails(_: Request) -> Reply:
        raise failure

    transport = Transport(fails)
    with pytest.raises(Transient):
        sink_over(transport).deliver(batch(there("a")))
    assert len(transport.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 413, 500, 502, 504])
def test_a_request_refused_as_a_whole_refuses_no_record(status: int) -> None:
    transport = Transport(lambda _: Reply({"error": {"type": "x", "reason": "y"}}, status))
    with pytest.raises(Transient, match=str(status)):
        sink_over(transport).deliver(batch(there("a")))


def held(**documents: tuple[int, int]) -> Transport:
    """Every versioned item conflicts; these are held, with their sequence numbers and terms."""
    found = {document_id(TENANT, id_): at for id_, at in documents.items()}

    def answer(request: Request) -> Reply:
        if request.path.endswith("/_bulk"):
            items = [
                {verb: {"status": 409 if "version" in options else 200}}
                for verb, options, _ in request.actions()
            ]
            return Reply({"items": items})
        assert request.path == "/records/_mget?_source=false"
        docs = []
        for id_ in json.loads(request.body)["ids"]:
            at = found.get(id_)
            more = {"_seq_no": at[0], "_primary_term": at[1], "found": True} if at else {}
            docs.append({"_id": id_, "found": False, **more})
        return Reply({"docs": docs})

    return Transport(answer)


def test_what_is_of_a_deleted_record_is_written_over_and_nothing_newer_is() -> None:
    transport = held(live=(4, 1), dead=(5, 2))
    sink = sink_over(transport)
    sent = batch(there("live", 1), gone("dead", 1), there("forgotten", 1), gone("nothing", 1))

    newer = sink.deliver(sent).newer
    assert newer == {
        "live": {"if_seq_no": 4, "if_primary_term": 1},
        "dead": {"if_seq_no": 5, "if_primary_term": 2},
        "forgotten": None,
        "nothing": None,
    }
    delivered = sink.deliver(replace(sent, instead_of=newer))
    assert (delivered.again, delivered.newer) == (frozenset(), {})
    assert [
        (verb, {k: v for k, v in options.items() if not k.startswith("_")}, bool(written))
        for verb, options, written in transport.bulks()[1].actions()
    ] == [
        ("index", {"if_seq_no": 4, "if_primary_term": 1}, True),
        ("delete", {"if_seq_no": 5, "if_primary_term": 2}, False),
        ("create", {}, True),
    ]


TEXT = st.text(st.characters(codec="utf-8"), max_size=256)


@given(st.tuples(TEXT, TEXT), st.tuples(TEXT, TEXT))
def test_two_records_never_share_a_document(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (document_id(*one) == document_id(*other)) == (one == other)
    assert len(document_id(*one)) <= 512


@pytest.mark.parametrize(
    ("one", "other"), [(("a", "bc"), ("ab", "c")), (("1:a", "b"), ("1", ":ab"))]
)
def test_where_the_tenant_ends_is_part_of_the_id(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert document_id(*one) != document_id(*other)


def test_what_a_teams_own_table_may_hold_has_a_form() -> None:
    fields: Any = {"s": {"b", "a"}, "n": {Decimal("1.5"), 2}, "b": b"\x00\xff"}
    written = document(RecordSchema(), Record(TENANT, "a", 1, fields), {})
    assert json.loads(written) == {
        "s": ["a", "b"],
        "n": [1.5, 2],
        "b": "AP8=",
        "tenant": TENANT,
        "id": "a",
        "version": 1,
    }


def test_a_teams_own_key_names_are_the_documents() -> None:
    schema = RecordSchema(tenant="customer", id="sku")
    record = Record(TENANT, "a", 1, {"tenant": "theirs", "id": 5})
    assert json.loads(document(schema, record, {})) == {
        "tenant": "theirs",
        "id": 5,
        "customer": TENANT,
        "sku": "a",
        "version": 1,
    }


def test_requests_are_signed_on_aws() -> None:
    transport = Transport(lambda _: Reply({"items": [{"index": {"status": 200}}]}))

    class Fake(Connection):
        def _create_urllib3_pool(self) -> None:
            self.pool = transport

    client = search_client(
        "https://search.example",
        credentials=Credentials("key", "secret", "session"),
        region="eu-west-1",
        connection_class=Fake,
    )
    SearchIndex(client, "records", RecordSchema(), ManualRuntime(), {}).deliver(batch(there("a")))
    headers = transport.requests[0].headers
    assert "/eu-west-1/es/aws4_request" in headers["Authorization"]
    assert headers["X-Amz-Security-Token"] == "session"
    assert "authorization" not in {name.lower() for name in _plain_headers()}


def _plain_headers() -> dict[str, str]:
    transport = statuses({})
    sink_over(transport).deliver(batch(there("a")))
    return dict(transport.requests[0].headers)
