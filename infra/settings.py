"""What a deployment chooses: the context key ``fairlane`` of cdk.json, checked at synthesis.

A context names only what differs from the defaults below, at any depth.
A setting that contradicts another one stops synthesis, naming both and their values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from handlers.jobs.words.limits import Limits
from handlers.jobs.words.pace import PaceSettings
from handlers.jobs.words.timing import DAY, SECOND, LaneTiming, Timing, require
from handlers.settings import (
    AuthSettings,
    CallerSettings,
    EffectSettings,
    PrincipalArn,
    QuerySettings,
    Tenant,
)

CONTEXT_KEY: Final = "fairlane"

MAPPING_FLOOR: Final = 2
"""The least MaximumConcurrency of an SQS event source mapping (AWS)."""
RESERVED_FLOOR: Final = 5
"""Invocations an event source mapping starts with, whatever its maximum (AWS)."""
BATCH_WITHOUT_WINDOW: Final = 10
"""The largest batch of a mapping without a batching window (AWS)."""

PRODUCTION_TIMING: Final = Timing(
    small=LaneTiming(heartbeat=20, lease_ttl=90, visibility=360),
    bulk=LaneTiming(heartbeat=30, lease_ttl=120, visibility=300),
    takeover_grace=420,
    function_timeout=60,
    stop_timeout=120,
)


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SmallLaneSettings(Part):
    maximum_concurrency: int = Field(default=100, le=1000)
    """Jobs the lane runs at once. Fair queues need a tenant to be able to hold at least 30
    messages in flight before they see that it is noisy."""
    reserved_concurrency: int | None = 110
    """Kept for the lane, so that nothing else in the account can starve it. None for accounts
    whose quota is too small: AWS wants 100 unreserved."""
    batch_size: int = Field(default=1, ge=1, le=BATCH_WITHOUT_WINDOW)
    """One job per invocation: in a larger batch the last job waits for all before it."""
    memory: int = Field(default=1024, ge=128, le=10_240)
    dwell_slo_ms: int = Field(default=2000, gt=0)
    """The 95th percentile of dwell that raises the alarm."""


class BulkLaneSettings(Part):
    cpu: Literal[256, 512, 1024, 2048, 4096, 8192, 16384] = 1024
    memory: int = Field(default=2048, gt=0)
    """MiB of one task."""
    slots: int = Field(default=2, ge=1, le=64)
    """Jobs one task runs at once."""
    poll_seconds: int = Field(default=20, ge=1, le=20)
    """How long a free slot waits for a message; a stopping task waits for it to end."""
    min_tasks: int = Field(default=1, ge=0)
    """One task stays up: metrics of a queue that slept for 6 hours can be 15 minutes late."""
    max_tasks: int = Field(default=10, ge=1)
    idle_minutes: int = Field(default=15, ge=1, le=60)
    """Without any message, waiting or in flight, before the lane shrinks to min_tasks."""
    network: Literal["endpoints", "nat"] = "endpoints"
    """How tasks reach AWS: private endpoints and no way to the internet, or a NAT gateway (for
    workers that call webhooks)."""
    image_uri: str | None = Field(default=None, min_length=1)
    """A ready image that needs no credentials to pull, for deploying without Docker; None builds
    the Dockerfile."""


class ApiSettings(Part):
    memory: int = Field(default=1024, ge=128, le=10_240)
    timeout: int = Field(default=28, ge=1, le=28)
    """Seconds; API Gateway gives up after 29."""
    throttle_rate: int = Field(default=500, gt=0)
    """Requests per second over all tenants: the account's protection, not a tenant's quota."""
    throttle_burst: int = Field(default=1000, gt=0)
    authorizer_cache: int = Field(default=60, ge=0, le=3600)
    """Seconds a token's verdict is kept, also after the token was revoked or has run out."""
    cloudwatch_role: bool = True
    """Set the account's role for API access logs. False when the account has one already."""


class WafSettings(Part):
    mode: Literal["off", "count", "block"] = "block"
    """``count`` refuses nothing and logs what it would have refused: for the first weeks in front
    of clients that exist already. ``off`` makes no web ACL."""
    rate_limit: int | None = Field(default=10_000, ge=10)
    """Requests of one IP address in five minutes; None: as many as it likes."""
    inspect_kb: Literal[16, 32, 48, 64] = 16
    """How much of a body the rules look at. More than 16 is billed extra, and finds little: other
    routes take 8 KiB, and on ``POST /v1/jobs`` the text of a body is data."""
    job_paths: tuple[Annotated[str, Field(pattern=r"^/\S+$")], ...] = Field(
        default=("/live/v1/jobs", "/v1/jobs"), min_length=1
    )
    """What the path of ``POST /v1/jobs`` looks like from outside: with the stage, and without it
    behind a domain of your own. A base path of that domain has to be added here."""


class RecordsSettings(Part):
    table_name: str | None = Field(default=None, min_length=1)
    """Your own table of the same account and region; None makes one."""
    tenant_key: str = Field(default="tenant", min_length=1)
    id_key: str = Field(default="id", min_length=1)


class DeployEffects(EffectSettings):
    """What the workers are told, and what only their permissions are made from."""

    search_domain_arn: str | None = Field(
        default=None, pattern=r"^arn:[^:]+:es:[^:]+:\d{12}:domain/[a-z0-9-]+$"
    )
    """The domain behind search_url; its access policy has to let the stack's roles in."""

    @property
    def told(self) -> EffectSettings:
        return EffectSettings.model_validate(self.model_dump(exclude={"search_domain_arn"}))

    @property
    def any(self) -> bool:
        return any((self.search_url, self.webhook_url, self.event_bus))

    @model_validator(mode="after")
    def _domain(self) -> Self:
        signed = (self.search_url or "").startswith("https://")
        if signed != (self.search_domain_arn is not None):
            raise ValueError("an https search_url needs search_domain_arn, and the other way round")
        return self


class DeploySettings(Part):
    stack_name: str = Field(default="Fairlane", pattern=r"^[A-Za-z][A-Za-z0-9-]{0,50}$")
    timing: Timing = PRODUCTION_TIMING
    limits: Limits = Limits()
    auth: AuthSettings | None = None
    """Tokens and their issuer; or"""
    principals: dict[PrincipalArn, Tenant] = Field(default_factory=dict)
    """IAM: the roles and users that may call, and the tenant each stands for."""
    enforce_scopes: bool = True
    """Tokens need ``jobs:read`` and ``jobs:write``. Policies say who may do what with IAM."""
    small_lane: SmallLaneSettings = SmallLaneSettings()
    bulk_lane: BulkLaneSettings = BulkLaneSettings()
    api: ApiSettings = ApiSettings()
    waf: WafSettings = WafSettings()
    records: RecordsSettings = RecordsSettings()
    effects: DeployEffects = DeployEffects()
    query: QuerySettings = QuerySettings()
    pace: PaceSettings = PaceSettings()
    """How bulk work gets out of the way of small jobs."""
    due_shards: int = Field(default=4, ge=1, le=64)
    """Index partitions of each kind of row that recovery looks for. It goes on looking at as many
    as there ever were."""
    architecture: Literal["arm64", "x86_64"] = "arm64"
    python: Literal["3.13"] = "3.13"
    log_level: Literal["DEBUG", "INFO", "WARNING"] = "INFO"
    log_retention_days: Literal[1, 7, 14, 30, 90, 180, 365] = 30
    payload_days: int = Field(default=60, ge=1)
    """Id lists older than this are nobody's: their job is long finished or was never made."""
    upload_days: int = Field(default=7, ge=1)
    """Uploaded files are kept so long; a job has to have read its file by then."""
    removal: Literal["retain", "destroy"] = "retain"
    """What becomes of tables and bucket when the stack goes."""
    alarm_topic_arn: str | None = Field(default=None, pattern=r"^arn:[^:]+:sns:[^:]+:\d{12}:.+$")

    @classmethod
    def read(cls, context: object) -> Self:
        """From the context value: a mapping, or the same as a JSON string (``cdk -c``)."""
        chosen: Any = json.loads(context) if isinstance(context, str) else context or {}
        defaults = {
            name: field.default.model_dump()
            for name, field in cls.model_fields.items()
            if isinstance(field.default, BaseModel)
        }
        return cls.model_validate(_merge(defaults, chosen))

    @model_validator(mode="after")
    def _relations(self) -> Self:
        self.timing.check()
        if (self.auth is None) == (not self.principals):
            raise ValueError("set either auth (tokens) or principals (IAM), not both")
        _check_concurrency(self.small_lane)
        _check_tasks(self.bulk_lane)
        _check_way_out(self.effects, self.bulk_lane)
        dead_letters = max(self.timing.small.dlq_retention, self.timing.bulk.dlq_retention)
        require(
            self.payload_days * DAY > dead_letters * SECOND,
            "payload_days",
            self.payload_days,
            "greater than",
            "dlq_retention in days",
            dead_letters * SECOND / DAY,
            "a job whose dead letter is redriven on its last day still needs its id list",
        )
        return self

    @property
    def callers(self) -> CallerSettings:
        return CallerSettings(
            caller_auth="token" if self.auth else "iam",
            caller_enforce_scopes=self.enforce_scopes,
            caller_principals=self.principals,
        )


def _check_concurrency(lane: SmallLaneSettings) -> None:
    require(
        lane.maximum_concurrency >= MAPPING_FLOOR,
        "small_lane.maximum_concurrency",
        lane.maximum_concurrency,
        "at least",
        "the floor",
        MAPPING_FLOOR,
        "Lambda accepts no lower maximum concurrency",
    )
    if lane.reserved_concurrency is None:
        return
    require(
        lane.reserved_concurrency >= RESERVED_FLOOR,
        "small_lane.reserved_concurrency",
        lane.reserved_concurrency,
        "at least",
        "the floor",
        RESERVED_FLOOR,
        "the event source mapping starts with that many invocations",
    )
    require(
        lane.maximum_concurrency <= lane.reserved_concurrency,
        "small_lane.maximum_concurrency",
        lane.maximum_concurrency,
        "at most",
        "small_lane.reserved_concurrency",
        lane.reserved_concurrency,
        "throttled messages become dead letters although no function ever ran their jobs",
    )


def _check_way_out(effects: DeployEffects, lane: BulkLaneSettings) -> None:
    """What is called has to be reached, from every worker."""
    if lane.network == "nat":
        return
    for name, url in (("search_url", effects.search_url), ("webhook_url", effects.webhook_url)):
        if url is not None and not effects.webhook_loopback and url.startswith("https://"):
            raise ValueError(
                f"effects.{name} = {url} cannot be reached with bulk_lane.network = "
                f"{lane.network}: that network leads to AWS services only; set it to nat"
            )


def _check_tasks(lane: BulkLaneSettings) -> None:
    require(
        lane.min_tasks <= lane.max_tasks,
        "bulk_lane.min_tasks",
        lane.min_tasks,
        "at most",
        "bulk_lane.max_tasks",
        lane.max_tasks,
        "the bulk lane scales from min_tasks to max_tasks",
    )
    require(
        lane.cpu * 2 <= lane.memory,
        "bulk_lane.cpu x 2",
        lane.cpu * 2,
        "at most",
        "bulk_lane.memory",
        lane.memory,
        "Fargate has no task size with so little memory",
    )
    require(
        lane.memory <= lane.cpu * 8,
        "bulk_lane.memory",
        lane.memory,
        "at most",
        "bulk_lane.cpu x 8",
        lane.cpu * 8,
        "Fargate has no task size with so much memory",
    )


def _merge(defaults: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**defaults, **chosen}
    for name, default in defaults.items():
        value = chosen.get(name)
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            merged[name] = _merge(default, value)
    return merged
