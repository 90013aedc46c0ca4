"""A command of the AWS CLI, carried out as its words say, through the same API models.

The CLI itself is 155 MB. What it makes of a line is little: the service, the operation, and options
whose words have the types of the operation's input.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from botocore import xform_name
from botocore.model import Shape


class NoSuchCommand(Exception):
    """No service, operation or option of that name."""


def carry_out(command: str, client_of: Callable[[str], Any]) -> Mapping[str, Any]:
    """The answer. client_of: makes a client of a service. Raises NoSuchCommand, and what botocore
    raises for wrong values and refused calls."""
    _, service, operation, *words = shlex.split(command)
    client = client_of(service)
    called, shape = _operation(client.meta.service_model, operation)
    members: Mapping[str, Shape] = getattr(shape, "members", {})  # without an input there is none
    asked = dict(_parameter(members, option, values) for option, values in _options(words))
    answer: Mapping[str, Any] = getattr(client, xform_name(called))(**asked)
    return answer


def _operation(service: Any, name: str) -> tuple[str, Shape | None]:
    for each in service.operation_names:
        if xform_name(each, "-") == name:
            return each, service.operation_model(each).input_shape
    raise NoSuchCommand(f"no operation {name}")


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    option = ""
    for is_option, found in groupby(words, lambda word: word.startswith("--")):
        if not is_option:
            yield option, list(found)
            option = ""
            continue
        for word in found:
            if option:
                yield option, []
            option = word.removeprefix("--")
    if option:
        yield option, []


def _parameter(
    members: Mapping[str, Shape], option: str, words: Sequence[str]
) -> tuple[str, object]:
    names = {xform_name(member, "-"): member for member in members}
    if (name := names.get(option)) is not None:
        return name, _value(members[name], words)
    if (name := names.get(option.removeprefix("no-"))) is not None and not words:
        return name, False
    raise NoSuchCommand(f"no option --{option}")


def _value(shape: Any, words: Sequence[str]) -> object:
    """As the shape has it. A structure is ``{...}``, or short: ``Name=value,Other=value``."""
    if shape.type_name == "boolean" and not words:
        return True
    if shape.type_name == "list":
        if words[0].startswith("["):
            return json.loads(words[0])
        return [_value(shape.member, [word]) for word in words]
    [word] = words
    match shape.type_name:
        case "structure" if word.startswith("{"):
            return json.loads(word)
        case "structure":
            parts = dict(part.split("=", 1) for part in word.split(","))
            return {name: _value(shape.members[name], [text]) for name, text in parts.items()}
        case "integer" | "long":
            return int(word)
        case "boolean":
            return word == "true"
        case _:
            return word
