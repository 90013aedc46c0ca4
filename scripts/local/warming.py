"""Functions started before anybody waits for one: it is seen at once whether they run, and a cold
start is not what a scenario measures."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message

from .api import Api
from .clients import Clients
from .errors import LocalError

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef as Mapping

API_CALLS: Final = 4
WARM_TENANT: Final = "warming"
WARM_S: Final = 600
"""For a function's first answer. A busy machine takes minutes to start so many processes at once;
only what hangs runs into it."""


def warm(clients: Clients, api: Api, *, every: bool) -> None:
    """One process of each function. every: one for each concurrent invocation a queue may make, and
    some for the API. Raises LocalError when a function cannot start or the API does not answer
    properly."""
    mappings = clients.lambda_.list_event_source_mappings()["EventSourceMappings"]
    calls = [mapping for mapping in mappings for _ in range(_concurrency(mapping) if every else 1)]
    requested = API_CALLS if every else 1
    with ThreadPoolExecutor(len(calls) + requested) as pool:
        # At the same time, so that each finds the others busy and starts a process of its own.
        queues = [pool.submit(look_up, clients, mapping["FunctionArn"]) for mapping in calls]
        requests = [pool.submit(_ask, api) for _ in range(requested)]
    _raise_first([future.exception() for future in (*queues, *requests)])


def _concurrency(mapping: Mapping) -> int:
    return mapping.get("ScalingConfig", {}).get("MaximumConcurrency", 1)


def look_up(clients: Clients, function: str) -> Any:
    """What the small lane's function answers to a message whose job does not exist.
    Raises LocalError when it does not run."""
    answer = clients.lambda_.invoke(FunctionName=function, Payload=json.dumps(_event()))
    said = answer["Payload"].read().decode(errors="replace")
    if answer.get("FunctionError"):
        raise LocalError(
            f"the function {function} does not run: {said}. Its output is in ministack.log"
        )
    return json.loads(said)


def _event() -> dict[str, object]:
    """A message to a job that does not exist: looked up, and dropped."""
    now = str(int(time.time() * 1000))
    return {
        "Records": [
            {
                "messageId": "warming",
                "receiptHandle": "warming",
                "body": Message(job_id="warming", lane=Lane.SMALL, group="warming").body,
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": now,
                    "ApproximateFirstReceiveTimestamp": now,
                },
                "eventSource": "aws:sqs",
            }
        ]
    }


def _ask(api: Api) -> None:
    answer = api.call("GET", "/v1/jobs", tenant=WARM_TENANT, timeout=WARM_S)
    if answer.status != 200:  # noqa: PLR2004 - what a list of no jobs answers
        raise LocalError(
            f"GET /v1/jobs answers {answer.status}: {answer.body}. The functions' output is in "
            "ministack.log"
        )


def _raise_first(errors: Sequence[BaseException | None]) -> None:
    for error in errors:
        if error:
            raise error
