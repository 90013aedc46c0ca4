"""Deployment of a synthesised app to the local AWS, through its CloudFormation API."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import BaseModel, ConfigDict

from .adapt import adapt
from .errors import LocalError
from .ministack import ACCOUNT, REGION

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_ssm import SSMClient

BOOTSTRAP_PARAMETER: Final = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION: Final = "30"
"""At least what the CDK asks for; its rule is evaluated here as on AWS."""
DEPLOY_TIMEOUT_S: Final = 600
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time stamp of every zipped file, so that the same code is the same archive."""


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


def deploy(clients: Clients, assembly: Path) -> Deployed:
    """Deploy the assembly's one stack and wait for it. Raises LocalError with the resource that
    failed and why."""
    name, artifact = _stack(assembly)
    clients.ssm.put_parameter(
        Name=BOOTSTRAP_PARAMETER, Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True
    )
    bucket = _upload_assets(clients.s3, assembly, artifact)
    template = adapt(json.loads((assembly / artifact["properties"]["templateFile"]).read_text()))
    key = f"{name}.adapted.json"
    clients.s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(template).encode())
    clients.cloudformation.create_stack(
        StackName=name,
        TemplateURL=f"{clients.s3.meta.endpoint_url}/{bucket}/{key}",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
    )
    return _wait(clients.cloudformation, name)


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
                    Body=_packed(assembly / asset["source"]["path"], asset["source"]["packaging"]),
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


def _packed(path: Path, packaging: str) -> bytes:
    if packaging == "file":
        return path.read_bytes()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(str(file.relative_to(path)), date_time=EPOCH)
                archive.writestr(entry, file.read_bytes())
    return content.getvalue()


def _wait(cloudformation: CloudFormationClient, name: str) -> Deployed:
    deadline = time.monotonic() + DEPLOY_TIMEOUT_S
    while time.monotonic() < deadline:
        stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
        if stack["StackStatus"] == "CREATE_COMPLETE":
            outputs = {out["OutputKey"]: out["OutputValue"] for out in stack.get("Outputs", [])}
            return Deployed(stack=name, outputs=outputs, resources=_resources(cloudformation, name))
        if not stack["StackStatus"].endswith("CREATE_IN_PROGRESS"):
            raise LocalError(
                f"deploying {name} to the local AWS failed: {stack['StackStatus']}\n"
                + _failures(cloudformation, name)
            )
        time.sleep(0.1)
    raise LocalError(f"deploying {name} to the local AWS took more than {DEPLOY_TIMEOUT_S} s")


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
