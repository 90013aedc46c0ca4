"""How every Lambda of the stack is made: same code, same layer, own role, own log group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from .acknowledge import acknowledge, acknowledge_serverless
from .bundling import architecture, runtime
from .grants import allow
from .network import own_place
from .settings import DeploySettings
from .storage import removal_of

SERVICE: Final = "fairlane"

_RETENTION: Final = {
    1: logs.RetentionDays.ONE_DAY,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}


def log_group(
    scope: Construct, id_: str, settings: DeploySettings, *, name: str | None = None
) -> logs.LogGroup:
    """name: a fixed one, which a group left behind would keep from the next stack."""
    return logs.LogGroup(
        scope,
        id_,
        log_group_name=name,
        retention=_RETENTION[settings.log_retention_days],
        removal_policy=RemovalPolicy.DESTROY if name is not None else removal_of(settings),
    )


def powertools_env(settings: DeploySettings) -> dict[str, str]:
    return {
        "POWERTOOLS_SERVICE_NAME": SERVICE,
        "POWERTOOLS_LOG_LEVEL": settings.log_level,
    }


@dataclass(frozen=True)
class Functions:
    """Makes the stack's functions."""

    settings: DeploySettings
    code: lambda_.Code
    layers: Sequence[lambda_.LayerVersion]

    def make(
        self,
        scope: Construct,
        entrypoint: str,
        *,
        description: str,
        environment: Mapping[str, str],
        timeout: int,
        memory: int,
        reserved_concurrency: int | None = None,
        works: bool = True,
    ) -> lambda_.Function:
        """``entrypoint``: the module of ``handlers``; ``timeout`` in seconds, memory in MiB.
        works: runs in the network of ``vpc``, where that is for functions."""
        group = log_group(scope, "Logs", self.settings)
        role = _role(scope, group)
        own = self.settings.vpc
        place = own_place(scope, own) if works and own is not None and own.functions else None
        if place is not None:
            _allow_interfaces(role)
        function = lambda_.Function(
            scope,
            "Function",
            description=description,
            code=self.code,
            handler=f"handlers.{entrypoint}.handler",
            runtime=runtime(self.settings),
            architecture=architecture(self.settings),
            layers=list(self.layers),
            environment={**environment, **powertools_env(self.settings)},
            timeout=Duration.seconds(timeout),
            memory_size=memory,
            reserved_concurrent_executions=reserved_concurrency,
            log_group=group,
            role=role,
            vpc=None if place is None else place.vpc,
            vpc_subnets=None if place is None else place.subnets,
            security_groups=None if place is None else place.groups,
        )
        _acknowledge(function)
        return function


def _acknowledge(function: lambda_.Function) -> None:
    version = (
        "The wheels in the layer are locked and tested for this version; the setting moves both "
        "together."
    )
    acknowledge(function, "L1", version)
    acknowledge_serverless(function, "LambdaLatestVersion", version)
    acknowledge_serverless(
        function,
        "LambdaDLQ",
        "A queue, API Gateway or the schedule of recovery invokes it: the first has dead letters, "
        "the second tells its caller, and the third runs again a minute later.",
    )
    acknowledge_serverless(
        function,
        "LambdaTracing",
        "A job is followed by its id, which every log line of every program has; X-Ray would see "
        "the functions, but not the bulk workers, and is billed by the trace.",
    )


def _role(scope: Construct, group: logs.LogGroup) -> iam.Role:
    """Not CDK's default: that one may write to every log group of the account."""
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    group.grant_write(role)
    return role


def _allow_interfaces(role: iam.Role) -> None:
    """What Lambda needs to put a function into a network."""
    allow(
        role,
        (
            "ec2:AssignPrivateIpAddresses",
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:UnassignPrivateIpAddresses",
        ),
        "*",
    )
    acknowledge(
        role,
        "IAM5[Resource::*]",
        "Network interfaces of functions: EC2 knows no resource for describing them, and their ids "
        "do not exist when the policy is written.",
    )
