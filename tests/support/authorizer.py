"""Asking the authorizer, and what it logs of a refusal."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import pytest

from handlers import authorizer
from handlers.authorizer import Unauthorized

ARN: Final = "arn:aws:execute-api:eu-central-1:123456789012:abcdef1234/v1stage/POST/v1/jobs"


def call(authorization: str) -> dict[str, Any]:
    event = {"type": "TOKEN", "authorizationToken": authorization, "methodArn": ARN}
    return authorizer.handler(event, None)


def refused(authorization: str, capsys: pytest.CaptureFixture[str], *, line: int = 0) -> str:
    """The logged reason of a 401. line: of the log, from 0."""
    capsys.readouterr()
    with suppress(Unauthorized):
        answer = call(authorization)
        [statement] = answer["policyDocument"]["Statement"]
        assert (statement["Effect"], list(answer["context"])) == ("Deny", ["refusal"])
    written = capsys.readouterr()
    assert written.err == ""
    said = json.loads(written.out.splitlines()[line])
    assert said["action"] == "token_refused"
    secret = authorization.rpartition(" ")[2]
    if secret:
        assert secret not in written.out
    return str(said["why"])
