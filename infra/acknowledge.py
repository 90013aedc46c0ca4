"""Findings of cdk-nag's rules (AWS Solutions, Serverless) that stand, each beside what it is about,
with its reason."""

from __future__ import annotations

import json

import jsii
from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct, IValidation


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """``rule``: an AWS Solutions rule without its pack, such as ``S1`` or ``IAM5[Resource::*]``."""
    _acknowledge(construct, f"AwsSolutions-{rule}", reason)


def acknowledge_serverless(construct: IConstruct, rule: str, reason: str) -> None:
    """``rule``: a Serverless rule without its pack, such as ``LambdaDLQ``."""
    _acknowledge(construct, f"Serverless-{rule}", reason)


def _acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    # Without the prefix the finding would vanish from the report instead of being listed.
    pack = rule.partition("-")[0]
    Validations.of(construct).acknowledge(Acknowledgment(id=f"{pack}::{rule}", reason=reason))


def acknowledge_cdk_function(scope: Construct, name: str) -> None:
    """For a function that the CDK adds to the stack by itself, of which it leaves no choice."""
    provider = Stack.of(scope).node.find_child(name)
    acknowledge(
        provider,
        "IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
        "AWSLambdaBasicExecutionRole]",
        "The CDK's own function, which only writes its log with it.",
    )
    acknowledge(provider, "L1", "The CDK chooses the runtime of its own functions and updates it.")


def acknowledge_payload_objects(construct: Construct, payloads: s3.Bucket) -> None:
    """For whoever was given actions on id lists and uploads."""
    if Stack.of(construct) is Stack.of(payloads):
        _acknowledge_objects(construct, payloads)
    else:
        # What a bucket of another stack is called is known when references have been resolved,
        # which is just before this; the rules are applied later.
        construct.node.add_validation(_Late(construct, payloads))


@jsii.implements(IValidation)
class _Late:
    def __init__(self, construct: Construct, payloads: s3.Bucket) -> None:
        self._construct, self._payloads = construct, payloads

    def validate(self) -> list[str]:
        """No finding of its own."""
        _acknowledge_objects(self._construct, self._payloads)
        return []


def _acknowledge_objects(construct: Construct, payloads: s3.Bucket) -> None:
    match Stack.of(construct).resolve(payloads.bucket_arn):
        case {"Fn::GetAtt": [bucket, _]}:
            named = f"<{bucket}.Arn>"
        case reference:
            named = json.dumps(reference, separators=(",", ":"))
    acknowledge(
        construct,
        f"IAM5[Resource::{named}/*]",
        "Objects are named after jobs and uploads, which do not exist yet when the policy is "
        "written; the bucket holds nothing but these.",
    )
