"""Synthesis for tests, and templates as values that can be asked and spoiled."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fairlane.cdk import FairlaneJobs
from infra.settings import DeploySettings

# isort: split
# infra comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk
from aws_cdk.assertions import Template

ROOT: Final = Path(__file__).parents[2]
CDK_JSON: Final = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
OWN_OPERATIONS: Final = ROOT / "tests" / "support" / "own_operations"

AUTH: Final = {
    "auth_jwks_url": "https://issuer.example/keys",
    "auth_issuer": "https://issuer.example/",
    "auth_audience": "fairlane",
}

TOPIC: Final = "arn:aws:sns:eu-west-1:123456789012:alarms"

PRINCIPALS: Final = {
    "arn:aws:iam::123456789012:role/teams/acme": "acme",
    "arn:aws:iam::123456789012:user/zoe": "zoë's",
}

_KEYS: Final = "arn:aws:kms:eu-west-1:123456789012:key"
JOINED: Final[dict[str, Any]] = {
    "auth": None,
    "principals": {**PRINCIPALS, "arn:aws:iam::222222222222:role/partner": "acme"},
    "key_arn": f"{_KEYS}/0123456a-0000-4000-8000-000000000000",
    "records": {
        "table_name": "products",
        "key_arn": f"{_KEYS}/0123456b-0000-4000-8000-000000000000",
    },
    "vpc": {
        "vpc_id": "vpc-0000000a",
        "subnet_ids": ["subnet-0000000a", "subnet-0000000b", "subnet-0000000c"],
        "security_group_ids": ["sg-0000000a"],
        "functions": True,
    },
    "bulk_lane": {
        "network": "own",
        "repository": {
            "name": "arn:aws:ecr:eu-west-1:222222222222:repository/team/worker",
            "digest": "sha256:" + "0" * 64,
        },
    },
    "effects": {
        "search_url": "https://vpc-products-x.eu-west-1.es.amazonaws.com",
        "search_domain_arn": "arn:aws:es:eu-west-1:123456789012:domain/products",
        "webhook_url": "https://hook.partner.dev",
        "webhook_secret_arn": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hook",
        "webhook_secret_key_arn": f"{_KEYS}/0123456c-0000-4000-8000-000000000000",
    },
}

Properties = dict[str, Any]


def settings_of(**chosen: object) -> DeploySettings:
    return DeploySettings.read({"auth": AUTH, "alarm_topic_arn": TOPIC, **chosen})


def context_of(**chosen: object) -> dict[str, Any]:
    # No stack is bundled: a template does not depend on the wheels.
    fairlane = {"auth": AUTH, "alarm_topic_arn": TOPIC, **chosen}
    return {**CDK_JSON, "fairlane": fairlane, "aws:cdk:bundling-stacks": []}


def app_and_stack(settings: DeploySettings, out: Path | None = None) -> tuple[cdk.App, cdk.Stack]:
    app = cdk.App(context=context_of(), outdir=None if out is None else str(out))
    # As app.py does.
    protected = settings.removal == "retain"
    stack = cdk.Stack(app, settings.stack_name, termination_protection=protected)
    FairlaneJobs(stack, "Default", settings=settings)
    return app, stack


def synthesise(settings: DeploySettings) -> Synthesised:
    _, stack = app_and_stack(settings)
    return Synthesised(Template.from_stack(stack).to_json())


@dataclass(frozen=True)
class Synthesised:
    """A template. ``properties`` by logical id; ids hold their constructs' names."""

    template: Mapping[str, Any]

    def of(self, kind: str) -> dict[str, Properties]:
        """Properties of every resource of the type, such as ``SQS::Queue``, by logical id."""
        return {
            id_: resource.get("Properties", {})
            for id_, resource in self.template["Resources"].items()
            if resource["Type"] == f"AWS::{kind}"
        }

    def find(self, kind: str, part: str) -> str:
        """The id of the one resource of the type with this in its id."""
        (found,) = [id_ for id_ in self.of(kind) if part in id_]
        return found

    def properties(self, kind: str, part: str) -> Properties:
        return self.of(kind)[self.find(kind, part)]

    def spoiled(self, kind: str, part: str, **changed: object) -> Synthesised:
        """A copy in which these properties of one resource are different; None takes one out."""
        template = copy.deepcopy(dict(self.template))
        properties = template["Resources"][self.find(kind, part)]["Properties"]
        properties.update(changed)
        for name, value in changed.items():
            if value is None:
                del properties[name]
        return Synthesised(template)


def referred(value: object) -> str:
    """The logical id a Ref or GetAtt points to."""
    match value:
        case {"Ref": str() as id_} | {"Fn::GetAtt": [str() as id_, *_]}:
            return id_
    raise AssertionError(f"no reference: {value}")
