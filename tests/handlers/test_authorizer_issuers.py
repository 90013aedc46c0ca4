"""Issuers of tokens: those whose access tokens have no audience, and those that are down."""

from __future__ import annotations

import json
import re
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handlers import authorizer
from handlers.authorizer import KeysUnavailable
from handlers.settings import AuthSettings
from tests.support.authorizer import call, refused
from tests.support.tokens import AUDIENCE, OTHER_KEY, KeySet, token


@pytest.fixture(autouse=True)
def _issuer(own_issuer: None) -> None:
    """Before every other fixture: some change a setting."""


# --- Amazon Cognito ---------------------------------------------------------------------------

CLIENTS = ("4ab2", "9xyz")
COGNITO: dict[str, Any] = {
    "aud": None,
    "client_id": CLIENTS[1],
    "token_use": "access",
    "scope": "fairlane/jobs:read other/jobs:write jobs:write",
}
"""An access token of Cognito, where it differs."""


@pytest.fixture
def cognito(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_AUTH_AUDIENCE_CLAIM", "client_id")
    monkeypatch.setenv("FAIRLANE_AUTH_AUDIENCE", " ".join(CLIENTS))
    monkeypatch.setenv("FAIRLANE_AUTH_SCOPE_PREFIX", "fairlane/")


@pytest.mark.usefixtures("cognito")
@pytest.mark.parametrize("client", CLIENTS)
def test_c97_an_access_token_without_aud_is_known_by_its_client(client: str) -> None:
    answer = call(f"Bearer {token(**{**COGNITO, 'client_id': client})}")
    assert answer["context"] == {"tenant": "acme", "scopes": "jobs:read"}


@pytest.mark.usefixtures("cognito")
@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"client_id": "theirs"}, "not one of auth_audience"),
        ({"client_id": " ".join(CLIENTS)}, "not one of auth_audience"),
        ({"client_id": ""}, "not one of auth_audience"),
        ({"client_id": [CLIENTS[0]]}, "not one of auth_audience"),
        ({"client_id": None, "aud": CLIENTS[0], "token_use": "id"}, "an ID token"),
        ({"exp": 1_000_000}, "expired"),
        ({"iss": "https://other.example"}, "issuer"),
    ],
)
def test_c97_no_other_client_and_no_id_token_is_taken(
    other: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reason in refused(f"Bearer {token(**{**COGNITO, **other})}", capsys)


def test_c97_without_the_setting_the_refusal_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    why = refused(f"Bearer {token(**COGNITO)}", capsys)
    assert "set auth_audience_claim to client_id" in why
    assert "no aud" in refused(f"Bearer {token(aud=None)}", capsys)


def test_c97_a_client_id_is_no_audience_where_aud_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = {"aud": "other", "client_id": AUDIENCE}
    assert "Audience" in refused(f"Bearer {token(**asked)}", capsys)


@pytest.mark.usefixtures("cognito")
def test_c97_the_client_can_be_the_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_AUTH_TENANT_CLAIM", "client_id")
    assert call(f"Bearer {token(**COGNITO, tenant=None)}")["context"]["tenant"] == CLIENTS[1]


# --- an issuer that is down -------------------------------------------------------------------


@dataclass
class Clock:
    """Seconds of ``time.monotonic``."""

    now: float


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(time.monotonic())
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


BROKEN = {"error": (503, b""), "page": (200, b"<html>"), "empty": (200, b'{"keys": []}')}


@pytest.mark.parametrize("broken", BROKEN)
def test_c110_the_last_good_keys_serve_for_a_bounded_time(
    broken: str, keys: KeySet, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    call(f"Bearer {token()}")
    read, good = clock.now, keys.body
    keys.status, keys.body = BROKEN[broken]
    for seconds in (authorizer.KEYS_LIFETIME + 1, 6 * 60, authorizer.KEYS_LAST_GOOD - 1):
        clock.now = read + seconds
        assert call(f"Bearer {token()}")["context"]["tenant"] == "acme"
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["action"] == "keys_old"
        # Forged and expired tokens are refused as ever.
        assert "Signature" in refused(f"Bearer {token(OTHER_KEY)}", capsys, line=1)
        assert "expired" in refused(f"Bearer {token(exp=1_000_000)}", capsys, line=1)
        # What an unknown key is worth cannot be said.
        with pytest.raises(KeysUnavailable):
            call(f"Bearer {token(kid='new')}")
    clock.now = read + authorizer.KEYS_LAST_GOOD + 1
    with pytest.raises(KeysUnavailable):
        call(f"Bearer {token()}")

    keys.status, keys.body = 200, good
    clock.now += authorizer.KEYS_COOLDOWN
    assert call(f"Bearer {token()}")


def test_c110_a_key_that_was_withdrawn_does_not_serve_again(keys: KeySet, clock: Clock) -> None:
    call(f"Bearer {token()}")
    keys.body = keys.of(("new", OTHER_KEY))
    clock.now += authorizer.KEYS_LIFETIME + 1
    assert call(f"Bearer {token(OTHER_KEY, 'new')}")
    keys.status = 503
    clock.now += authorizer.KEYS_LIFETIME + 1
    with pytest.raises(KeysUnavailable):
        call(f"Bearer {token()}")


@pytest.mark.parametrize("known", [True, False])
def test_c110_a_failed_read_is_remembered_for_a_moment(
    keys: KeySet, clock: Clock, *, known: bool
) -> None:
    """A read that hangs would hold up every request for its time-out."""
    if known:
        call(f"Bearer {token()}")
        clock.now += authorizer.KEYS_LIFETIME + 1
    keys.status = 503
    before = keys.reads
    for _ in range(2):
        for _ in range(5):
            with nullcontext() if known else pytest.raises(KeysUnavailable):
                call(f"Bearer {token()}")
        clock.now += authorizer.KEYS_COOLDOWN
    assert keys.reads == before + 2


# --- the examples of the page -----------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "issuers.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^## (.+?)\n.*?^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = {name: json.loads(block) for name, block in EXAMPLE.findall(PAGE)}
TOKENS: dict[str, dict[str, Any]] = {
    "Auth0": {
        "iss": "https://your-company.eu.auth0.com/",
        "aud": ["https://jobs.example.com", "https://your-company.eu.auth0.com/userinfo"],
        "https://jobs.example.com/tenant": "acme",
        "permissions": ["jobs:read"],
        "scope": "openid",
    },
    "Microsoft Entra ID": {
        "iss": "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0",
        "aud": "99999999-8888-7777-6666-555555555555",
        "azp": "acme",
        "scp": "jobs:read",
    },
    "Amazon Cognito": {
        "iss": "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_AbCdEfGhI",
        "aud": None,
        "client_id": "2example34567890",
        "scope": "fairlane/jobs:read",
    },
    "Keycloak": {
        "iss": "https://login.your-company.com/realms/main",
        "aud": "fairlane",
        "tenant": "acme",
        "scope": "profile jobs:read",
    },
}
"""Tokens as each issuer makes them, where they differ from those of the tests."""


def test_c97_every_issuer_of_the_page_has_its_token() -> None:
    assert EXAMPLES.keys() == TOKENS.keys()


@pytest.mark.parametrize("issuer", TOKENS)
def test_c97_the_example_of_an_issuer_takes_its_tokens(
    issuer: str, keys: KeySet, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = AuthSettings(**EXAMPLES[issuer]).model_copy(update={"auth_jwks_url": keys.url})
    for name, value in settings.to_env().items():
        monkeypatch.setenv(name, value)
    context = call(f"Bearer {token(**{'tenant': None, **TOKENS[issuer]})}")["context"]
    tenant = "2example34567890" if issuer == "Amazon Cognito" else "acme"
    assert context == {"tenant": tenant, "scopes": "jobs:read"}
