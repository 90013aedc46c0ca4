"""What a deployment chooses: the context key ``fairlane`` of cdk.json, checked at synthesis.

A context names only what differs from the defaults below, at any depth.
A setting that contradicts another one stops synthesis, naming both and their values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from handlers.jobs.selection.field_errors import field_errors
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.pace import PaceSettings
from handlers.jobs.words.timing import DAY, SECOND, LaneTiming, Timing, require
from handlers.settings import (
    AuthSettings,
    CallerSettings,
    PrincipalArn,
    QuerySettings,
    SettingsError,
    Tenant,
)

from .parts import (
    AlarmSettings,
    ApiSettings,
    BulkLaneSettings,
    DeployEffects,
    KeyArn,
    OwnNetwork,
    Part,
    RecordsSettings,
    SmallLaneSettings,
    TableName,
    UploadSettings,
    WafSettings,
)
from .profiles import Profile, defaults_of, merge
from .relations import (
    check_concurrency,
    check_image,
    check_links,
    check_lookup_tables,
    check_network,
    check_no_development,
    check_state,
    check_tables,
    check_tasks,
    check_way_out,
)

CONTEXT_KEY: Final = "fairlane"
UNKNOWN_ACCOUNT: Final = "arn:aws:iam::000000000000"
"""Stands for the account that the stack will be deployed to."""

PRODUCTION_TIMING: Final = Timing(
    small=LaneTiming(heartbeat=20, lease_ttl=90, visibility=360),
    bulk=LaneTiming(heartbeat=30, lease_ttl=120, visibility=300),
    takeover_grace=420,
    function_timeout=60,
    stop_timeout=120,
)


@contextmanager
def in_words() -> Iterator[None]:
    """What a model of settings finds wrong is a SettingsError, with a line for each: a traceback
    ends with what is to be read."""
    try:
        yield
    except ValidationError as error:
        raise SettingsError("\n".join(each.sentence for each in field_errors(error))) from None


class DeploySettings(Part):
    operations: str | None = Field(default=None, min_length=1)
    """The team's own operations: a folder (``./our_operations``) or an entry point's name."""
    stack_name: str = Field(default="Fairlane", pattern=r"^[A-Za-z][A-Za-z0-9-]{0,50}$")
    profile: Profile = "prod"
    """``dev`` starts from settings that fit an empty account, cost little while idle and leave
    nothing behind. ``prod`` starts from the defaults here."""
    local: bool = False
    """Deployed to a local AWS: what is for development only is accepted, and nothing is pulled."""
    timing: Timing = PRODUCTION_TIMING
    limits: Limits = Limits()
    auth: AuthSettings | None = None
    """Tokens and their issuer; or"""
    principals: dict[PrincipalArn, Tenant] = Field(default_factory=dict)
    """IAM: the roles and users that may call, and the tenant each stands for."""
    demo_tenant: Tenant | None = None
    """A role of the stack's own stands for this tenant, and the account's users may assume it: to
    try a deployment out before an issuer or roles of your own are there."""
    enforce_scopes: bool = True
    """Tokens need ``jobs:read`` and ``jobs:write``. Policies say who may do what with IAM."""
    small_lane: SmallLaneSettings = SmallLaneSettings()
    bulk_lane: BulkLaneSettings = BulkLaneSettings()
    api: ApiSettings = ApiSettings()
    waf: WafSettings = WafSettings()
    vpc: OwnNetwork | None = None
    """Your own network, for workers and functions."""
    state_stack: bool = False
    """Tables and bucket are in a stack of their own, whose name ends in ``State``, so that the
    other one can be deleted and made again. For a new deployment: one that is there would begin
    anew, with empty tables."""
    control_table: TableName | None = None
    """A control table that is there already: one restored from a backup. None makes one."""
    records: RecordsSettings = RecordsSettings()
    uploads: UploadSettings = UploadSettings()
    alarms: AlarmSettings = AlarmSettings()
    effects: DeployEffects = DeployEffects()
    query: QuerySettings = QuerySettings()
    pace: PaceSettings = PaceSettings()
    """How bulk work gets out of the way of small jobs."""
    recovery_concurrency: int | None = Field(default=2, ge=1)
    """Kept for recovery: a run that is late, and the next one."""
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
    removal: Literal["retain", "destroy", "purge"] = "retain"
    """What becomes of tables, bucket and logs when the stack goes. ``retain`` also protects the
    stack from being deleted, and leaves nothing of a first deployment that was rolled back.
    ``destroy`` deletes the bucket only if it is empty; ``purge`` empties it, with a function of
    the CDK's."""
    deletion_protection: bool = False
    """DynamoDB refuses to delete the tables, whoever asks. For the second deployment: a first one
    could not be rolled back with it, and would leave its tables behind."""
    key_arn: KeyArn | None = None
    """Your own KMS key, for the tables, the bucket and the queues that the stack makes. Its policy
    has to let the account give rights by IAM, as the default one does."""
    alarm_topic_arn: str | None = Field(default=None, pattern=r"^arn:[^:]+:sns:[^:]+:\d{12}:.+$")

    @classmethod
    def read(cls, context: object) -> Self:
        """From the context value: a mapping, or the same as a JSON string (``cdk -c``). Raises
        SettingsError, with a line for each wrong setting."""
        chosen: Any = json.loads(context) if isinstance(context, str) else context or {}
        defaults = {
            name: field.default.model_dump()
            for name, field in cls.model_fields.items()
            if isinstance(field.default, BaseModel)
        }
        with in_words():
            return cls.model_validate(merge(merge(defaults, defaults_of(chosen)), chosen))

    @model_validator(mode="after")
    def _relations(self) -> Self:
        self.timing.check()
        if sum((self.auth is not None, bool(self.principals), self.demo_tenant is not None)) != 1:
            raise ValueError(
                "set either auth (tokens) or principals (IAM), not both; or, to try it out, "
                "demo_tenant alone"
            )
        check_concurrency(self.small_lane)
        check_tasks(self.bulk_lane)
        check_network(self.bulk_lane, self.vpc, self.effects)
        check_links(self.limits)
        check_lookup_tables(self.limits, self.api, self.small_lane, self.bulk_lane)
        check_tables(self.control_table, self.records)
        check_way_out(self.effects, self.bulk_lane)
        check_state(state_stack=self.state_stack, local=self.local)
        if not self.local:
            check_image(self.bulk_lane)
            check_no_development(self.auth, self.effects)
            self._check_profile()
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

    def _check_profile(self) -> None:
        if self.profile == "prod" and self.alarm_topic_arn is None:
            raise ValueError(
                "alarm_topic_arn is not set: with profile = prod every alarm has to reach "
                "somebody. Name an SNS topic, or set profile to dev"
            )
        if self.deletion_protection and self.removal != "retain":
            raise ValueError(
                f"deletion_protection = true and removal = {self.removal}: a protected table "
                "cannot be removed with its stack"
            )

    @property
    def demo_principal(self) -> str:
        """The role that stands for demo_tenant, in an account that is not known yet."""
        return f"{UNKNOWN_ACCOUNT}:role/{self.stack_name}-demo"

    @property
    def callers(self) -> CallerSettings:
        return CallerSettings(
            caller_auth="token" if self.auth else "iam",
            caller_enforce_scopes=self.enforce_scopes,
            caller_principals=self.principals
            or ({} if self.demo_tenant is None else {self.demo_principal: self.demo_tenant}),
        )
