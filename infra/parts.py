"""The parts of a deployment's settings, and what each of them takes for granted."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from handlers.settings import EffectSettings

BATCH_WITHOUT_WINDOW: Final = 10
"""The largest batch of a mapping without a batching window (AWS)."""


KeyArn = Annotated[
    str,
    Field(
        pattern=r"^arn:[^:]+:kms:[a-z0-9-]+:\d{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"
    ),
]
"""A customer key of KMS; aliases have no rights of their own."""


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
    provisioned_concurrency: int = Field(default=2, ge=0)
    """Invocations that are always warm, so that the first job after an idle hour starts at once.
    Each costs its memory by the second: docs/deploy.md has the price. 0: none."""
    dwell_slo_ms: int = Field(default=2000, gt=0)
    """The 95th percentile of dwell that raises the alarm."""


class RepositorySettings(Part):
    """An image in a private repository of ECR. The stack's execution role may pull from it; the
    repository of another account has to let that account in by its own policy."""

    name: str = Field(
        pattern=r"^(arn:[^:]+:ecr:[a-z0-9-]+:\d{12}:repository/)?[a-z0-9]+([._/-][a-z0-9]+)*$"
    )
    """Its name in the deployment's account and region, or its ARN."""
    tag: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$")
    digest: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")

    @model_validator(mode="after")
    def _one_image(self) -> Self:
        if (self.tag is None) == (self.digest is None):
            raise ValueError("a repository needs either tag or digest, to name one image")
        return self

    @property
    def image(self) -> str:
        return self.tag or self.digest or ""


class BulkLaneSettings(Part):
    cpu: Literal[256, 512, 1024, 2048, 4096, 8192, 16384] = 1024
    memory: int = Field(default=2048, gt=0)
    """MiB of one task."""
    slots: int = Field(default=2, ge=1, le=64)
    """Jobs one task runs at once."""
    poll_seconds: int = Field(default=20, ge=1, le=20)
    """How long a free slot waits for a message; a stopping task waits for it to end."""
    protection_minutes: int = Field(default=15, ge=1, le=120)
    """How long a busy worker is protected from scale-in and deployments, in a row. A deployment
    takes about so long; CloudFormation gives up after three hours."""
    min_tasks: int = Field(default=1, ge=0)
    """One task stays up. With 0, the sender of a job starts the first task, and that job waits
    until it runs: a minute or two."""
    max_tasks: int = Field(default=10, ge=1)
    idle_minutes: int = Field(default=5, ge=1, le=60)
    """How long there have to be more tasks than the messages need, waiting and in flight, before
    some of them end."""
    spot_percent: int = Field(default=0, ge=0, le=100)
    """Share of the tasks that run on Fargate Spot: cheaper, and ended with two minutes' notice when
    AWS needs them, which costs a job the rest of a chunk. The first task is never on Spot, unless
    all are."""
    late_minutes: int = Field(default=60, ge=1)
    """A message or a job that waits longer raises an alarm."""
    network: Literal["endpoints", "nat", "public", "own"] = "endpoints"
    """How tasks reach AWS. ``endpoints``: private endpoints and no way to the internet. ``nat``: a
    NAT gateway, for workers that call webhooks. ``public``: a public address for each task and
    nothing else to pay for; no port is open. ``own``: the subnets of ``vpc``."""
    cidr: str = Field(default="10.0.0.0/16", pattern=r"^\d+\.\d+\.\d+\.\d+/(1[6-9]|2[0-2])$")
    """Addresses of the network that the stack makes; each zone has up to two /24 of it."""
    zones: int = Field(default=2, ge=1, le=3)
    """Availability zones of that network. One endpoint costs its price in each of them."""
    base_image: str | None = Field(default=None, pattern=r"^[^\s@]+@sha256:[0-9a-f]{64}$")
    """What the image is built on, by its digest: a newer one with security fixes, or one of your
    own. None: the one whose digest the Dockerfile names, so that a deployment builds the same image
    next month."""
    image_uri: str | None = Field(default=None, min_length=1)
    """A ready image that needs no credentials to pull, for deploying without Docker; or"""
    repository: RepositorySettings | None = None
    """a ready image in a private ECR repository. Without either, the Dockerfile is built."""


class UploadSettings(Part):
    origins: tuple[Annotated[str, Field(pattern=r"^https?://[^/\s*?#]+$")], ...] = ()
    """Pages of these origins, such as ``https://app.partner.dev``, may send the upload form and
    read reports in a browser. None: only programs can."""


class ApiSettings(Part):
    memory: int = Field(default=1024, ge=128, le=10_240)
    timeout: int = Field(default=28, ge=1, le=28)
    """Seconds; API Gateway gives up after 29."""
    reserved_concurrency: int | None = Field(default=100, ge=1)
    """Kept for the API's function, and its limit: neither lane can starve it, nor it a lane."""
    authorizer_concurrency: int | None = Field(default=50, ge=1)
    throttle_rate: int = Field(default=500, gt=0)
    """Requests per second over all tenants: the account's protection, not a tenant's quota."""
    throttle_burst: int = Field(default=1000, gt=0)
    tenant_requests_per_second: int | None = Field(default=100, ge=1)
    """Requests of one tenant, on average over ten seconds; more are 429. None: no limit."""
    authorizer_cache: int = Field(default=60, ge=0, le=3600)
    """Seconds a token's verdict is kept, also after the token was revoked or has run out."""
    cloudwatch_role: bool = False
    """Set the role with which API Gateway writes logs. It belongs to the whole account and region,
    and would replace the one that is there; without any, the API's stage cannot be made."""


class WafSettings(Part):
    mode: Literal["off", "count", "block"] = "block"
    """``count`` refuses nothing and logs what it would have refused: for the first weeks in front
    of clients that exist already. ``off`` makes no web ACL."""
    rate_limit: int | None = Field(default=100_000, ge=10)
    """Requests of one IP address in five minutes; None: as many as it likes. A backend may call
    from one address for all its tenants."""
    token_rate_limit: int | None = Field(default=10_000, ge=10)
    """Requests with one token in five minutes, refused before they cost a function's time; None: as
    many as it likes. Signed requests (``principals``) have no such token."""
    blocks_alarm: int = Field(default=100, ge=0)
    """More refused requests than this in each of five minutes raise an alarm."""
    inspect_kb: Literal[16, 32, 48, 64] = 16
    """How much of a body the rules look at. More than 16 is billed extra, and finds little: other
    routes take 8 KiB, and on ``POST /v1/jobs`` the text of a body is data."""
    job_paths: tuple[Annotated[str, Field(pattern=r"^/\S+$")], ...] = Field(
        default=("/live/v1/jobs", "/v1/jobs"), min_length=1
    )
    """What the path of ``POST /v1/jobs`` looks like from outside: with the stage, and without it
    behind a domain of your own. A base path of that domain has to be added here."""


class AlarmSettings(Part):
    """When an alarm is raised, where no other setting says it."""

    dispatch_late_minutes: int = Field(default=3, ge=2)
    """A message that recovery has not sent for so long: it had two runs to do it, and could not."""
    recovery_late_minutes: int = Field(default=10, ge=2)
    """An effect or event that recovery runs so late: it does not get round to all of them."""
    in_flight: int = Field(default=100_000, ge=1, le=120_000)
    """Messages of a queue in flight. At about 120,000 SQS gives no more, and a long poll does not
    say so."""
    receives_failed: int = Field(default=5, ge=0)
    """More failed receives of bulk workers than this in each of three minutes."""
    throttled_minutes: int = Field(default=5, ge=1, le=60)
    """Minutes in a row in which DynamoDB throttles a table or one of its indexes."""


TableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{3,255}$")]


class RecordsSettings(Part):
    table_name: TableName | None = None
    """Your own table of the same account and region; None makes one."""
    tenant_key: str = Field(default="tenant", min_length=1)
    id_key: str = Field(default="id", min_length=1)
    key_arn: KeyArn | None = None
    """The KMS key of your own table, where it has one of your own."""

    @model_validator(mode="after")
    def _key_of_a_table(self) -> Self:
        if self.key_arn is not None and self.table_name is None:
            raise ValueError(
                "records.key_arn is the key of records.table_name, which is not set; the key of "
                "what the stack makes is the setting key_arn"
            )
        return self


class DeployEffects(EffectSettings):
    """What the workers are told, and what only their permissions are made from."""

    search_domain_arn: str | None = Field(
        default=None, pattern=r"^arn:[^:]+:es:[^:]+:\d{12}:domain/[a-z0-9-]+$"
    )
    """The domain behind search_url; its access policy has to let the stack's roles in."""
    webhook_secret_key_arn: KeyArn | None = None
    """The KMS key of the stored secret, where that is one of your own."""

    @property
    def told(self) -> EffectSettings:
        only_here = {"search_domain_arn", "webhook_secret_key_arn"}
        return EffectSettings.model_validate(self.model_dump(exclude=only_here))

    @property
    def any(self) -> bool:
        return any((self.search_url, self.webhook_url, self.event_bus))

    @model_validator(mode="after")
    def _domain(self) -> Self:
        signed = (self.search_url or "").startswith("https://")
        if signed != (self.search_domain_arn is not None):
            raise ValueError("an https search_url needs search_domain_arn, and the other way round")
        stored = self.webhook_secret_arn or self.webhook_secret_parameter
        if self.webhook_secret_key_arn is not None and stored is None:
            raise ValueError(
                "webhook_secret_key_arn is the key of webhook_secret_arn or "
                "webhook_secret_parameter, and neither is set"
            )
        return self


class OwnNetwork(Part):
    """A network that was there before. It has to lead to DynamoDB, S3, SQS, ECR, CloudWatch Logs
    and ECS, and to every place outside that the settings name."""

    vpc_id: str = Field(pattern=r"^vpc-([0-9a-f]{8}|[0-9a-f]{17})$")
    subnet_ids: tuple[
        Annotated[str, Field(pattern=r"^subnet-([0-9a-f]{8}|[0-9a-f]{17})$")], ...
    ] = Field(min_length=1)
    security_group_ids: tuple[
        Annotated[str, Field(pattern=r"^sg-([0-9a-f]{8}|[0-9a-f]{17})$")], ...
    ] = Field(min_length=1)
    functions: bool = False
    """Also for the functions of the API, the small lane and recovery: those that search or run
    effects in it. The authorizer stays outside, because it asks the issuer for its keys."""
    public_ip: bool = False
    """The subnets are public, and a worker needs an address to get out of them."""
