"""A deployed stack as its own workers see it: the settings are read from a deployed function, so
that a tool can never disagree with what runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from handlers import bootstrap
from handlers.aws.lane_queue import SqsLaneQueue
from handlers.jobs.storage.shards import with_all_shards
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.job import Lane
from handlers.settings import PREFIX, SettingsError, WorkSettings
from scripts.local.errors import LocalError

if TYPE_CHECKING:
    from handlers.jobs.words.ports import LaneQueue, World
    from scripts.local.stack import LocalStack

# Recovery has every setting that a tool needs, and there is one of it.
FUNCTION_PART: Final = "RecoveryFunction"
DEAD_LETTERS: Final = {Lane.SMALL: "SmallDeadLettersUrl", Lane.BULK: "BulkDeadLettersUrl"}


@dataclass(frozen=True)
class Deployment:
    world: World
    dead_letters: Mapping[Lane, LaneQueue]
    outputs: Mapping[str, str]
    settings: WorkSettings
    operator: Callable[[], str]
    """The ARN of whoever runs the command. Raises ClientError, BotoCoreError."""


def deployment(stack: str | None, local: str) -> Deployment:
    """The deployment of a CloudFormation stack, or of the local stack when none is named.

    The environment is this deployment's afterwards: what makes clients of its own, later, makes
    them for it. Raises LocalError, saying what could not be read."""
    if stack is None:
        stack = attached(local).deployed.stack
    try:
        return _read(stack)
    except (BotoCoreError, ClientError, FairlaneError) as error:
        raise LocalError(f"the stack {stack!r} cannot be read: {error}") from error
    except SettingsError as error:
        raise LocalError(
            f"this version cannot read the settings of the stack {stack!r}: {error}"
        ) from error


def attached(name: str) -> LocalStack:
    """The local stack of that name, for every AWS client that is made from here on. Raises
    LocalError."""
    try:
        from scripts.local.stack import LocalStack  # noqa: PLC0415  its parts are an extra
    except ModuleNotFoundError as error:
        raise LocalError(
            "no stack is named: set --stack (a local stack needs `fairlane[local]`: "
            f"{error.name} is not installed)"
        ) from error
    found = LocalStack(name).attach()
    os.environ.update(found.credentials)
    os.environ.update(found.addresses)
    return found


def outputs_of(stack: str) -> Mapping[str, str]:
    """The outputs of a CloudFormation stack. Raises ClientError, BotoCoreError."""
    [described] = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    return {each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", [])}


def _read(stack: str) -> Deployment:
    outputs = outputs_of(stack)
    settings, world = world_of(_environment(stack))
    world = with_all_shards(world)
    sqs = boto3.client("sqs")
    queues = {lane: SqsLaneQueue(sqs, outputs[name]) for lane, name in DEAD_LETTERS.items()}
    return Deployment(world, queues, outputs, settings, _caller)


def _caller() -> str:
    return str(boto3.client("sts").get_caller_identity()["Arn"])


def _environment(stack: str) -> dict[str, str]:
    pages = boto3.client("cloudformation").get_paginator("list_stack_resources")
    for page in pages.paginate(StackName=stack):
        for each in page["StackResourceSummaries"]:
            # The name begins with that of the team's construct, where that has one.
            if (
                each["ResourceType"] == "AWS::Lambda::Function"
                and FUNCTION_PART in each["LogicalResourceId"]
            ):
                configuration = boto3.client("lambda").get_function_configuration(
                    FunctionName=each["PhysicalResourceId"]
                )
                variables = configuration.get("Environment", {}).get("Variables", {})
                return {k: v for k, v in variables.items() if k.startswith(PREFIX)}
    raise LocalError(f"the stack {stack!r} has no function ...{FUNCTION_PART}...: is it Fairlane?")


def world_of(variables: Mapping[str, str]) -> tuple[WorkSettings, World]:
    """Every port of the deployment whose functions have these variables. Raises SettingsError."""
    _put(variables)
    settings = WorkSettings.from_env(variables)
    # Not ``bootstrap.world``: that one is a process's only one, and a tool may look at several
    # deployments one after another.
    # A tool applies no operation, and the team's own are not installed beside it.
    without_own = settings.model_copy(update={"operations": None})
    return settings, bootstrap.make_world(without_own, Quiet())


def _put(variables: Mapping[str, str]) -> None:
    """These into the environment, and out of it what an earlier deployment had more."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.environ.update(variables)


class Quiet:
    """Telemetry of a tool: what it does, it prints itself."""

    def log(self, action: str, **fields: object) -> None:
        """Nothing."""

    def count(
        self, metric: str, value: int = 1, *, lane: Lane | None = None, operation: str | None = None
    ) -> None:
        """Nothing."""

    def duration(
        self, metric: str, ms: int, *, lane: Lane | None = None, operation: str | None = None
    ) -> None:
        """Nothing."""
