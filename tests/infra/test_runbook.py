"""Every alarm has its page in docs/runbook.md, and every command of AWS in docs can be called."""

from __future__ import annotations

import re
import shlex
from typing import Final

import botocore.session
import pytest
from botocore import xform_name

from tests.support.pages import blocks

from .synthesis import ROOT, Synthesised

RUNBOOK: Final = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
PAGES: Final = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL))


def pages_of(stack: Synthesised) -> set[str]:
    """The pages that the alarms of a deployment name, without scaling's own."""
    names = {
        alarm["AlarmName"]
        for id_, alarm in stack.of("CloudWatch::Alarm").items()
        if "Scaling" not in id_
    }
    assert all(name.startswith("Fairlane-") for name in names)
    return {name.removeprefix("Fairlane-") for name in names}


def test_every_alarm_has_its_page_and_every_page_its_alarm(stack: Synthesised) -> None:
    assert set(PAGES) == pages_of(stack)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_it_means_how_to_look_and_what_to_do(page: str) -> None:
    assert [PAGES[page].count(part) for part in ("**What it means.**", "**Look.**", "**Do.**")] == [
        1,
        1,
        1,
    ]


def aws_commands(text: str) -> list[str]:
    lines = [line for block in blocks(text, "") for line in block.splitlines()]
    return [line for line in lines if line.startswith("aws ")]


EVERY: Final = {
    command
    for page in (ROOT / "docs").rglob("*.md")
    for command in aws_commands(page.read_text(encoding="utf-8"))
}


def problem_of(command: str) -> str | None:
    """Whether AWS's API has that operation with these parameters, as botocore's models say."""
    _, service, operation, *rest = shlex.split(command)
    try:
        model = botocore.session.get_session().get_service_model(service)
    except botocore.exceptions.UnknownServiceError:
        return f"no service {service}"
    for name in model.operation_names:
        if xform_name(name, "-") == operation:
            shape = model.operation_model(name).input_shape
            known = {xform_name(member, "-") for member in (shape.members if shape else ())}
            options = {word[2:] for word in rest if word.startswith("--")}
            # The command says no to a flag so.
            options = {name if name in known else name.removeprefix("no-") for name in options}
            return f"no option {options - known}" if options - known else None
    return f"no operation {operation}"


@pytest.mark.parametrize("command", sorted(EVERY))
def test_every_aws_command_can_be_called(command: str) -> None:
    assert problem_of(command) is None


def test_the_check_sees_what_is_wrong() -> None:
    assert problem_of("aws sqs explode") == "no operation explode"
    assert problem_of("aws nothing list") == "no service nothing"
    assert problem_of("aws sqs list-queues --sideways 1") == "no option {'sideways'}"
