"""Deployment of a synthesised app to the local AWS, through its CloudFormation API."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from .adapt import Template, adapt
from .errors import LocalError
from .ministack import ACCOUNT, REGION
from .packing import packed

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.literals import CapabilityType
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_ssm import SSMClient

BOOTSTRAP_PARAMETER: Final = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION: Final = "30"
"""At least what the CDK asks for; its rule is evaluated here as on AWS."""
DEPLOY_TIMEOUT_S: Final = 600
CAPABILITIES: Final[Sequence[CapabilityType]] = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM")
NOTHING_TO_UPDATE: Final = "No updates are to be performed"
IDENTITY: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS::DynamoDB::Table": ("TableName", "KeySchema"),
    "AWS::DynamoDB::GlobalTable": ("TableName", "KeySchema"),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::SQS::Queue": ("QueueName", "FifoQueue"),
    "AWS::ApiGateway::RestApi": (),
}
"""Types of what holds data or an address, and the properties that make it another one."""


class Clients(Protocol):
    """The services a deployment talks to."""

    @property
    def s3(self) -> S3Client: ...
    @property
    def cloudformation(self) -> CloudFormationClient: ...
    @property
    def ssm(self) -> SSMClient: ...


class Resource(BaseModel):
    model_config = ConfigDict(frozen=True)

    type: str
    id: str
    """The physical id."""


class Deployed(BaseModel):
    """The stack as it stands."""

    model_config = ConfigDict(frozen=True)

    stack: str
    outputs: Mapping[str, str]
    resources: Mapping[str, Resource]
    """By logical id."""

    def only(self, kind: str) -> str:
        """The physical id of the one resource of this type. Raises LocalError."""
        found = [resource.id for resource in self.resources.values() if resource.type == kind]
        if len(found) != 1:
            raise LocalError(f"the stack {self.stack} has {len(found)} of {kind}; expected one")
        return found[0]

    def api_url(self, aws: str) -> str:
        """By path, so that no Host header is needed; see ministack's execute-api addresses.
        aws: the address of the local AWS."""
        api, stage = self.only("AWS::ApiGateway::RestApi"), self.only("AWS::ApiGateway::Stage")
        return f"{aws}/_aws/execute-api/{api}/{stage}"


def deploy(clients: Clients, assembly: Path) -> Deployed:
    """Deploy the assembly's one stack and wait for it. Raises LocalError with the resource that
    failed and why."""
    name, url, _ = _uploaded(clients, assembly)
    clients.cloudformation.create_stack(StackName=name, TemplateURL=url, Capabilities=CAPABILITIES)
    return _wait(clients.cloudformation, name, "CREATE")


def update(clients: Clients, assembly: Path) -> Deployed:
    """Bring what is deployed up to the assembly, and leave what holds data as it is. Raises
    LocalError like ``deploy``, and before anything is changed when data would be lost."""
    name, url, fresh = _uploaded(clients, assembly)
    keeps_data(template(clients.cloudformation, name), fresh)
    try:
        clients.cloudformation.update_stack(
            StackName=name, TemplateURL=url, Capabilities=CAPABILITIES
        )
    except clients.cloudformation.exceptions.ClientError as error:
        if NOTHING_TO_UPDATE not in str(error):
            raise LocalError(f"deploying {name} to the local AWS failed: {error}") from error
        return _deployed(clients.cloudformation, name)
    return _wait(clients.cloudformation, name, "UPDATE")


def keeps_data(before: Template, after: Template) -> None:
    """Raises LocalError naming what a change of templates would replace or remove, and its data
    with it."""
    fresh: Mapping[str, Any] = after["Resources"]
    lost = [
        f"{body['Type']} {name}"
        for name, body in before["Resources"].items()
        if body["Type"] in IDENTITY and _identity(body) != _identity(fresh.get(name))
    ]
    if lost:
        raise LocalError(
            f"this change would replace {', '.join(sorted(lost))}, and what is in there would be "
            "lost: stop the stack with `fairlane local down` and start it with `fairlane local up`"
        )


def _identity(resource: Mapping[str, Any] | None) -> object:
    """What cannot change without another resource taking this one's place."""
    if resource is None:
        return None
    properties = resource.get("Properties", {})
    return resource["Type"], [properties.get(name) for name in IDENTITY[resource["Type"]]]


def template(cloudformation: CloudFormationClient, name: str) -> Template:
    """What is deployed."""
    body: Any = cloudformation.get_template(StackName=name)["TemplateBody"]
    found: Template = json.loads(body) if isinstance(body, str) else body
    return found


def _uploaded(clients: Clients, assembly: Path) -> tuple[str, str, Template]:
    """The stack's name, the address of its adapted template, and the template."""
    name, artifact = _stack(assembly)
    clients.ssm.put_parameter(
        Name=BOOTSTRAP_PARAMETER, Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True
    )
    bucket = _upload_assets(clients.s3, assembly, artifact)
    template = adapt(json.loads((assembly / artifact["properties"]["templateFile"]).read_text()))
    key = f"{name}.adapted.json"
    clients.s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(template).encode())
    return name, f"{clients.s3.meta.endpoint_url}/{bucket}/{key}", template


def _stack(assembly: Path) -> tuple[str, dict[str, Any]]:
    manifest = json.loads((assembly / "manifest.json").read_text())
    stacks = {
        name: artifact
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    if len(stacks) != 1:
        raise LocalError(f"the app has {len(stacks)} stacks; the local deployment expects one")
    name, artifact = stacks.popitem()
    return artifact["properties"].get("stackName", name), {**artifact, "id": name}


def _upload_assets(s3: S3Client, assembly: Path, artifact: Mapping[str, Any]) -> str:
    """Upload the file assets to the bucket they name, and return it."""
    assets = json.loads((assembly / f"{artifact['id']}.assets.json").read_text())
    template = artifact["properties"]["templateFile"]
    buckets: set[str] = set()
    for asset in assets["files"].values():
        for destination in asset["destinations"].values():
            bucket = _filled_in(destination["bucketName"])
            if bucket not in buckets:
                s3.create_bucket(Bucket=bucket)
                buckets.add(bucket)
            if asset["source"]["path"] != template:
                s3.put_object(
                    Bucket=bucket,
                    Key=_filled_in(destination["objectKey"]),
                    Body=packed(assembly / asset["source"]["path"], asset["source"]["packaging"]),
                )
    if len(buckets) != 1:
        raise LocalError(f"the app's assets go to {len(buckets)} buckets; expected one")
    return buckets.pop()


def _filled_in(text: str) -> str:
    for name, value in {
        "AWS::AccountId": ACCOUNT,
        "AWS::Region": REGION,
        "AWS::Partition": "aws",
    }.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def _wait(
    cloudformation: CloudFormationClient, name: str, what: Literal["CREATE", "UPDATE"]
) -> Deployed:
    deadline = time.monotonic() + DEPLOY_TIMEOUT_S
    while time.monotonic() < deadline:
        stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        if stack["StackStatus"] == f"{what}_COMPLETE":
            return _deployed(cloudformation, name)
        if not stack["StackStatus"].endswith("_IN_PROGRESS"):
            raise LocalError(
                f"deploying {name} to the local AWS failed: {stack['StackStatus']}\n"
                + _failures(cloudformation, name)
            )
        time.sleep(0.1)
    raise LocalError(f"deploying {name} to the local AWS took more than {DEPLOY_TIMEOUT_S} s")


def _deployed(cloudformation: CloudFormationClient, name: str) -> Deployed:
    stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    outputs = {out["OutputKey"]: out["OutputValue"] for out in stack.get("Outputs", [])}
    return Deployed(stack=name, outputs=outputs, resources=_resources(cloudformation, name))


def _resources(cloudformation: CloudFormationClient, name: str) -> dict[str, Resource]:
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
    return {
        resource["LogicalResourceId"]: Resource(
            type=resource["ResourceType"], id=resource.get("PhysicalResourceId", "")
        )
        for page in pages
        for resource in page["StackResourceSummaries"]
    }


def _failures(cloudformation: CloudFormationClient, name: str) -> str:
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    return "\n".join(
        f"{event.get('ResourceType', '')} {event.get('LogicalResourceId', '')}: "
        f"{event.get('ResourceStatusReason', 'no reason given')}"
        for event in reversed(events)
        if event.get("ResourceStatus", "").endswith("FAILED")
    )
