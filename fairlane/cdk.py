"""Fairlane in a team's own CDK app::

stack = Stack(app, "Shop")
jobs = FairlaneJobs(stack, "Jobs", operations="./our_operations", auth=AuthSettings(...))
jobs.grant_submit(function)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from infra.operations import OperationsError
from infra.parts import OwnNetwork, RecordsSettings
from infra.settings import CONTEXT_KEY, DeploySettings
from infra.stacks import Deployment
from infra.storage import Storage

# isort: split
# infra comes first: it names the Node that runs the CDK's engine.
from aws_cdk import Stack, Token
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from handlers.effects.event_bus import DETAIL_TYPE, SOURCE, job_detail_type
from handlers.jobs.words.event import EventType
from handlers.settings import AuthSettings, SettingsError

__all__ = [
    "AuthSettings",
    "DeploySettings",
    "FairlaneJobs",
    "FairlaneState",
    "OperationsError",
    "OwnNetwork",
    "RecordsSettings",
    "SettingsError",
    "settings_of",
]

DETAIL_TYPES: Final = (DETAIL_TYPE, *map(job_detail_type, EventType))
"""Of the events on a deployment's bus."""
CALLERS: Final = ("auth", "principals", "demo_tenant")
"""The settings of which a deployment has exactly one."""


class FairlaneState(Storage):
    """A deployment's tables and bucket in a stack of their own, for a ``FairlaneJobs`` in another
    one, which can be deleted and made again without them."""

    def __init__(self, scope: Construct, id_: str, *, settings: DeploySettings) -> None:
        """settings: ``state_stack`` is true in them. Raises ValueError where it is not: the jobs
        would not ask for this state, and have tables of their own beside it."""
        if not settings.state_stack:
            raise ValueError(
                "FairlaneState and state_stack = false: set state_stack to true, or leave out the "
                "FairlaneState, and FairlaneJobs makes the tables in its own stack"
            )
        super().__init__(scope, id_, settings=settings)
        self.jobs: FairlaneJobs | None = None
        """The deployment that works with it, once there is one."""


class FairlaneJobs(Deployment):
    """Fairlane's lanes, API and tables in the stack of this scope; a stack has one of them."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: DeploySettings | None = None,
        operations: str | None = None,
        records: dynamodb.ITable | RecordsSettings | None = None,
        vpc: OwnNetwork | None = None,
        auth: AuthSettings | None = None,
        state: FairlaneState | None = None,
        **more: Any,
    ) -> None:
        """state: the tables and the bucket, and all settings. settings: all of them, checked
        already; or any of them by name:

        operations: a folder of the team's own, or an entry point. records: the table with the
        team's records, or its name and keys; one is made when left out. vpc: the network of the
        workers. auth: the issuer of the callers' tokens. more: any other of ``DeploySettings``.

        The CDK context ``fairlane`` goes over what is named here by name; ``settings_of`` does it
        for ``settings``. Raises SettingsError, which names the setting, OperationsError,
        and ValueError for a second one in a stack or with a state.
        """
        if state is not None:
            _check_named_once(state, settings, operations, records, vpc, auth, more or None)
            settings = state.settings
        if settings is None:
            named = {"operations": operations, "records": records, "vpc": vpc, "auth": auth}
            chosen = {name: value for name, value in named.items() if value is not None}
            settings = settings_of(scope, {**chosen, **more})
        _check_alone(scope)
        if settings.state_stack and state is None:
            raise ValueError(
                "state_stack = true and FairlaneJobs has no state: make a FairlaneState in a stack "
                "of its own, and name it"
            )
        if state is not None:
            _check_place(state, scope)
        super().__init__(scope, id_, settings=settings, state=state)
        self.settings: Final = settings
        if state is not None:
            state.jobs = self

    @property
    def url(self) -> str:
        """The API's address, with its stage."""
        return self.rest_api.url

    @property
    def rest_api(self) -> apigateway.RestApi:
        return self.api.rest

    @property
    def records_table(self) -> dynamodb.ITable:
        return self.storage.records

    @property
    def control_table(self) -> dynamodb.ITable:
        """Jobs and leases, for workers of a team's own that share the leases."""
        return self.storage.control

    @property
    def queues(self) -> Mapping[str, sqs.Queue]:
        """The lanes' queues: ``small`` and ``bulk``."""
        return {"small": self.small.queue, "bulk": self.bulk.queue}

    @property
    def dead_letter_queues(self) -> Mapping[str, sqs.Queue]:
        return {"small": self.small.dead_letters, "bulk": self.bulk.dead_letters}

    @property
    def dashboard(self) -> cloudwatch.Dashboard:
        return self.monitoring.dashboard

    def metric_waiting(self, lane: str) -> cloudwatch.Metric:
        """Messages that wait in the queue of ``small`` or ``bulk``."""
        lanes = {"small": self.small, "bulk": self.bulk}
        return lanes[lane].metric("ApproximateNumberOfMessagesVisible")

    def on_event(
        self,
        id_: str,
        *detail_types: str,
        target: events.IRuleTarget | None = None,
    ) -> events.Rule:
        """A rule for what the deployment puts on its bus: events of these types, such as "Job
        Ended" or "Records Changed"; of all types, when none is named. Raises ValueError for one
        that there is not, and where ``effects.event_bus`` is not set."""
        bus = self.settings.effects.event_bus
        if bus is None:
            raise ValueError("on_event: this deployment has no bus; set effects.event_bus")
        if unknown := sorted(set(detail_types) - set(DETAIL_TYPES)):
            raise ValueError(
                f"on_event: no events are called {', '.join(map(repr, unknown))}; there are "
                f"{', '.join(map(repr, DETAIL_TYPES))}"
            )
        named = (
            events.EventBus.from_event_bus_arn
            if bus.startswith("arn:")
            else events.EventBus.from_event_bus_name
        )
        return events.Rule(
            self,
            id_,
            event_bus=named(self, f"{id_}Bus", bus),
            event_pattern=events.EventPattern(
                source=[SOURCE], detail_type=list(detail_types or DETAIL_TYPES)
            ),
            targets=None if target is None else [target],
        )

    def grant_submit(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a role or function call the API, with signed requests. Its role has to stand for a
        tenant, in ``principals``. Raises ValueError where callers have tokens."""
        if self.settings.auth is not None:
            raise ValueError(
                "grant_submit: the callers of this deployment have tokens of the issuer "
                f"{self.settings.auth.auth_issuer}; set principals instead of auth, which lets "
                "roles call"
            )
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["execute-api:Invoke"],
            resource_arns=[self.rest_api.arn_for_execute_api()],
        )

    def grant_lease(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a worker of the team's own take leases of subjects, with ``fairlane.lease``."""
        return _grant_lease(self, grantee)


def _grant_lease(jobs: FairlaneJobs, grantee: iam.IGrantable) -> iam.Grant:
    return iam.Grant.add_to_principal(
        grantee=grantee,
        actions=["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem"],
        resource_arns=[jobs.control_table.table_arn],
        # Leases alone: no job can be changed.
        conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["SUBJECT#*"]}},
    )


def settings_of(scope: Construct, chosen: Mapping[str, Any]) -> DeploySettings:
    """The settings that are chosen, by name, with those of the CDK context over them. scope: the
    stack of the jobs. Raises SettingsError."""
    context = scope.node.try_get_context(CONTEXT_KEY) or {}
    above: dict[str, Any] = json.loads(context) if isinstance(context, str) else dict(context)
    below = {"stack_name": Stack.of(scope).stack_name, **_plain(chosen)}
    if any(above.get(name) for name in CALLERS):
        below = {name: value for name, value in below.items() if name not in CALLERS}
    return DeploySettings.read(_over(below, above))


def _plain(chosen: Mapping[str, Any]) -> dict[str, Any]:
    records = chosen.get("records")
    if records is None or isinstance(records, RecordsSettings | Mapping):
        return dict(chosen)
    key = records.encryption_key
    # Past the checks of what names look like: CloudFormation fills these in.
    named = RecordsSettings.model_construct(
        table_name=records.table_name, key_arn=None if key is None else key.key_arn
    )
    return {**chosen, "records": named}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**below, **above}
    for name, value in above.items():
        under = below.get(name)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            merged[name] = _over(under, value)
    return merged


def _check_named_once(
    state: FairlaneState, settings: DeploySettings | None, *named: object
) -> None:
    """Tables, grants and programs have to agree, so the settings come from one place."""
    if any(each is not None for each in named) or settings not in (None, state.settings):
        raise ValueError(
            "a FairlaneJobs with a state has the settings of that state: name them there alone"
        )


def _check_place(state: FairlaneState, scope: Construct) -> None:
    """One deployment works with a state, from another stack, under the names of its own."""
    stack, named = Stack.of(scope), state.settings.stack_name
    if Stack.of(state) is stack:
        raise ValueError(
            f"FairlaneState and FairlaneJobs are both in the stack {stack.stack_name}: make the "
            "FairlaneState in a stack of its own"
        )
    here, there = stack.environment, Stack.of(state).environment
    if here != there:
        raise ValueError(
            f"the FairlaneState is for {there} and the FairlaneJobs for {here}: give both stacks "
            "the same account and region"
        )
    if state.jobs is not None:
        raise ValueError(
            f"the FairlaneState {state.node.path} has the FairlaneJobs {state.jobs.node.path} "
            "already: two deployments would send messages of the same jobs to different queues"
        )
    if not Token.is_unresolved(stack.stack_name) and stack.stack_name != named:
        raise ValueError(
            f"stack_name = {named} and the FairlaneJobs is in the stack {stack.stack_name}: "
            "metrics and the web ACL's log would have the name of another deployment"
        )


def _check_alone(scope: Construct) -> None:
    stack = Stack.of(scope)
    if any(isinstance(each, Deployment) for each in stack.node.find_all()):
        raise ValueError(
            f"the stack {stack.stack_name} has a FairlaneJobs already: commands find a deployment "
            "by its stack, so another one needs a stack of its own"
        )
