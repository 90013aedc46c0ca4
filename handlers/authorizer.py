"""The authorizer: turns the bearer token of a request into the tenant it acts for.

An API Gateway Lambda authorizer of type TOKEN. The tenant comes from a verified token and from
nothing else; the API reads it at ``requestContext.authorizer``, with the scopes the token grants.
"""

from __future__ import annotations

import os
import ssl
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final

import jwt

from . import cold_start
from .jobs.words.limits import MAX_TENANT_BYTES
from .settings import AuthSettings
from .telemetry import log_line, logger_of

ALGORITHMS: Final = ("RS256", "ES256")
SCOPE_CLAIMS: Final = ("scope", "scp")
OURS: Final = "jobs:"
"""The prefix of Fairlane's scopes; the API has no use for others, which are left out."""
AUD: Final = "aud"
CLIENT_ID: Final = "client_id"
MAX_SCOPES: Final = 20

KEYS_LIFETIME: Final = 300
"""Seconds a key set is trusted before it is read again: how long a withdrawn key still opens."""
KEYS_LAST_GOOD: Final = 3600
"""Seconds since their last good read for which keys serve while the key set cannot be read."""
KEYS_COOLDOWN: Final = 10
"""Seconds between two reads of the key set because of unknown keys, so that made-up key names
cannot turn every request into a read; and between two reads that fail."""
KEYS_TIMEOUT: Final = 3
"""Seconds for reading the key set."""

logger = logger_of("authorizer")


class Unauthorized(Exception):
    """API Gateway answers 401 when a Lambda authorizer fails with exactly this word."""

    def __init__(self) -> None:
        super().__init__("Unauthorized")


class Refusal(StrEnum):
    """What the caller is told about a token that stays refused. The rest is in the log."""

    EXPIRED = "the token has expired; get a new one"
    DAMAGED = "the token is damaged: it is no signed token, or its signature is wrong"
    NOT_OURS = "the token was not made for this API, or lacks what this API needs"


class BadToken(Exception):
    """The token is not one we accept.

    refusal: None when it may be accepted later, or when there is no token."""

    def __init__(self, why: str, refusal: Refusal | None = Refusal.NOT_OURS) -> None:
        super().__init__(why)
        self.refusal = refusal


class KeysUnavailable(Exception):
    """The issuer's key set could not be read: no verdict about the token is possible."""


@dataclass(frozen=True)
class Caller:
    tenant: str
    principal: str
    """The token's subject, or the tenant if it names none."""
    scopes: str = ""
    """Fairlane's scopes of the token, with a space between two."""


class _Client(jwt.PyJWKClient):
    """Knows when it last read the key set (``time.monotonic``)."""

    read_at = 0.0

    def fetch_data(self) -> Any:
        found = super().fetch_data()
        self.read_at = time.monotonic()
        return found


@cache
def _trusted() -> ssl.SSLContext:
    """The authorities that the system trusts. To read them takes longer than to check a token, so
    it is done once, not for each read of a key set."""
    context = ssl.create_default_context()
    # As urllib's own: some servers answer only a client that says so.
    context.set_alpn_protocols(["http/1.1"])
    return context


class Keys:
    """The issuer's key set, kept for ``KEYS_LIFETIME``. While it cannot be read, the last good keys
    serve until ``KEYS_LAST_GOOD``."""

    def __init__(self, url: str, *, cooldown: float) -> None:
        self._client = _Client(
            url,
            lifespan=KEYS_LIFETIME,
            timeout=KEYS_TIMEOUT,
            cooldown_duration=cooldown,
            ssl_context=_trusted(),
        )
        self._cooldown = cooldown
        self._good: Sequence[jwt.PyJWK] = ()
        self._good_at = 0.0
        self._failure = ""
        self._failed_until = 0.0

    def key(self, name: str) -> jwt.PyJWK:
        """The key of that name. Raises PyJWKClientError when there is none, KeysUnavailable."""
        if time.monotonic() < self._failed_until:
            return self._last_good(name)
        try:
            # On its own first, so that a broken key set is not taken for an unknown key.
            self._good = self._client.get_signing_keys()
            self._good_at = self._client.read_at
        except (jwt.PyJWTError, OSError, ValueError) as error:
            self._remember(error)
            return self._last_good(name)
        try:
            return self._client.get_signing_key(name)
        except (jwt.PyJWKClientConnectionError, jwt.PyJWKSetError, OSError, ValueError) as error:
            self._remember(error)
            return self._last_good(name)

    def _remember(self, error: Exception) -> None:
        self._failure = str(error)
        self._failed_until = time.monotonic() + self._cooldown

    def _last_good(self, name: str) -> jwt.PyJWK:
        old = time.monotonic() - self._good_at
        key = next((each for each in self._good if each.key_id == name), None)
        if key is None or old >= KEYS_LAST_GOOD:
            raise KeysUnavailable(self._failure)
        log_line(logger, "keys_old", seconds=round(old), why=self._failure)
        return key


class Verifier:
    """Checks tokens against the issuer's key set."""

    def __init__(self, settings: AuthSettings, *, cooldown: float = KEYS_COOLDOWN) -> None:
        self._settings = settings
        self._keys = Keys(settings.auth_jwks_url, cooldown=cooldown)

    def caller(self, header: str) -> Caller:
        """The caller of a request by the value of its Authorization header. Raises BadToken,
        KeysUnavailable."""
        claims = self._claims(_bearer(header))
        tenant = _tenant(claims.get(self._settings.auth_tenant_claim))
        claim = self._settings.auth_scope_claim
        names = (claim,) if claim else SCOPE_CLAIMS
        scopes = _scopes(claims, names, self._settings.auth_scope_prefix or "")
        return Caller(tenant, principal=claims.get("sub") or tenant, scopes=scopes)

    def _claims(self, token: str) -> dict[str, Any]:
        settings = self._settings
        by_aud = settings.auth_audience_claim == AUD
        try:
            key = self._keys.key(_key_name(jwt.get_unverified_header(token)))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                issuer=settings.auth_issuer,
                audience=settings.auth_audience if by_aud else None,
                leeway=settings.auth_leeway,
                options={
                    "require": ["exp", "iss"],
                    "verify_aud": by_aud,
                    "enforce_minimum_key_length": True,
                },
            )
        except jwt.MissingRequiredClaimError as error:
            raise BadToken(_missing(error, token)) from error
        except (BadToken, KeysUnavailable):
            raise
        # A token that the parser fails on is a bad one: some of its errors are plain ValueErrors.
        except Exception as error:
            raise BadToken(f"{type(error).__name__}: {error}", _refusal(error)) from error
        if not by_aud:
            _check_client(claims, settings.auth_audience.split())
        return claims


def _refusal(error: Exception) -> Refusal | None:
    """What PyJWT's error says of the token; see ``BadToken``."""
    match error:
        case jwt.ExpiredSignatureError():
            return Refusal.EXPIRED
        case jwt.ImmatureSignatureError() | jwt.PyJWKClientError() | jwt.InvalidKeyError():
            return None  # for now: the clock, or a key set that may change
        case jwt.DecodeError():
            return Refusal.DAMAGED
        case jwt.InvalidTokenError():
            return Refusal.NOT_OURS
        case _:
            return Refusal.DAMAGED


def _key_name(header: dict[str, Any]) -> str:
    # Checked before the key set is read: such a token must not cause a read.
    if header.get("alg") not in ALGORITHMS:
        raise BadToken(f"algorithm {header.get('alg')!r}")
    name = header.get("kid")
    if not isinstance(name, str) or not name:
        raise BadToken("no key named")
    return name


def _check_client(claims: Mapping[str, object], known: Sequence[str]) -> None:
    client = claims.get(CLIENT_ID)
    if client is None:
        raise BadToken("no client_id in the token, which may be an ID token and no access token")
    if client not in known:
        raise BadToken(f"the client {client!r} is not one of auth_audience")


def _missing(error: jwt.MissingRequiredClaimError, token: str) -> str:
    """What a token lacks, and the setting for issuers that leave it out."""
    claims = jwt.decode(token, options={"verify_signature": False})
    if error.claim == AUD and CLIENT_ID in claims:
        return (
            "no aud in the token, but a client_id, like an access token of Amazon Cognito: set "
            "auth_audience_claim to client_id, and auth_audience to the ids of your clients"
        )
    return f"no {error.claim} in the token"


def _bearer(header: str) -> str:
    scheme, _, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise BadToken("no bearer token", None)
    return token.strip()


def _tenant(claim: object) -> str:
    if not isinstance(claim, str) or not claim.strip():
        raise BadToken("no tenant in the token")
    # Cs: half a surrogate pair, which JSON can carry and UTF-8 cannot.
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in claim):
        raise BadToken("the tenant has a control character")
    if len(claim.encode()) > MAX_TENANT_BYTES:
        raise BadToken(f"the tenant has more than {MAX_TENANT_BYTES} bytes")
    return claim


def _scopes(claims: Mapping[str, object], names: Sequence[str], prefix: str) -> str:
    """The scopes that the first of these claims grants, without the prefix that each must have; a
    claim of another type grants nothing."""
    given = next((claims[name] for name in names if name in claims), None)
    words = given.split() if isinstance(given, str) else given if isinstance(given, list) else ()
    texts = [word for word in words if isinstance(word, str) and word.startswith(prefix)]
    ours = {word.removeprefix(prefix) for word in texts}
    known = {word for word in ours if word.startswith(OURS)}
    return " ".join(sorted(known)[:MAX_SCOPES])


@cache
def verifier() -> Verifier:
    """The process's verifier, made from the environment. Raises SettingsError."""
    return Verifier(AuthSettings.from_env(os.environ))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """The policy for a TOKEN authorizer event ``{authorizationToken, methodArn}``. API Gateway
    keeps it for the token's next requests, whichever route they take.

    A token that stays refused gets a policy that denies everything, whose answer is a 401 with the
    reason (infra/gateway_answers.py). Raises Unauthorized for what may be accepted later, a 401
    that nobody keeps; KeysUnavailable, which becomes a 500: a caller with a good token should try
    again and not ask for a new one.
    """
    del context
    try:
        caller = verifier().caller(event.get("authorizationToken") or "")
    except BadToken as error:
        # The reason goes to the log and not to the caller; the token goes nowhere.
        log_line(logger, "token_refused", why=str(error))
        if error.refusal is None:
            raise Unauthorized from None
        return _deny(error.refusal, event["methodArn"])
    except KeysUnavailable as error:
        log_line(logger, "keys_unavailable", error=error)
        raise
    return _allow(caller, event["methodArn"])


def _allow(caller: Caller, method_arn: str) -> dict[str, Any]:
    context = {"tenant": caller.tenant, "scopes": caller.scopes}
    return _policy("Allow", caller.principal, method_arn, context)


def _deny(refusal: Refusal, method_arn: str) -> dict[str, Any]:
    return _policy("Deny", "nobody", method_arn, {"refusal": refusal.value})


def _policy(
    effect: str, principal: str, method_arn: str, context: Mapping[str, str]
) -> dict[str, Any]:
    api, stage = method_arn.split("/")[:2]
    statement = {
        "Action": "execute-api:Invoke",
        "Effect": effect,
        "Resource": f"{api}/{stage}/*",
    }
    return {
        "principalId": principal,
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        "context": dict(context),
    }


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    cold_start.done()
