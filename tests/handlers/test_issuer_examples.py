"""The issuers of docs/how-to/issuers.md: their tokens are accepted with the settings shown."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from handlers.authorizer import BadToken, Verifier
from handlers.settings import AuthSettings
from infra.settings import DeploySettings

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "issuers.md"
BLOCKS: Final = re.findall(
    r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
)
SHOWN: Final[list[dict[str, Any]]] = [json.loads(each) for each in BLOCKS]
ISSUERS: Final = [each for each in SHOWN if "issuer" in each]
KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(autouse=True)
def _key_set(monkeypatch: pytest.MonkeyPatch) -> None:
    jwk = {**json.loads(RSAAlgorithm.to_jwk(KEY.public_key())), "kid": "1", "use": "sig"}
    monkeypatch.setattr(jwt.PyJWKClient, "fetch_data", lambda _: {"keys": [jwk]})


def header(claims: dict[str, Any]) -> str:
    signed = jwt.encode(
        {"exp": int(time.time()) + 600, **claims}, KEY, algorithm="RS256", headers={"kid": "1"}
    )
    return f"Bearer {signed}"


@pytest.mark.parametrize("shown", ISSUERS, ids=lambda each: each["issuer"])
def test_a_token_of_that_shape_has_its_tenant_and_its_scopes(shown: dict[str, Any]) -> None:
    settings = AuthSettings.model_validate(shown["auth"])
    claims = shown["token"]
    caller = Verifier(settings).caller(header(claims))
    assert caller.tenant == claims[settings.auth_tenant_claim]
    assert set(caller.scopes.split()) == {"jobs:read", "jobs:write"}
    for name, other in (("aud", "another"), ("iss", "https://another/"), ("exp", 1)):
        with pytest.raises(BadToken):
            Verifier(settings).caller(header({**claims, name: other}))


@pytest.mark.parametrize("shown", SHOWN, ids=lambda each: each.get("issuer", "IAM"))
def test_a_deployment_takes_the_settings(shown: dict[str, Any]) -> None:
    callers = {name: value for name, value in shown.items() if name in {"auth", "principals"}}
    assert DeploySettings.read({"profile": "dev", **callers}).demo_tenant is None


def test_the_page_has_four_issuers_and_one_without() -> None:
    assert (len(ISSUERS), len(SHOWN)) == (4, 5)
