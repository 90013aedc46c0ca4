"""The API's handler called in this process, with the settings of the benches' stack."""

from __future__ import annotations

import json
import os
import time
from contextlib import redirect_stdout
from secrets import token_hex
from types import ModuleType
from typing import Any

from handlers import bootstrap
from scripts.local.errors import LocalError

from .jobs import record_id
from .place import Place

ITEMS = 10
"""Ids of one small job."""


class Context:
    """What the function is told about its invocation."""

    aws_request_id = "bench"
    function_name = "api"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:eu-west-1:123456789012:function:api"

    def get_remaining_time_in_millis(self) -> int:
        return 28_000


def api_of(place: Place) -> ModuleType:
    """The module, for this stack and not for one before it."""
    place.deployment()  # puts the settings into the environment
    for kept in (bootstrap.work_settings, bootstrap.world):
        kept.cache_clear()
    from handlers import api  # noqa: PLC0415  what it makes, it makes of the environment

    return api


def create(api: Any, tenant: str) -> tuple[float, str]:
    """Seconds of one create, and the job's id."""
    event = _event(tenant)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):  # noqa: PTH123  a device
        start = time.perf_counter()
        answer = api.handler(event, Context())
        seconds = time.perf_counter() - start
    if answer["statusCode"] != 202:  # noqa: PLR2004  accepted
        raise LocalError(f"a job of the bench was not created: {answer}")
    return seconds, json.loads(answer["body"])["id"]


def _event(tenant: str) -> dict[str, Any]:
    body = {
        "operation": "adjust_number",
        "subject": f"small/{token_hex(4)}",
        "params": {"field": "n", "add": 1},
        "ids": [record_id(number) for number in range(ITEMS)],
    }
    return {
        "resource": "/{proxy+}",
        "path": "/v1/jobs",
        "httpMethod": "POST",
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": {"Content-Type": ["application/json"]},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {
            "requestId": "bench",
            "authorizer": {"tenant": tenant, "scopes": "jobs:write"},
        },
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }
