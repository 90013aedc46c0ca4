"""Callers that sign with IAM, where the account decides: those of other accounts, and the role of a
demonstration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from aws_cdk import Aws, CfnCondition, Fn
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_iam as iam

from .acknowledge import acknowledge
from .settings import UNKNOWN_ACCOUNT, DeploySettings

_CALL: Final = {"Action": "execute-api:Invoke", "Resource": "execute-api:/*"}


def admit_other_accounts(rest: apigateway.RestApi, principals: Mapping[str, str]) -> None:
    """Give the API a resource policy with the callers of each account that is not the stack's:
    for those IAM wants it beside the caller's own policy.

    The stack learns its account only when it is deployed, so a condition decides for each account.
    A principal of the same account is not in the policy: there it would be enough by itself, and
    the caller's own policy would no longer decide what it may do.
    """
    if not principals:
        return
    by_account: dict[str, list[str]] = defaultdict(list)
    for arn in sorted(principals):
        by_account[arn.split(":")[4]].append(arn)
    statements: list[object] = [
        # A policy has to say something where no other account calls; API Gateway has no HTTP.
        {
            "Effect": "Deny",
            "Principal": "*",
            **_CALL,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    ]
    for account, arns in by_account.items():
        other = CfnCondition(
            rest,
            f"CallersOf{account}",
            expression=Fn.condition_not(Fn.condition_equals(Aws.ACCOUNT_ID, account)),
        )
        allowed = {"Effect": "Allow", "Principal": {"AWS": arns}, **_CALL}
        statements.append(Fn.condition_if(other.logical_id, allowed, Aws.NO_VALUE))
    resource = rest.node.default_child
    assert isinstance(resource, apigateway.CfnRestApi)
    resource.policy = {"Version": "2012-10-17", "Statement": statements}


def callers_of(settings: DeploySettings) -> dict[str, str]:
    """The environment that names the callers, with the account that the stack is deployed to."""
    here = f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}"
    return {
        name: value.replace(UNKNOWN_ACCOUNT, here)
        for name, value in settings.callers.to_env().items()
    }


def demo_role(rest: apigateway.RestApi, settings: DeploySettings) -> iam.Role:
    """Calls the API as the demonstration's tenant, for whom the account lets assume roles."""
    role = iam.Role(
        rest,
        "DemoCaller",
        # By name, because the API's function has to know it before the role is there.
        role_name=settings.demo_principal.rpartition("/")[2],
        description="Calls the Fairlane API as the tenant of the demonstration",
        assumed_by=iam.AccountRootPrincipal(),
    )
    iam.Grant.add_to_principal(
        grantee=role,
        actions=["execute-api:Invoke"],
        resource_arns=[rest.arn_for_execute_api(stage="live")],
    )
    acknowledge(
        role,
        f"IAM5[Resource::arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:"
        f"<{rest.stack.resolve(rest.rest_api_id)['Ref']}>/live/*/*]",
        "The role of a demonstration may call every route; its tenant is all it reaches.",
    )
    return role
