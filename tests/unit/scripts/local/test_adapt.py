"""What is dropped from a template for the local AWS, and that nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.local.adapt import DROPPED_TYPES, adapt
from scripts.local.errors import LocalError


def template(**resources: dict[str, Any]) -> dict[str, Any]:
    return {"Resources": resources}


QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "q"}}


@pytest.mark.parametrize("kind", DROPPED_TYPES)
def test_refused_types_go_and_others_stay(kind: str) -> None:
    adapted = adapt(template(Gone={"Type": kind}, Queue=QUEUE))
    assert adapted["Resources"] == {"Queue": QUEUE}


def test_functions_lose_their_layers_only() -> None:
    function = {"Type": "AWS::Lambda::Function", "Properties": {"Handler": "h", "Layers": ["l"]}}
    adapted = adapt(template(Function=function))
    assert adapted["Resources"]["Function"]["Properties"] == {"Handler": "h"}


def test_only_alarms_on_metric_math_go() -> None:
    plain = {"Type": "AWS::CloudWatch::Alarm", "Properties": {"MetricName": "m"}}
    math = {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": []}}
    assert adapt(template(Plain=plain, Math=math))["Resources"] == {"Plain": plain}


def test_a_dependency_on_something_dropped_goes_with_it() -> None:
    layer = {"Type": "AWS::Lambda::LayerVersion"}
    queue = {**QUEUE, "DependsOn": ["Layer", "Role"]}
    adapted = adapt(template(Layer=layer, Queue=queue, Role={"Type": "AWS::IAM::Role"}))
    assert adapted["Resources"]["Queue"]["DependsOn"] == ["Role"]


@pytest.mark.parametrize(
    "reference",
    [
        {"Ref": "Layer"},
        {"Fn::GetAtt": ["Layer", "Arn"]},
        {"Fn::GetAtt": "Layer.Arn"},
        {"Fn::Sub": "arn:${Layer}:x"},
        {"Fn::Sub": ["arn:${Layer.Arn}", {}]},
        {"Fn::Join": ["", ["a", {"Ref": "Layer"}]]},
    ],
)
def test_a_reference_to_something_dropped_is_refused(reference: dict[str, Any]) -> None:
    layer = {"Type": "AWS::Lambda::LayerVersion"}
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": reference}}
    with pytest.raises(LocalError, match="Queue refers to Layer"):
        adapt(template(Layer=layer, Queue=queue))
