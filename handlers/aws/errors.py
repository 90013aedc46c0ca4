"""The meaning of AWS errors. Only here do botocore's errors become Fairlane's.

A missing permission is Denied, and so is a KMS key that cannot be used: it passes once an operator
has granted it, or enabled the key. An error that is not in
the table (no such table, a malformed request) is a mistake in the deployment or the code, and is
raised as it is.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from ..jobs.words.errors import (
    Denied,
    OutcomeUnknown,
    PayloadGone,
    Reason,
    ReceiptExpired,
    Refused,
    Transient,
    Why,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..jobs.words.writes import Item


class Meaning(Enum):
    """The conclusion that an error allows."""

    THROTTLED = auto()
    """Refused for now; nothing happened."""
    DENIED = auto()
    """A permission is missing, or a KMS key cannot be used; nothing happened."""
    UNSENT = auto()
    """No connection; this try did nothing."""
    LOST = auto()
    """No usable answer; it may have happened."""
    IN_PROGRESS = auto()
    """An earlier try of the same request is being executed."""
    CONFLICT = auto()
    """Another transaction was on the item."""
    CONDITION = auto()
    """The condition of a single write did not hold."""
    CANCELLED = auto()
    """A transaction was refused, with reasons by position."""
    INVALID = auto()
    """The request can never be executed like this."""
    GONE = auto()
    """No such object."""
    PAST_END = auto()
    """A range that begins at or after the end of the object."""
    RECEIPT = auto()
    """The receipt handle is of no more use."""


CODES: Final[Mapping[str, Meaning]] = {
    "ProvisionedThroughputExceededException": Meaning.THROTTLED,
    "RequestLimitExceeded": Meaning.THROTTLED,
    "ThrottlingException": Meaning.THROTTLED,
    "Throttling": Meaning.THROTTLED,
    "ThrottledException": Meaning.THROTTLED,
    "RequestThrottled": Meaning.THROTTLED,
    "RequestThrottledException": Meaning.THROTTLED,
    "TooManyRequestsException": Meaning.THROTTLED,
    "LimitExceededException": Meaning.THROTTLED,
    "OverLimit": Meaning.THROTTLED,
    "KmsThrottled": Meaning.THROTTLED,
    "SlowDown": Meaning.THROTTLED,
    "ExpiredToken": Meaning.THROTTLED,
    "ExpiredTokenException": Meaning.THROTTLED,
    "RequestExpired": Meaning.THROTTLED,
    "AccessDenied": Meaning.DENIED,
    "AccessDeniedException": Meaning.DENIED,
    "KmsAccessDenied": Meaning.DENIED,
    "KmsDisabled": Meaning.DENIED,
    "KmsInvalidState": Meaning.DENIED,
    "KmsOptInRequired": Meaning.DENIED,
    "DisabledException": Meaning.DENIED,
    "KMSInvalidStateException": Meaning.DENIED,
    "DecryptionFailure": Meaning.DENIED,
    "InvalidKeyId": Meaning.DENIED,
    "UnauthorizedOperation": Meaning.DENIED,
    "InternalServerError": Meaning.LOST,
    "InternalFailure": Meaning.LOST,
    "InternalError": Meaning.LOST,
    "ServiceUnavailable": Meaning.LOST,
    "RequestTimeout": Meaning.LOST,
    "RequestTimeoutException": Meaning.LOST,
    "TransactionInProgressException": Meaning.IN_PROGRESS,
    "TransactionConflictException": Meaning.CONFLICT,
    "ReplicatedWriteConflictException": Meaning.CONFLICT,
    "ConditionalCheckFailedException": Meaning.CONDITION,
    "TransactionCanceledException": Meaning.CANCELLED,
    "ValidationException": Meaning.INVALID,
    "ItemCollectionSizeLimitExceededException": Meaning.INVALID,
    "NoSuchKey": Meaning.GONE,
    "InvalidRange": Meaning.PAST_END,
    "ReceiptHandleIsInvalid": Meaning.RECEIPT,
    "MessageNotInflight": Meaning.RECEIPT,
    "InvalidParameterValue": Meaning.RECEIPT,
    "InvalidParameterValueException": Meaning.RECEIPT,
}
"""Error codes of DynamoDB, SQS and S3. SQS says InvalidParameterValue to an expired handle and to
a visibility beyond the 12 hours; only calls with a receipt take it as that."""

REASONS: Final[Mapping[str, Why]] = {
    "ConditionalCheckFailed": Why.CONDITION,
    "TransactionConflict": Why.CONFLICT,
    "ProvisionedThroughputExceeded": Why.THROTTLED,
    "ThrottlingError": Why.THROTTLED,
    "ItemCollectionSizeLimitExceeded": Why.INVALID,
    "ValidationError": Why.INVALID,
}
"""Codes of a cancelled transaction's reasons (DynamoDB TransactionCanceledException)."""

_RAISED: Final = (boto.ClientError, boto.BotoCoreError, ResponseParserError, HTTPError)
_UNSENT: Final = (
    boto.ConnectTimeoutError,
    boto.EndpointConnectionError,
    boto.ProxyConnectionError,
    boto.CredentialRetrievalError,
    boto.MetadataRetrievalError,
)
_LOST: Final = (
    boto.HTTPClientError,  # read time-out, connection closed, TLS broken off
    boto.SSLError,
    boto.IncompleteReadError,
    ResponseParserError,
    HTTPError,
)
_TEMPORARY: Final = frozenset(
    {
        *(Meaning.THROTTLED, Meaning.DENIED, Meaning.UNSENT),
        *(Meaning.LOST, Meaning.IN_PROGRESS, Meaning.CONFLICT),
    }
)
_SERVER_FAULT: Final = 500


def meaning_of(error: Exception) -> Meaning | None:
    """The error's meaning; None for a mistake in the deployment or the code."""
    if isinstance(error, boto.ClientError):
        code = code_of(error)
        return CODES.get(code) or CODES.get(_unprefixed(code)) or _by_status(error)
    if isinstance(error, _UNSENT):
        return Meaning.UNSENT
    if isinstance(error, _LOST):
        return Meaning.LOST
    return None


def code_of(error: boto.ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def _unprefixed(code: str) -> str:
    """The code without the service that it may come with: ``AWS.SimpleQueueService.…``,
    ``com.amazonaws.sqs#…``."""
    return re.split("[.#]", code)[-1]


def _by_status(error: boto.ClientError) -> Meaning | None:
    status = _metadata(error).get("HTTPStatusCode", 0)
    return Meaning.LOST if status >= _SERVER_FAULT else None


@contextmanager
def reading() -> Iterator[None]:
    """For calls that may be repeated at will: an error that passes by itself is Transient."""
    try:
        yield
    except _RAISED as error:
        meaning = meaning_of(error)
        if meaning is Meaning.GONE:
            raise PayloadGone from error
        if meaning in _TEMPORARY:
            raise _transient(error) from error
        raise


@contextmanager
def sending() -> Iterator[None]:
    """For calls that must not be repeated blindly: no answer is OutcomeUnknown."""
    with reading():
        try:
            yield
        except _RAISED as error:
            if meaning_of(error) is Meaning.LOST:
                raise OutcomeUnknown(str(error)) from error
            raise


@contextmanager
def using_receipt() -> Iterator[None]:
    """For calls with a receipt handle."""
    with reading():
        try:
            yield
        except boto.ClientError as error:
            if meaning_of(error) is Meaning.RECEIPT:
                raise ReceiptExpired(str(error)) from error
            raise


@contextmanager
def writing(
    suspects: Sequence[bool],
    decode: Callable[[int, Mapping[str, Any]], Item],
    *,
    may_have_retried: bool,
) -> Iterator[None]:
    """For a transaction.

    suspects: for each write, whether it is to blame when the transaction is invalid as a whole
    (DynamoDB does not say which one it was). decode: the item at a position. may_have_retried: the
    client retries by itself, so that failing to connect does not prove that no earlier try got
    through.
    """
    try:
        yield
    except _RAISED as error:
        meaning = meaning_of(error)
        if isinstance(error, boto.ClientError):
            may_have_retried = _metadata(error).get("RetryAttempts", 0) > 0
        if meaning is Meaning.CANCELLED and isinstance(error, boto.ClientError):
            raise Refused(_reasons(error, decode)) from error
        if meaning is Meaning.INVALID:
            invalid = Reason(Why.INVALID, message=str(error))
            raise Refused([invalid if suspect else None for suspect in suspects]) from error
        if meaning in {Meaning.LOST, Meaning.IN_PROGRESS} or (meaning and may_have_retried):
            # A retry was refused: the first try may have been written, and be the reason.
            raise OutcomeUnknown(str(error)) from error
        if meaning in {Meaning.CONDITION, Meaning.CONFLICT}:
            why = Why.CONDITION if meaning is Meaning.CONDITION else Why.CONFLICT
            raise Refused([Reason(why, _item_of(error, decode), str(error))]) from error
        if meaning in _TEMPORARY:
            raise _transient(error) from error
        raise


def _reasons(
    error: boto.ClientError, decode: Callable[[int, Mapping[str, Any]], Item]
) -> list[Reason | None]:
    listed: list[dict[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]  # the stub knows only the common part
    return [_listed(position, entry, decode) for position, entry in enumerate(listed)]


def _listed(
    position: int, entry: Mapping[str, Any], decode: Callable[[int, Mapping[str, Any]], Item]
) -> Reason | None:
    code = entry.get("Code") or "None"
    if code == "None":
        return None
    item = entry.get("Item")
    # An unknown code must not fail a record for good: it is tried again.
    why = REASONS.get(code, Why.CONFLICT)
    return Reason(why, decode(position, item) if item else None, entry.get("Message") or code)


def _item_of(error: Exception, decode: Callable[[int, Mapping[str, Any]], Item]) -> Item | None:
    """The item as the condition of a single write saw it."""
    item = error.response.get("Item") if isinstance(error, boto.ClientError) else None
    return decode(0, item) if isinstance(item, dict) and item else None


def _transient(error: Exception) -> Transient:
    asked = None
    if isinstance(error, boto.ClientError):
        asked = _metadata(error).get("HTTPHeaders", {}).get("retry-after", "")
    seconds = int(asked) if asked and asked.isdecimal() else None
    kind = Denied if meaning_of(error) is Meaning.DENIED else Transient
    return kind(str(error), retry_after_ms=None if seconds is None else seconds * 1000)


def _metadata(error: boto.ClientError) -> Mapping[str, Any]:
    return error.response.get("ResponseMetadata", {})
