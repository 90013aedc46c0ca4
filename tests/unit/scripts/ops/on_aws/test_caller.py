"""A caller that signs: each request has a signature of its own, and no token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import urllib3
from botocore.credentials import Credentials

from fairlane_client import Client
from scripts.ops.doctor.reading import FUNCTION
from scripts.ops.on_aws.caller import AUTH, IamSigner, takes_signatures
from scripts.ops.on_aws.run import identified

SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=KEY/\d{8}/eu-west-1/execute-api/aws4_request, "
    r"SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}"
)
SIGNER = IamSigner(Credentials("KEY", "secret", "session"), "eu-west-1")


def sent(patch: pytest.MonkeyPatch, *calls: str) -> list[Mapping[str, str]]:
    seen: list[Mapping[str, str]] = []

    def request(
        _pool: urllib3.PoolManager, _method: str, _url: str, **more: Any
    ) -> urllib3.HTTPResponse:
        seen.append(more["headers"])
        return urllib3.HTTPResponse(b'{"lanes": [], "operations": []}', status=200)

    patch.setattr(urllib3.PoolManager, "request", request)
    with Client("https://abc.example/live", SIGNER) as client:
        for call in calls:
            getattr(client, call)()
    return seen


def test_a_request_is_signed_for_api_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    lanes, operations = sent(monkeypatch, "lanes", "operations")
    for headers in (lanes, operations):
        assert SIGNATURE.fullmatch(headers["Authorization"])
        assert headers["X-Amz-Security-Token"] == "session"
        assert "authorization" not in headers
    assert lanes["Authorization"] != operations["Authorization"]


def test_a_signature_is_over_the_body() -> None:
    url = "https://abc.example/live/v1/jobs?validate_only=true"
    one, two = (SIGNER.headers("POST", url, body)["Authorization"] for body in (b"{}", b"[]"))
    assert one.rpartition("=")[2] != two.rpartition("=")[2]


def test_a_probe_carries_the_token_or_the_signature() -> None:
    url = "https://abc.example/live/v1/jobs"
    assert identified("t")("POST", url, b"") == {"authorization": "Bearer t"}
    assert SIGNATURE.fullmatch(identified(SIGNER)("POST", url, b"{}")["Authorization"])


@pytest.mark.parametrize(("auth", "signs"), [("iam", True), ("jwt", False)])
def test_the_api_s_own_function_says_who_calls(
    monkeypatch: pytest.MonkeyPatch, auth: str, *, signs: bool
) -> None:
    """A stack with the construct may have functions of the team's own with such a name."""
    variables = {"own": {"THEIRS": "x"}, "api": {AUTH: auth}}

    class Lambda:
        def get_function_configuration(self, *, FunctionName: str) -> Any:  # noqa: N803  boto3's name
            return {"Environment": {"Variables": variables[FunctionName]}}

    monkeypatch.setattr("boto3.client", lambda _: Lambda())
    functions = {"ShopApiFunction1": "own", "FairlaneApiFunction2": "api"}
    assert takes_signatures({FUNCTION: functions}) is signs
