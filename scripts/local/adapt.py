"""What the local AWS cannot take out of a template. The one place that drops anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from .errors import LocalError

Template: TypeAlias = Mapping[str, Any]

DROPPED_TYPES: Final[Mapping[str, str]] = {
    "AWS::WAFv2::WebACLAssociation": "unknown to ministack; the ACL itself is kept",
    "AWS::WAFv2::LoggingConfiguration": "unknown to ministack, whose ACL refuses nothing",
    "AWS::ApplicationAutoScaling::ScalableTarget": "unknown to ministack; workers are processes",
    "AWS::ApplicationAutoScaling::ScalingPolicy": "unknown to ministack; workers are processes",
    "AWS::Lambda::LayerVersion": "functions import from the environment that runs ministack",
}
DROPPED_WITH_PROPERTY: Final[Mapping[str, str]] = {
    "AWS::CloudWatch::Alarm": "Metrics",  # metric math: refused by ministack
}
"""Resources of this type that have this property."""
DROPPED_PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS::Lambda::Function": ("Layers",),  # go with the layer
    "AWS::CloudWatch::Alarm": ("AlarmActions",),  # go with the scaling policies
}


def adapt(template: Template) -> Template:
    """The template without what is dropped. Raises LocalError when something that is kept refers
    to something dropped: then the lists above no longer fit ``infra``."""
    resources: Mapping[str, Any] = template["Resources"]
    dropped = {name for name, body in resources.items() if _is_dropped(body)}
    kept = {
        name: _without(body, dropped) for name, body in resources.items() if name not in dropped
    }
    adapted = {**template, "Resources": kept}
    for section in ("Resources", "Outputs"):
        for name, body in adapted.get(section, {}).items():
            if lost := dropped & set(_references(body)):
                raise LocalError(
                    f"{section} {name} refers to {', '.join(sorted(lost))}, which is dropped for "
                    "the local AWS: correct the lists in scripts/local/adapt.py"
                )
    return adapted


def _is_dropped(resource: Mapping[str, Any]) -> bool:
    kind = resource["Type"]
    return kind in DROPPED_TYPES or (
        DROPPED_WITH_PROPERTY.get(kind) in resource.get("Properties", {})
    )


def _without(resource: Mapping[str, Any], dropped: set[str]) -> Mapping[str, Any]:
    properties = {
        name: value
        for name, value in resource.get("Properties", {}).items()
        if name not in DROPPED_PROPERTIES.get(resource["Type"], ())
    }
    depends = resource.get("DependsOn", [])
    left = [
        name for name in ([depends] if isinstance(depends, str) else depends) if name not in dropped
    ]
    rest = {key: resource[key] for key in resource if key not in ("Properties", "DependsOn")}
    return {
        **rest,
        **({"Properties": properties} if properties else {}),
        **({"DependsOn": left} if left else {}),
    }


def _references(node: object) -> Iterator[str]:
    """Logical ids a part of a template refers to (Ref, GetAtt, Sub, DependsOn)."""
    if isinstance(node, list):
        for part in node:
            yield from _references(part)
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from _named(key, value)
            yield from _references(value)


def _named(key: str, value: object) -> Iterator[str]:
    match key, value:
        case "Ref", str():
            yield value
        case "Fn::GetAtt", [str() as name, *_]:
            yield name
        case "Fn::GetAtt", str():
            yield value.partition(".")[0]
        case "DependsOn", list():
            yield from (name for name in value if isinstance(name, str))
        case "Fn::Sub", str() | [str(), *_]:
            text = value if isinstance(value, str) else str(value[0])
            for part in text.split("${")[1:]:
                yield part.partition("}")[0].partition(".")[0]
        case _:
            return
