"""The environment contract: ``infra`` writes it, the handlers read it, through these classes.

Every leaf is one variable: ``FAIRLANE_`` + its path in capitals, such as
``FAIRLANE_TIMING_SMALL_HEARTBEAT``.
A missing or bad variable stops the process at start, naming the variable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from .jobs.words.limits import MAX_TENANT_BYTES, Limits
from .jobs.words.pace import PaceSettings
from .jobs.words.text_rules import text_problem
from .jobs.words.timing import Timing, require

PREFIX: Final = "FAIRLANE_"
HTTPS_OR_LOOPBACK: Final = (
    r"^(https://[^/@\s]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?)(/\S*)?$"
)


class SettingsError(ValueError):
    """Settings that nobody can work with: of an environment, or of a deployment. The text names
    each that is missing or bad."""


class Environment(BaseModel):
    """A set of settings that can be written to and read from environment variables."""

    # Built when it is first read: no process reads more than two of these.
    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=1, defer_build=True)

    def to_env(self) -> dict[str, str]:
        """One string per leaf; None is left out."""
        return {PREFIX + name: value for name, value in _leaves(self.model_dump(mode="json"))}

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        """Read the settings, ignoring variables of other classes. Raises SettingsError, which
        names each variable that is missing or bad."""
        try:
            return cls.model_validate(_read(cls, env, ""))
        except ValidationError as error:
            raise SettingsError(_describe(error)) from error


def _from_json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


def _to_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


FieldKind = Literal["text", "number", "boolean"]
# A full stop, a star or a leading underscore means something else to an index.
SearchableName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,127}$")]


class EffectSettings(BaseModel):
    """The places outside that a deployment has; none is a normal deployment."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=1, defer_build=True)

    search_url: str | None = Field(default=None, pattern=HTTPS_OR_LOOPBACK)
    """An OpenSearch endpoint: https, signed for AWS, or http on loopback, not signed."""
    search_index: str = "records"
    """Index or alias."""
    search_fields: Annotated[
        dict[SearchableName, FieldKind],
        BeforeValidator(_from_json),
        PlainSerializer(_to_json, when_used="json"),
    ] = Field(default_factory=dict, max_length=200)
    """The fields that queries of the index may filter and sort by, with their types. The index
    takes no other field, so that no tenant's records change what another one's queries find."""
    search_region: str | None = None
    """The domain's region, where it is not the workers' own."""
    webhook_url: str | None = Field(default=None, pattern=r"^https?://[^/@\s]+(/\S*)?$")
    webhook_secret_arn: str | None = None
    """The ARN of a Secrets Manager secret whose whole value signs the requests; or"""
    webhook_secret_parameter: str | None = None
    """the name of an SSM parameter, or"""
    webhook_secret: str | None = Field(default=None, min_length=16)
    """the secret itself, for loopback only: variables are no place for it."""
    webhook_loopback: bool = False
    """For development: the webhook is on loopback, and may be http."""
    event_bus: str | None = None
    """Name or ARN of an EventBridge bus, which receives changed records and the events of jobs."""
    notify: bool = False
    """A request may name an address that receives its job's events, signed with a key of its
    tenant that is derived from the secret."""

    @model_validator(mode="after")
    def _one_secret(self) -> Self:
        secrets = (self.webhook_secret_arn, self.webhook_secret_parameter, self.webhook_secret)
        given = sum(secret is not None for secret in secrets)
        if given != (self.webhook_url is not None or self.notify):
            raise ValueError(
                "set exactly one of webhook_secret_arn, webhook_secret_parameter and "
                "webhook_secret with webhook_url or notify, and none of them without; "
                f"{given} of them are set"
            )
        if self.webhook_secret is not None and not self.webhook_loopback:
            raise ValueError(
                "webhook_secret goes with webhook_loopback only; name a stored secret instead"
            )
        if (self.webhook_url or "").startswith("http://") and not self.webhook_loopback:
            raise ValueError("webhook_url must be https")
        return self


class QuerySettings(BaseModel):
    """The source in which the records of a query are found."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_min_length=1, defer_build=True)

    source: Literal["table", "search"] = "table"
    """The record table itself, which reads all records of the tenant, or the search index of the
    effects, which may be a little behind."""
    order_field: str | None = None
    """A field of the documents that never changes, by which a search is walked before the record
    id; None: by the record id alone."""

    @model_validator(mode="after")
    def _order_of_a_search(self) -> Self:
        if self.order_field is not None and self.source != "search":
            raise ValueError(
                "query_order_field goes with query_source = search only; a table has its own order"
            )
        return self


class WorkSettings(Environment):
    """The settings of the API, both workers and recovery."""

    control_table: str
    records_table: str
    records_tenant_key: str = "tenant"
    records_id_key: str = "id"
    idempotency_table: str
    payload_bucket: str
    small_queue_url: str
    bulk_queue_url: str
    due_shards: int = Field(default=4, ge=1, le=64)
    metrics_namespace: str = "Fairlane"
    timing: Timing
    limits: Limits = Limits()
    effects: EffectSettings = EffectSettings()
    query: QuerySettings = QuerySettings()
    pace: PaceSettings = PaceSettings()
    tenant_requests_per_second: int | None = Field(default=None, ge=1)
    """Requests of one tenant that the API answers, on average over ten seconds; None: all."""
    operations: str | None = None
    """The importable package with the team's own operations."""
    bulk_slots: int = Field(default=2, ge=1, le=64)
    """Jobs one bulk worker runs at once."""
    bulk_poll_seconds: int = Field(default=20, ge=1, le=20)
    """How long a free slot waits for a message; a stopping worker waits for it to end."""
    bulk_service: str | None = Field(default=None, pattern=r"^[^/]+/[^/]+$")
    """``<cluster>/<service>`` of the bulk workers, for those who start the first of them by
    sending; None where one is always up."""
    bulk_protection_minutes: int = Field(default=15, ge=1, le=120)
    """How long a busy worker is protected from being replaced, in a row."""

    @model_validator(mode="after")
    def _relations(self) -> Self:
        self.timing.check()
        require(
            self.timing.stop_timeout > self.bulk_poll_seconds,
            "stop_timeout",
            self.timing.stop_timeout,
            "greater than",
            "bulk_poll_seconds",
            self.bulk_poll_seconds,
            "a stopping worker waits until its poll for messages ends",
        )
        protected = 60 * self.bulk_protection_minutes
        if self.timing.rollout:
            require(
                self.timing.rollout > protected,
                "rollout",
                self.timing.rollout,
                "greater than",
                "bulk_protection_minutes x 60",
                protected,
                "workers of the older version go on for that long",
            )
        fields, order = self.effects.search_fields, self.query.order_field
        if self.query.source == "search":
            if self.effects.search_url is None:
                raise ValueError("query_source = search needs effects_search_url, which is not set")
            if not fields:
                raise ValueError(
                    "query_source = search needs effects_search_fields, which declares the fields "
                    'that queries may name, with their types: {"price": "number"}'
                )
        if order is not None and order not in fields:
            raise ValueError(f"query_order_field = {order} is not one of effects_search_fields")
        return self


class AuthSettings(Environment):
    """The settings of the authorizer. The tenant comes from a verified token and nothing else."""

    auth_jwks_url: str = Field(
        pattern=r"^(https://.+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?/.+)$"
    )
    """The issuer's key set: https, or http on loopback."""
    auth_issuer: str = Field(min_length=1)
    auth_audience: str = Field(min_length=1)
    """Whom the token has to be for. With ``auth_audience_claim = client_id``: the ids of the
    clients that may call, with a space between two."""
    auth_audience_claim: Literal["aud", "client_id"] = "aud"
    """client_id: for the access tokens of Amazon Cognito, which have no ``aud``."""
    auth_tenant_claim: str = Field(default="tenant", min_length=1)
    auth_scope_claim: str | None = None
    """The claim with the scopes, a list or words in one string; None: ``scope``, else ``scp``."""
    auth_scope_prefix: str | None = None
    """What stands before Fairlane's names in the scopes, such as ``fairlane/`` for a resource
    server of Amazon Cognito."""
    auth_leeway: int = Field(default=30, ge=0, le=300)
    """Seconds of clock difference tolerated in exp, nbf and iat."""


def _tenant(name: str) -> str:
    if problem := text_problem(name, MAX_TENANT_BYTES):
        raise ValueError(problem)
    return name


ROLE_OR_USER: Final = r"^arn:[a-z-]+:iam::[0-9]{12}:(role|user)/[!-~]+$"
PrincipalArn = Annotated[str, Field(pattern=ROLE_OR_USER)]
"""An IAM role or user."""
Tenant = Annotated[str, AfterValidator(_tenant)]
MAX_PRINCIPALS_BYTES: Final = 2048
"""The size of the mapping as JSON: all variables of a function have 4 KB together."""


class CallerSettings(Environment):
    """The settings by which the API knows its callers."""

    caller_auth: Literal["token", "iam"] = "token"
    """token: the tenant that the authorizer found in a token. iam: the tenant of the principal that
    signed the request, as API Gateway verified it. Neither is ever accepted for the other."""
    caller_enforce_scopes: bool = True
    """Whether a token needs ``jobs:read`` or ``jobs:write``. For IAM, policies decide that."""
    caller_principals: Annotated[
        dict[PrincipalArn, Tenant],
        BeforeValidator(_from_json),
        PlainSerializer(_to_json, when_used="json"),
    ] = Field(default_factory=dict)
    """For IAM: the tenant whose jobs the sessions of a role, or a user, may work on."""

    @model_validator(mode="after")
    def _principals(self) -> Self:
        if (self.caller_auth == "iam") != bool(self.caller_principals):
            raise ValueError("caller_auth = iam needs caller_principals, and the other way round")
        size = len(_to_json(self.caller_principals))
        if size > MAX_PRINCIPALS_BYTES:
            raise ValueError(
                f"caller_principals have {size} bytes as JSON, at most {MAX_PRINCIPALS_BYTES} "
                "are allowed: let one role stand for each tenant, or use tokens"
            )
        return self


def _leaves(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        full = f"{path}{name}".upper()
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}_")
        elif value is not None:
            yield full, str(value)


def _read(cls: type[BaseModel], env: Mapping[str, str], path: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, field in cls.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            values[name] = _read(kind, env, f"{path}{name}_")
        elif (variable := f"{PREFIX}{path}{name}".upper()) in env:
            values[name] = env[variable]
    return values


def _describe(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        variable = PREFIX + "_".join(str(part) for part in problem["loc"]).upper()
        lines.append(f"{variable if problem['loc'] else 'settings'}: {problem['msg']}")
    return "; ".join(lines)
