"""A deployment onto a running stack keeps the data, or does not begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scripts.local.deploy import keeps_data
from scripts.local.errors import LocalError

KEYS = [{"AttributeName": "pk", "KeyType": "HASH"}]
TEMPLATE: Mapping[str, Any] = {
    "Resources": {
        "Records": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {"KeySchema": KEYS}},
        "Payloads": {"Type": "AWS::S3::Bucket"},
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 60}},
        "Api": {"Type": "AWS::ApiGateway::RestApi"},
        "Worker": {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": 1}},
    }
}


def changed(name: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
    resources = {**TEMPLATE["Resources"], name: body}
    return {"Resources": {key: value for key, value in resources.items() if value is not None}}


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("Worker", {"Type": "AWS::Lambda::Function", "Properties": {"Timeout": 2}}),
        ("Worker", None),
        ("Queue", {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 90}}),
        ("More", {"Type": "AWS::S3::Bucket"}),
        (
            "Records",
            {
                "Type": "AWS::DynamoDB::GlobalTable",
                "Properties": {"KeySchema": KEYS, "TimeToLiveSpecification": {"Enabled": True}},
            },
        ),
    ],
)
def test_what_leaves_data_in_its_place_is_deployed(
    name: str, body: Mapping[str, Any] | None
) -> None:
    keeps_data(TEMPLATE, changed(name, body))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("Records", None),
        ("Payloads", None),
        ("Queue", None),
        ("Api", None),
        ("Payloads", {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "other"}}),
        ("Queue", {"Type": "AWS::SQS::Queue", "Properties": {"FifoQueue": True}}),
        ("Records", {"Type": "AWS::DynamoDB::Table", "Properties": {"KeySchema": KEYS}}),
        ("Records", {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {"KeySchema": []}}),
    ],
)
def test_what_would_lose_data_is_refused_by_name(name: str, body: Mapping[str, Any] | None) -> None:
    with pytest.raises(LocalError, match=rf"would replace AWS::\S+ {name}, .*fairlane local down"):
        keeps_data(TEMPLATE, changed(name, body))
