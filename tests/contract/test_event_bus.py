"""The event bus through its real client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import boto3
import pytest
from botocore.stub import ANY, Stubber

from handlers.aws.clients import config
from handlers.effects.event_bus import EventBus
from handlers.jobs.words.effect import Batch, Projection
from handlers.jobs.words.errors import Denied, Transient

BATCH: Final = Batch("job", 96, "acme", "set_fields", [Projection("a", 2, None)])


@pytest.fixture
def bus() -> Iterator[tuple[EventBus, Stubber]]:
    client = boto3.client("events", region_name="eu-west-1", config=config())
    with Stubber(client) as stub:
        yield EventBus(client, "changes"), stub
        stub.assert_no_pending_responses()


def answer(**entry: str) -> dict[str, Any]:
    return {"FailedEntryCount": int("ErrorCode" in entry), "Entries": [entry]}


def test_a_chunk_is_one_event_with_its_key(bus: tuple[EventBus, Stubber]) -> None:
    sink, stub = bus
    expected = {
        "EventBusName": "changes",
        "Source": "fairlane",
        "DetailType": "Records Changed",
        "Detail": json.dumps(
            {
                "key": "job:96",
                "job_id": "job",
                "position": 96,
                "tenant": "acme",
                "operation": "set_fields",
                "records": [{"id": "a", "version": 2, "gone": True}],
            },
            separators=(",", ":"),
        ),
    }
    stub.add_response("put_events", answer(EventId="1"), {"Entries": [expected]})
    assert sink.deliver(BATCH).refused == {}


@pytest.mark.parametrize("code", ["MalformedDetail", "InvalidArgument"])
def test_what_can_never_be_taken_is_refused(bus: tuple[EventBus, Stubber], code: str) -> None:
    sink, stub = bus
    stub.add_response("put_events", answer(ErrorCode=code, ErrorMessage="bad"), {"Entries": ANY})
    assert sink.deliver(BATCH).refused == {"a": f"{code}: bad"}


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "InternalFailure", "AccessDeniedException", "SomethingNew"]
)
def test_any_other_failure_of_the_entry_is_tried_again(
    bus: tuple[EventBus, Stubber], code: str
) -> None:
    sink, stub = bus
    stub.add_response("put_events", answer(ErrorCode=code, ErrorMessage="no"), {"Entries": ANY})
    with pytest.raises(Transient, match=f"{code}: no"):
        sink.deliver(BATCH)


def test_a_throttled_call_is_tried_again(bus: tuple[EventBus, Stubber]) -> None:
    sink, stub = bus
    stub.add_client_error("put_events", "ThrottlingException", http_status_code=400)
    with pytest.raises(Transient):
        sink.deliver(BATCH)


def test_a_missing_right_is_waited_for_and_named(bus: tuple[EventBus, Stubber]) -> None:
    sink, stub = bus
    stub.add_client_error("put_events", "AccessDeniedException", http_status_code=400)
    with pytest.raises(Denied, match="AccessDenied"):
        sink.deliver(BATCH)
