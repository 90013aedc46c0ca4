"""The environment of each function and container of a template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .synthesis import Synthesised


def environments(stack: Synthesised) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of each function and container, by the handlers module that it runs."""
    for function in stack.of("Lambda::Function").values():
        yield function["Handler"].split(".")[1], function["Environment"]["Variables"]
    for task in stack.of("ECS::TaskDefinition").values():
        for container in task["ContainerDefinitions"]:
            yield (
                container["EntryPoint"][-1].split(".")[1],
                {one["Name"]: one["Value"] for one in container["Environment"]},
            )
