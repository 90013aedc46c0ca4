"""The calls the AWS adapters make, and answers moto never gives."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from botocore.stub import ANY

from handlers.aws.attributes import decode
from handlers.aws.clients import LONGEST_POLL, config, retries_by_itself
from handlers.aws.expressions import condition_parameters, update_parameters
from handlers.jobs.words.errors import OutcomeUnknown, Reason, Refused, Transient, Why
from handlers.jobs.words.writes import (
    AnyOf,
    AtMost,
    Check,
    Delete,
    Differs,
    Equals,
    Key,
    Missing,
    Put,
    Table,
    Update,
)
from handlers.testing.runtime import ManualRuntime
from tests.support import aws
from tests.support.aws import stubbed

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Write

KEY: Final = Key("p", "s")
RECORD: Final = Key("acme", "1", Table.RECORDS)
PLACE: Final = {"TableName": aws.CONTROL, "Key": {"pk": {"S": "p"}, "sk": {"S": "s"}}}
ALL_OLD: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


# --- expressions ------------------------------------------------------------------------------


def test_conditions_are_spelled_with_placeholders() -> None:
    when = (
        Equals("size", 1),
        AnyOf((Missing("a.b"), AtMost("a.b", Decimal("0.5")))),
        Differs("size", "x"),
    )
    assert condition_parameters(when) == {
        "ConditionExpression": (
            "#0 = :0 AND (attribute_not_exists(#1) OR #1 <= :1)"
            " AND (attribute_not_exists(#0) OR #0 <> :2)"
        ),
        "ExpressionAttributeNames": {"#0": "size", "#1": "a.b"},
        "ExpressionAttributeValues": {":0": {"N": "1"}, ":1": {"N": "0.5"}, ":2": {"S": "x"}},
    }


def test_no_condition_is_no_parameter() -> None:
    assert condition_parameters(()) == {}


def test_updates_name_each_attribute_once() -> None:
    update = Update(KEY, {"a": "x"}, {"n": -1}, ("gone",), (Equals("a", "y"),))
    assert update_parameters(update) == {
        "UpdateExpression": "SET #0 = :0 ADD #1 :1 REMOVE #2",
        "ConditionExpression": "#0 = :2",
        "ExpressionAttributeNames": {"#0": "a", "#1": "n", "#2": "gone"},
        "ExpressionAttributeValues": {":0": {"S": "x"}, ":1": {"N": "-1"}, ":2": {"S": "y"}},
    }


# --- which call a write goes as ---------------------------------------------------------------

ONE_IF: Final = (Missing("pk"),)
IF_MISSING: Final = {
    "ConditionExpression": "attribute_not_exists(#0)",
    "ExpressionAttributeNames": {"#0": "pk"},
}
LONE: Final[dict[str, tuple[Write, dict[str, Any]]]] = {
    "put_item": (
        Put(KEY, {"a": 1}, ONE_IF),
        {
            "TableName": aws.CONTROL,
            "Item": {"pk": {"S": "p"}, "sk": {"S": "s"}, "a": {"N": "1"}},
            **IF_MISSING,
            **ALL_OLD,
        },
    ),
    "update_item": (
        Update(KEY, set={"a": 1}),
        {
            **PLACE,
            "UpdateExpression": "SET #0 = :0",
            "ExpressionAttributeNames": {"#0": "a"},
            "ExpressionAttributeValues": {":0": {"N": "1"}},
            **ALL_OLD,
        },
    ),
    "delete_item": (Delete(KEY, ONE_IF), {**PLACE, **IF_MISSING, **ALL_OLD}),
}


@pytest.mark.parametrize(("method", "lone"), LONE.items(), ids=LONE)
def test_a_lone_write_is_a_single_call(method: str, lone: tuple[Write, dict[str, Any]]) -> None:
    write, expected = lone
    made = aws.clients()
    with stubbed(made.dynamodb) as stub:
        stub.add_response(method, {}, expected)
        aws.job_store(made).transact("lone", [write])


@pytest.mark.parametrize("write", [Check(KEY, ONE_IF), Update(KEY, add={"n": 1})], ids=str)
def test_a_lone_check_or_counter_is_a_transaction(write: Write) -> None:
    """Repeated by the SDK after a lost reply, a bare counter would count twice."""
    made = aws.clients()
    with stubbed(made.dynamodb) as stub:
        stub.add_response(
            "transact_write_items", {}, {"TransactItems": ANY, "ClientRequestToken": ANY}
        )
        aws.job_store(made).transact("lone", [write])


def test_every_transaction_has_its_own_token() -> None:
    made = aws.clients()
    tokens: list[str] = []
    with stubbed(made.dynamodb) as stub:
        for _ in range(2):
            stub.add_response("transact_write_items", {})

        def note(params: dict[str, Any], **_: object) -> None:
            tokens.append(params["ClientRequestToken"])

        event = "provide-client-params.dynamodb.TransactWriteItems"
        made.dynamodb.meta.events.register(event, note)
        for _ in range(2):
            aws.job_store(made).transact("two", [Put(KEY, {}), Put(RECORD, {})])
        made.dynamodb.meta.events.unregister(event, note)
    assert len(set(tokens)) == 2
    assert all(1 <= len(token) <= 36 for token in tokens)


def test_reasons_carry_items_of_their_own_table() -> None:
    made = aws.clients()
    with stubbed(made.dynamodb) as stub:
        stub.add_client_error(
            "transact_write_items",
            "TransactionCanceledException",
            modeled_fields={
                "CancellationReasons": [
                    {"Code": "None"},
                    {
                        "Code": "ConditionalCheckFailed",
                        "Message": "no",
                        "Item": {"tenant": {"S": "acme"}, "id": {"S": "1"}, "pk": {"N": "1.50"}},
                    },
                ]
            },
        )
        with pytest.raises(Refused) as refused:
            aws.job_store(made).transact("two", [Put(KEY, {}), Put(RECORD, {})])
    reason = Reason(Why.CONDITION, {"pk": Decimal("1.50")}, "no")
    assert refused.value.reasons == (None, reason)


SUSPECTS: Final[list[tuple[list[Write], list[bool]]]] = [
    ([Put(KEY, {}), Put(RECORD, {}), Delete(Key("acme", "2", Table.RECORDS))], [False, True, True]),
    ([Put(KEY, {}), Check(Key("p", "t"), ONE_IF)], [True, True]),
    ([Put(KEY, {})], [True]),
]


@pytest.mark.parametrize(("writes", "blamed"), SUSPECTS)
def test_records_are_blamed_for_a_transaction_that_is_too_large(
    writes: list[Write], blamed: list[bool]
) -> None:
    made = aws.clients()
    with stubbed(made.dynamodb) as stub:
        method = "put_item" if len(writes) == 1 else "transact_write_items"
        stub.add_client_error(method, "ValidationException", "more than 4 MB")
        with pytest.raises(Refused, match="invalid") as refused:
            aws.job_store(made).transact("large", writes)
    assert [bool(reason) for reason in refused.value.reasons] == blamed


def test_a_lost_reply_of_a_write_is_unknown_and_of_a_read_transient() -> None:
    made = aws.clients()
    store = aws.job_store(made)
    with stubbed(made.dynamodb) as stub:
        for method in ("put_item", "get_item", "query"):
            stub.add_client_error(method, "InternalServerError", http_status_code=500)
        with pytest.raises(OutcomeUnknown):
            store.transact("lone", [Put(KEY, {})])
        with pytest.raises(Transient):
            store.get(KEY)
        with pytest.raises(Transient):
            store.query_partition("p", sk_prefix="x")


def test_reads_are_strongly_consistent() -> None:
    made = aws.clients()
    with stubbed(made.dynamodb) as stub:
        stub.add_response("get_item", {}, {**PLACE, "ConsistentRead": True})
        assert aws.job_store(made).get(KEY) is None


# --- records ----------------------------------------------------------------------------------


def record_keys(*ids: str) -> list[dict[str, Any]]:
    return [{"tenant": {"S": "acme"}, "id": {"S": record_id}} for record_id in ids]


def batch(*ids: str) -> dict[str, Any]:
    return {"RequestItems": {aws.RECORDS: {"Keys": record_keys(*ids), "ConsistentRead": True}}}


def batch_answer(*ids: str, left: tuple[str, ...] = ()) -> dict[str, Any]:
    unread = {aws.RECORDS: {"Keys": record_keys(*left), "ConsistentRead": True}} if left else {}
    return {"Responses": {aws.RECORDS: record_keys(*ids)}, "UnprocessedKeys": unread}


def test_unprocessed_keys_are_read_again() -> None:
    made, runtime = aws.clients(), ManualRuntime()
    with stubbed(made.dynamodb) as stub:
        stub.add_response(
            "batch_get_item", batch_answer("1", left=("2", "3")), batch("1", "2", "3")
        )
        stub.add_response("batch_get_item", batch_answer(left=("2", "3")), batch("2", "3"))
        stub.add_response("batch_get_item", batch_answer("3", left=("2",)), batch("2", "3"))
        stub.add_response("batch_get_item", batch_answer("2"), batch("2"))
        found = aws.record_store(made, runtime).read("acme", ["1", "2", "3"])
    assert set(found) == {"1", "2", "3"}


def test_keys_that_stay_unprocessed_are_transient() -> None:
    made, runtime = aws.clients(), ManualRuntime()
    began = runtime.now()
    with stubbed(made.dynamodb) as stub:
        for _ in range(5):
            stub.add_response("batch_get_item", batch_answer(left=("1",)), batch("1"))
        with pytest.raises(Transient, match="unread"):
            aws.record_store(made, runtime).read("acme", ["1"])
    assert runtime.now() > began


# --- payloads and values ----------------------------------------------------------------------


def test_a_large_payload_goes_in_parts() -> None:
    with aws.moto() as made:
        aws.payload_store(made).put("large", [b"x" * 999_983] * 20)
        tag = made.s3.head_object(Bucket=aws.BUCKET, Key="payloads/large")["ETag"]
    assert tag.endswith('-3"')


def test_a_whole_number_of_too_many_digits_is_read_exactly() -> None:
    digits = "1" + "0" * 100
    read: Any = decode({"n": {"N": digits}})["n"]
    assert isinstance(read, Decimal)
    assert read == int(digits)


# --- clients ----------------------------------------------------------------------------------


def test_a_long_poll_ends_before_the_client_gives_up() -> None:
    worker: Any = config(long_poll=True)
    assert worker.read_timeout > LONGEST_POLL
    assert worker.connect_timeout < LONGEST_POLL


def test_a_client_that_tries_once_is_known() -> None:
    once = config(attempts=1)
    for configured, expected in ((once, False), (config(), True), (None, True)):
        client = boto3.client("dynamodb", region_name=aws.REGION, config=configured)
        assert retries_by_itself(client) is expected
