"""What each AWS error means: to a read, a send, a call with a receipt and a transaction."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from urllib3.exceptions import ProtocolError

from handlers.aws.errors import CODES, REASONS, reading, sending, using_receipt, writing
from handlers.jobs.words.errors import (
    Denied,
    FairlaneError,
    OutcomeUnknown,
    PayloadGone,
    Reason,
    ReceiptExpired,
    Refused,
    Transient,
    Why,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from handlers.jobs.words.writes import Item

Expected: TypeAlias = "type[FairlaneError] | Why | None"
"""An error; the one reason of a refusal; or None: raised as it is."""


def client_error(
    code: str, *, status: int = 400, retries: int = 0, headers: Any = None, **more: Any
) -> boto.ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": "said so"},
        "ResponseMetadata": {
            "HTTPStatusCode": status,
            "RetryAttempts": retries,
            "HTTPHeaders": headers or {},
        },
        **more,
    }
    return boto.ClientError(response, "AnyOperation")


def item_at(position: int, item: Mapping[str, Any]) -> Item:
    return {"position": position, **item}


def one_write(*, may_have_retried: bool = False) -> AbstractContextManager[None]:
    return writing([True], item_at, may_have_retried=may_have_retried)


def outcome(context: AbstractContextManager[None], error: Exception) -> Expected:
    with pytest.raises((FairlaneError, type(error))) as caught, context:
        raise error
    raised = caught.value
    if raised is error:
        return None
    assert isinstance(raised, FairlaneError)
    assert raised.__cause__ is not None
    if isinstance(raised, Refused):
        (reason,) = raised.reasons
        return reason.why if reason else None
    return type(raised)


DENIED: Final = (Denied, Denied, Denied, Denied)
PASSING: Final = (Transient, Transient, Transient, Transient)
UNKNOWN: Final = (Transient, OutcomeUnknown, Transient, OutcomeUnknown)
MISTAKE: Final = (None, None, None, None)

TABLE: Final[dict[str, tuple[Expected, Expected, Expected, Expected]]] = {
    # code: to a read, to a send, to a call with a receipt, to a lone write
    "ProvisionedThroughputExceededException": PASSING,
    "RequestLimitExceeded": PASSING,
    "ThrottlingException": PASSING,
    "Throttling": PASSING,
    "ThrottledException": PASSING,
    "RequestThrottled": PASSING,
    "RequestThrottledException": PASSING,
    "TooManyRequestsException": PASSING,
    "LimitExceededException": PASSING,
    "OverLimit": PASSING,
    "KmsThrottled": PASSING,
    "SlowDown": PASSING,
    "ExpiredToken": PASSING,
    "ExpiredTokenException": PASSING,
    "RequestExpired": PASSING,
    "InternalServerError": UNKNOWN,
    "InternalFailure": UNKNOWN,
    "InternalError": UNKNOWN,
    "ServiceUnavailable": UNKNOWN,
    "RequestTimeout": UNKNOWN,
    "RequestTimeoutException": UNKNOWN,
    "TransactionInProgressException": (Transient, Transient, Transient, OutcomeUnknown),
    "TransactionConflictException": (Transient, Transient, Transient, Why.CONFLICT),
    "ReplicatedWriteConflictException": (Transient, Transient, Transient, Why.CONFLICT),
    "ConditionalCheckFailedException": (None, None, None, Why.CONDITION),
    "TransactionCanceledException": (None, None, None, Why.CONDITION),
    "ValidationException": (None, None, None, Why.INVALID),
    "ItemCollectionSizeLimitExceededException": (None, None, None, Why.INVALID),
    "NoSuchKey": (PayloadGone, PayloadGone, PayloadGone, None),
    "InvalidRange": MISTAKE,
    "ReceiptHandleIsInvalid": (None, None, ReceiptExpired, None),
    "MessageNotInflight": (None, None, ReceiptExpired, None),
    "InvalidParameterValue": (None, None, ReceiptExpired, None),
    "InvalidParameterValueException": (None, None, ReceiptExpired, None),
    "AccessDenied": DENIED,
    "AccessDeniedException": DENIED,
    "KmsAccessDenied": DENIED,
    "KmsDisabled": DENIED,
    "KmsInvalidState": DENIED,
    "KmsOptInRequired": DENIED,
    "DisabledException": DENIED,
    "KMSInvalidStateException": DENIED,
    "DecryptionFailure": DENIED,
    "InvalidKeyId": DENIED,
    "UnauthorizedOperation": DENIED,
    "ResourceNotFoundException": MISTAKE,
    "NoSuchBucket": MISTAKE,
    "QueueDoesNotExist": MISTAKE,
    "IdempotentParameterMismatchException": MISTAKE,
    "UnrecognizedClientException": MISTAKE,
}


def test_the_table_is_whole() -> None:
    assert CODES.keys() <= TABLE.keys()


@pytest.mark.parametrize(("code", "expected"), TABLE.items(), ids=TABLE)
def test_a_code_means_what_may_be_concluded(code: str, expected: tuple[Expected, ...]) -> None:
    error = client_error(code, CancellationReasons=[{"Code": "ConditionalCheckFailed"}])
    contexts = (reading(), sending(), using_receipt(), one_write())
    assert tuple(outcome(context, error) for context in contexts) == expected


@pytest.mark.parametrize("prefix", ["AWS.SimpleQueueService.", "com.amazonaws.sqs#", "KMS."])
@pytest.mark.parametrize("code", CODES)
def test_c76_a_code_means_the_same_with_the_prefix_of_its_service(prefix: str, code: str) -> None:
    def outcomes(error: Exception) -> list[Expected]:
        contexts = (reading(), sending(), using_receipt(), one_write())
        return [outcome(context, error) for context in contexts]

    reasons = [{"Code": "ConditionalCheckFailed"}]
    bare = client_error(code, CancellationReasons=reasons)
    assert outcomes(client_error(prefix + code, CancellationReasons=reasons)) == outcomes(bare)


NETWORK: Final[dict[str, tuple[Exception, tuple[Expected, ...]]]] = {
    "connect time-out": (boto.ConnectTimeoutError(endpoint_url="x"), PASSING),
    "no connection": (boto.EndpointConnectionError(endpoint_url="x"), PASSING),
    "no proxy": (boto.ProxyConnectionError(proxy_url="x"), PASSING),
    "no credentials now": (boto.CredentialRetrievalError(provider="x", error_msg="y"), PASSING),
    "no metadata now": (boto.MetadataRetrievalError(error_msg="x"), PASSING),
    "read time-out": (boto.ReadTimeoutError(endpoint_url="x"), UNKNOWN),
    "connection closed": (boto.ConnectionClosedError(endpoint_url="x"), UNKNOWN),
    "transport broke": (boto.HTTPClientError(error="x"), UNKNOWN),
    "TLS broke": (boto.SSLError(endpoint_url="x", error=OSError()), UNKNOWN),
    "body broke off": (boto.ResponseStreamingError(error="x"), UNKNOWN),
    "body too short": (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), UNKNOWN),
    "raw protocol error": (ProtocolError("x"), UNKNOWN),
    "unreadable answer": (ResponseParserError("x"), UNKNOWN),
    "no credentials": (boto.NoCredentialsError(), MISTAKE),
    "bad parameters": (boto.ParamValidationError(report="x"), MISTAKE),
    "some 500": (client_error("500", status=500), UNKNOWN),
    "some 503": (client_error("Whatever", status=503), UNKNOWN),
    "not ours": (KeyError("x"), MISTAKE),
}


@pytest.mark.parametrize(("error", "expected"), NETWORK.values(), ids=NETWORK)
def test_what_the_network_does(error: Exception, expected: tuple[Expected, ...]) -> None:
    contexts = (reading(), sending(), using_receipt(), one_write())
    assert tuple(outcome(context, error) for context in contexts) == expected


@pytest.mark.parametrize("code", ["ThrottlingException", "ConditionalCheckFailedException"])
def test_a_write_refused_at_its_second_try_may_have_been_written_by_the_first(code: str) -> None:
    assert outcome(one_write(), client_error(code, retries=1)) is OutcomeUnknown
    assert outcome(one_write(), client_error(code, retries=0)) is not OutcomeUnknown


def test_no_connection_proves_nothing_when_the_client_retries() -> None:
    error = boto.EndpointConnectionError(endpoint_url="x")
    assert outcome(one_write(may_have_retried=True), error) is OutcomeUnknown
    assert outcome(one_write(may_have_retried=False), error) is Transient


def test_a_transaction_with_its_token_is_refused_at_any_try() -> None:
    error = client_error(
        "TransactionCanceledException", retries=2, CancellationReasons=[{"Code": "ThrottlingError"}]
    )
    assert outcome(one_write(), error) is Why.THROTTLED


HEADERS: Final[list[tuple[dict[str, str], int | None]]] = [
    ({"retry-after": "3"}, 3000),
    ({"retry-after": "0"}, 0),
    ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
    ({"retry-after": ""}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "expected"), HEADERS)
@pytest.mark.parametrize("context", [reading, sending, one_write])
def test_retry_after_is_handed_on(
    context: Callable[[], AbstractContextManager[None]],
    headers: dict[str, str],
    expected: int | None,
) -> None:
    error = client_error("SlowDown", status=503, headers=headers)
    with pytest.raises(Transient) as raised, context():
        raise error
    assert raised.value.retry_after_ms == expected


# --- cancelled transactions -------------------------------------------------------------------

WHYS: Final[dict[str, Why]] = {
    "ConditionalCheckFailed": Why.CONDITION,
    "TransactionConflict": Why.CONFLICT,
    "ProvisionedThroughputExceeded": Why.THROTTLED,
    "ThrottlingError": Why.THROTTLED,
    "ItemCollectionSizeLimitExceeded": Why.INVALID,
    "ValidationError": Why.INVALID,
}


def test_every_reason_is_known() -> None:
    assert REASONS == WHYS


@pytest.mark.parametrize("code", [*WHYS, "SomethingNew"])
def test_reasons_keep_their_places(code: str) -> None:
    error = client_error(
        "TransactionCanceledException",
        CancellationReasons=[
            {"Code": "None"},
            {"Code": code, "Message": "because", "Item": {"a": "b"}},
            {},
            {"Code": code},
        ],
    )
    with pytest.raises(Refused) as refused, writing([True] * 4, item_at, may_have_retried=False):
        raise error
    why = WHYS.get(code, Why.CONFLICT)
    assert refused.value.reasons == (
        None,
        Reason(why, {"position": 1, "a": "b"}, "because"),
        None,
        Reason(why, None, code),
    )


def test_contention_is_told_from_refusal() -> None:
    def refused(*codes: str) -> Refused:
        listed = [{"Code": code} for code in codes]
        error = client_error("TransactionCanceledException", CancellationReasons=listed)
        with pytest.raises(Refused) as raised, writing([True] * 2, item_at, may_have_retried=False):
            raise error
        return raised.value

    assert refused("None", "TransactionConflict").only_contention
    assert refused("ThrottlingError", "TransactionConflict").only_contention
    assert not refused("ConditionalCheckFailed", "TransactionConflict").only_contention


def test_a_transaction_that_is_wrong_as_a_whole_blames_the_suspects() -> None:
    context = writing([False, True, True], item_at, may_have_retried=False)
    with pytest.raises(Refused) as refused, context:
        raise client_error("ValidationException")
    whys = [reason and reason.why for reason in refused.value.reasons]
    assert whys == [None, Why.INVALID, Why.INVALID]


def test_a_refused_lone_write_shows_the_item() -> None:
    error = client_error("ConditionalCheckFailedException", Item={"a": "b"})
    with pytest.raises(Refused) as refused, one_write():
        raise error
    assert [reason and reason.item for reason in refused.value.reasons] == [
        {"position": 0, "a": "b"}
    ]
