"""The authorizer, with real keys and a key set served on loopback."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import subprocess
import sys
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from handlers import authorizer
from handlers.authorizer import KeysUnavailable, Refusal, Unauthorized, Verifier
from handlers.jobs.words.limits import MAX_TENANT_BYTES
from tests.support.authorizer import ARN, call, refused
from tests.support.tokens import (
    AUDIENCE,
    EC_KEY,
    ISSUER,
    KEY,
    OTHER_KEY,
    SHORT_KEY,
    KeySet,
    claims,
    settings_for,
    token,
)


@pytest.fixture(autouse=True)
def _issuer(own_issuer: None) -> None:
    """Before every other fixture: some change a setting."""


def test_a_good_token_gets_its_tenant_and_the_whole_stage() -> None:
    assert call(f"Bearer {token()}") == {
        "principalId": "user-1",
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Action": "execute-api:Invoke",
                    "Effect": "Allow",
                    "Resource": (
                        "arn:aws:execute-api:eu-central-1:123456789012:abcdef1234/v1stage/*"
                    ),
                }
            ],
        },
        "context": {"tenant": "acme", "scopes": ""},
    }


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer ", " Bearer"])
def test_the_scheme_is_read_like_http_says(scheme: str) -> None:
    assert call(f"{scheme} {token()}")["context"]["tenant"] == "acme"


def test_es256_is_accepted() -> None:
    signed = token(EC_KEY, "ec", "ES256")

    assert call(f"Bearer {signed}")["context"]["tenant"] == "acme"


def test_one_of_several_audiences_is_enough() -> None:
    assert call(f"Bearer {token(aud=['other', AUDIENCE])}")["context"]["tenant"] == "acme"


def test_without_a_subject_the_tenant_is_the_principal() -> None:
    assert call(f"Bearer {token(sub=None)}")["principalId"] == "acme"


@pytest.mark.parametrize("tenant", ["é" * (MAX_TENANT_BYTES // 2), "a b#c", "株式会社"])
def test_tenants_may_be_called_anything_printable(tenant: str) -> None:
    assert call(f"Bearer {token(tenant=tenant)}")["context"]["tenant"] == tenant


def test_the_clock_may_differ_by_the_leeway(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRLANE_AUTH_LEEWAY", "300")
    now = int(time.time())

    assert call(f"Bearer {token(exp=now - 5, nbf=now - 60)}")
    assert call(f"Bearer {token(iat=now + 200, nbf=now + 200)}")
    assert "expired" in refused(f"Bearer {token(exp=now - 301)}", capsys)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"exp": 1_000_000}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "soon"}, "exp"),
        ({"exp": float("inf")}, "exp"),
        ({"nbf": 4_000_000_000}, "not yet valid"),
        ({"iat": 4_000_000_000}, "not yet valid"),
        ({"aud": "other"}, "Audience"),
        ({"aud": None}, "aud"),
        ({"iss": "https://other.example"}, "issuer"),
        ({"iss": ISSUER + "/"}, "issuer"),
        ({"iss": None}, "iss"),
        ({"sub": 7}, "Subject"),
        ({"tenant": None}, "no tenant"),
        ({"tenant": ""}, "no tenant"),
        ({"tenant": "  "}, "no tenant"),
        ({"tenant": 7}, "no tenant"),
        ({"tenant": True}, "no tenant"),
        ({"tenant": ["acme"]}, "no tenant"),
        ({"tenant": {"id": "acme"}}, "no tenant"),
        ({"tenant": "a\x00b"}, "control character"),
        ({"tenant": "a\n"}, "control character"),
        ({"tenant": "\ud800"}, "control character"),
        ({"tenant": "é" * (MAX_TENANT_BYTES // 2) + "e"}, "bytes"),
    ],
)
def test_a_token_with_wrong_claims_is_a_401(
    other: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reason in refused(f"Bearer {token(**other)}", capsys)


def test_a_token_of_another_key_is_a_401(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Signature" in refused(f"Bearer {token(OTHER_KEY)}", capsys)


def test_a_changed_payload_is_a_401(capsys: pytest.CaptureFixture[str]) -> None:
    head, _, signature = token().split(".")
    forged = part(claims(tenant="other"))

    assert "Signature" in refused(f"Bearer {head}.{forged}.{signature}", capsys)


# As in production, where a warning stops nothing.
@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
def test_a_short_key_is_not_trusted(capsys: pytest.CaptureFixture[str]) -> None:
    assert "InvalidKey" in refused(f"Bearer {token(SHORT_KEY, 'short')}", capsys)


def test_the_key_has_to_be_of_the_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    assert "algorithm" in refused(f"Bearer {token(KEY, 'ec')}", capsys)


@pytest.mark.parametrize("algorithm", ["RS384", "RS512", "PS256"])
def test_other_algorithms_are_a_401(
    algorithm: str, keys: KeySet, capsys: pytest.CaptureFixture[str]
) -> None:
    assert algorithm in refused(f"Bearer {token(algorithm=algorithm)}", capsys)
    assert keys.reads == 0


def part(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, 7])
def test_an_unsigned_token_is_a_401(algorithm: Any, capsys: pytest.CaptureFixture[str]) -> None:
    unsigned = f"{part({'alg': algorithm, 'kid': 'rsa', 'typ': 'JWT'})}.{part(claims())}."

    assert refused(f"Bearer {unsigned}", capsys)


def test_hs256_with_the_public_key_as_secret_is_a_401(
    keys: KeySet, capsys: pytest.CaptureFixture[str]
) -> None:
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part(claims())}"
    mac = hmac.new(public, signed.encode(), hashlib.sha256).digest()
    forged = f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"

    assert "HS256" in refused(f"Bearer {forged}", capsys)
    assert keys.reads == 0


@pytest.mark.parametrize("kid", [None, ""])
def test_a_token_that_names_no_key_is_a_401(
    kid: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no key" in refused(f"Bearer {token(kid=kid)}", capsys)


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer garbage",
        "Bearer a.b.c",
        "Bearer ....",
        "Bearer \x00\xff",
        "Basic dXNlcjpwYXNzd29yZA==",
        "Bearer é.é.é",
    ],
)
def test_garbage_is_a_401(authorization: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(authorization, capsys)


def test_a_token_without_its_scheme_is_a_401(capsys: pytest.CaptureFixture[str]) -> None:
    assert "bearer" in refused(token(), capsys)


def told(authorization: str) -> str | None:
    """What the caller of a refused request is told; None: nothing that is kept for the token."""
    try:
        answer = call(authorization)
    except Unauthorized:
        return None
    [statement] = answer["policyDocument"]["Statement"]
    assert (statement["Effect"], statement["Resource"]) == (
        "Deny",
        ARN.rpartition("/POST")[0] + "/*",
    )
    assert answer["principalId"] == "nobody"
    return str(answer["context"]["refusal"])


def test_c89_an_expired_token_a_damaged_one_and_one_of_others_are_told_apart() -> None:
    good = token()
    head, body, signature = good.split(".")
    assert told(f"Bearer {token(exp=1_000_000)}") == Refusal.EXPIRED
    for damaged in (
        f"{head}.{body}.{signature[:-8]}",
        f"{head}.{part(claims(tenant='other'))}.{signature}",
        f"{head}.{body}",
        "garbage",
        "a.b.c",
        token(OTHER_KEY),
    ):
        assert told(f"Bearer {damaged}") == Refusal.DAMAGED, damaged
    for other in ({"aud": "other"}, {"iss": "https://other.example"}, {"tenant": None}):
        assert told(f"Bearer {token(**other)}") == Refusal.NOT_OURS
    # An expired token whose signature is wrong is damaged: its time cannot be believed.
    assert told(f"Bearer {token(OTHER_KEY, exp=1_000_000)}") == Refusal.DAMAGED


@pytest.mark.parametrize("authorization", ["", "Bearer", "Basic dXNlcjpwYXNzd29yZA=="])
def test_c89_no_token_is_no_refused_one(authorization: str) -> None:
    assert told(authorization) is None


def test_c89_what_may_be_accepted_later_is_not_refused_for_the_time_of_the_cache() -> None:
    """API Gateway keeps a policy that denies as long as one that allows."""
    assert told(f"Bearer {token(nbf=4_000_000_000)}") is None
    assert told(f"Bearer {token(kid='new')}") is None


def test_a_missing_header_is_a_401() -> None:
    with pytest.raises(Unauthorized, match=r"\AUnauthorized\Z"):
        authorizer.handler({"type": "TOKEN", "methodArn": ARN}, None)


# --- the key set ------------------------------------------------------------------------------


def verifier(keys: KeySet, cooldown: float) -> Verifier:
    return Verifier(settings_for(keys.url), cooldown=cooldown)


def test_the_key_set_is_read_once(keys: KeySet) -> None:
    for tenant in ("a", "b", "c"):
        assert call(f"Bearer {token(tenant=tenant)}")["context"]["tenant"] == tenant

    assert keys.reads == 1


def test_what_the_system_trusts_is_read_once_for_all_reads_of_key_sets(
    keys: KeySet, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[ssl.SSLContext] = []
    offered: list[list[str]] = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda self, *_: read.append(self))
    monkeypatch.setattr(
        ssl.SSLContext, "set_alpn_protocols", lambda _, protocols: offered.append(protocols)
    )
    authorizer._trusted.cache_clear()
    try:
        for count in (1, 2):
            authorizer.verifier.cache_clear()
            assert call(f"Bearer {token()}")
            assert (keys.reads, len(read)) == (count, 1)
        assert read[0].verify_mode is ssl.CERT_REQUIRED
        assert read[0].check_hostname
        assert offered == [["http/1.1"]]
    finally:
        authorizer._trusted.cache_clear()  # the next one trusts what the system does


def test_an_old_key_set_is_read_again(
    keys: KeySet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(f"Bearer {token()}")
    keys.body = keys.of(("rsa", OTHER_KEY))
    later = time.monotonic() + authorizer.KEYS_LIFETIME + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)

    assert "Signature" in refused(f"Bearer {token()}", capsys)
    assert call(f"Bearer {token(OTHER_KEY)}")
    assert keys.reads == 2


def test_an_unknown_key_is_looked_for_once_more(keys: KeySet) -> None:
    checked = verifier(keys, cooldown=0)
    checked.caller(f"Bearer {token()}")
    keys.body = keys.of(("rsa", KEY), ("new", OTHER_KEY))

    assert checked.caller(f"Bearer {token(OTHER_KEY, 'new')}").tenant == "acme"
    assert keys.reads == 2


def test_made_up_keys_do_not_cause_a_read_each(
    keys: KeySet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)  # all within the cool-down
    for number in range(5):
        assert "signing key" in refused(f"Bearer {token(kid=f'made-up-{number}')}", capsys)

    assert keys.reads == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b""),
        (404, b"{}"),
        (302, b""),
        (200, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b"{}"),
        (200, b'{"keys": []}'),
        (200, b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "use": "enc", "kid": "rsa"}]}'),
        (200, b"\xff\xfe\xfa"),
    ],
)
def test_a_broken_key_set_is_an_error_and_no_401(
    status: int, body: bytes, keys: KeySet, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.status, keys.body = status, body
    secret = token()

    with pytest.raises(KeysUnavailable):
        call(f"Bearer {secret}")

    written = capsys.readouterr().out
    line = json.loads(written)
    assert (line["level"], line["action"]) == ("ERROR", "keys_unavailable")
    assert secret not in written


def test_a_key_set_that_broke_later_is_an_error_and_no_401(keys: KeySet) -> None:
    checked = verifier(keys, cooldown=0)
    checked.caller(f"Bearer {token()}")
    keys.status = 503

    with pytest.raises(KeysUnavailable):
        checked.caller(f"Bearer {token(kid='new')}")
    assert checked.caller(f"Bearer {token()}").tenant == "acme"


def test_an_unreachable_key_set_is_an_error_and_no_401(capsys: pytest.CaptureFixture[str]) -> None:
    gone = KeySet()
    gone.stop()

    with pytest.raises(KeysUnavailable):
        Verifier(settings_for(gone.url)).caller(f"Bearer {token()}")


def test_a_key_set_that_recovers_is_read_again(
    keys: KeySet, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, keys.body = keys.body, b"{}"
    with pytest.raises(KeysUnavailable):
        call(f"Bearer {token()}")
    keys.body = good
    later = time.monotonic() + authorizer.KEYS_COOLDOWN
    monkeypatch.setattr(time, "monotonic", lambda: later)

    assert call(f"Bearer {token()}")["context"]["tenant"] == "acme"


def test_another_claim_can_name_the_tenant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRLANE_AUTH_TENANT_CLAIM", "custom:tenant")

    signed = token(**{"custom:tenant": "right", "tenant": "wrong"})
    assert call(f"Bearer {signed}")["context"]["tenant"] == "right"
    assert "no tenant" in refused(f"Bearer {token()}", capsys)


def test_starting_it_loads_no_aws_library() -> None:
    code = (
        "import sys, handlers.authorizer;"
        "print([name for name in ('boto3', 'botocore.client') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        ({"scope": "openid jobs:write  jobs:read"}, "jobs:read jobs:write"),
        ({"scp": ["jobs:read", "mail"]}, "jobs:read"),
        ({"scp": "jobs:read"}, "jobs:read"),
        ({"scope": "jobs:read", "scp": ["jobs:write"]}, "jobs:read"),
        ({"scope": "openid", "scp": ["jobs:write"]}, ""),
        ({"scope": ["jobs:read", 7, None, {"a": 1}, "jobs:read"]}, "jobs:read"),
        ({"scope": "jobs:read,jobs:write"}, "jobs:read,jobs:write"),
        ({"scope": {"jobs:read": True}}, ""),
        ({"scope": True}, ""),
        ({"scope": 7}, ""),
        ({"scopes": "jobs:read"}, ""),
        ({"scope": "xjobs:read JOBS:READ"}, ""),
        ({}, ""),
    ],
)
def test_the_scopes_of_a_token_are_handed_on(given: dict[str, Any], scopes: str) -> None:
    assert call(f"Bearer {token(**given)}")["context"]["scopes"] == scopes


def test_another_claim_can_hold_the_scopes(keys: KeySet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_AUTH_SCOPE_CLAIM", "permissions")
    authorizer.verifier.cache_clear()
    signed = token(permissions=["jobs:read"], scope="jobs:write", scp=["jobs:write"])
    assert call(f"Bearer {signed}")["context"]["scopes"] == "jobs:read"


def test_a_token_cannot_fill_the_context(keys: KeySet) -> None:
    many = " ".join(f"jobs:{n}" for n in range(1000))
    assert len(call(f"Bearer {token(scope=many)}")["context"]["scopes"].split()) == 20
