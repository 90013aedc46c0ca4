"""Powertools' idempotency around one creation: two AWS calls, and a memory of a day.

It keeps equal requests apart from each other and gives the first answer again; it is no lock.
What makes a job unique is its subject's lease, and the transaction that creates a job notes which
request did, so that a request whose first answer was never stored still finds its own job.
"""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import boto3
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyInconsistentStateError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)

from ..aws.clients import config as client_config
from ..jobs.transitions.idempotency import REMEMBERED
from ..jobs.words.errors import Transient
from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools.utilities.typing import LambdaContext

IN_PROGRESS_RETRY: Final = 1


def run(
    table: str,
    identity: str,
    request: str,
    context: LambdaContext,
    make: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """``make``'s answer, or the one it gave for the same identity before.

    identity: hash of tenant and key. request: hash of what was asked. Raises what ``make`` raises
    (then nothing is remembered), Problem, Transient.
    """
    config = IdempotencyConfig(
        event_key_jmespath="identity",
        payload_validation_jmespath="request",
        raise_on_no_idempotency_key=True,
        expires_after_seconds=REMEMBERED,
        hash_function="sha256",
        lambda_context=context,
    )

    made: list[dict[str, Any]] = []
    failed: list[Exception] = []

    def create(*, call: dict[str, str]) -> dict[str, Any]:  # noqa: ARG001  Powertools reads it
        try:
            made.append(make())
        except Exception as error:
            failed.append(error)
            raise
        return made[-1]

    remembered: Callable[..., dict[str, Any]] = idempotent_function(
        create,
        data_keyword_argument="call",
        persistence_store=_layer(table),
        config=config,
        # Named for good: without it a renamed function would forget every key.
        key_prefix="create-job",
    )
    try:
        return remembered(call={"identity": identity, "request": request})
    except IdempotencyValidationError as error:
        raise Problem(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "idempotency_key_reused",
            "this Idempotency-Key was used for a different request before",
            field="Idempotency-Key",
        ) from error
    except IdempotencyAlreadyInProgressError as error:
        raise Problem(
            HTTPStatus.CONFLICT,
            "in_progress",
            "an earlier request with this Idempotency-Key is still in progress",
            field="Idempotency-Key",
            retry_after=IN_PROGRESS_RETRY,
        ) from error
    except (IdempotencyInconsistentStateError, IdempotencyPersistenceLayerError) as error:
        # What was done is the answer, also when it could not be remembered.
        if made:
            return made[-1]
        raise (failed[-1] if failed else Transient(str(error))) from error


@cache
def _layer(table: str) -> DynamoDBPersistenceLayer:
    # A client of the default session: its own would read the service models once more.
    client = boto3.client("dynamodb", config=client_config())
    return DynamoDBPersistenceLayer(table_name=table, key_attr="id", boto3_client=client)
