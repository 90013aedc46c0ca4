"""docs/reference/errors.md: the code of every problem, why a job failed, and why one waits."""

from __future__ import annotations

import ast
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, get_args

from fairlane_client.problems import PROBLEMS as TYPES
from handlers.jobs.words.job import EndReason, Waiting
from handlers.jobs.words.pace import PacedBy
from handlers.web.schemas import Code, FirewallAnswer
from infra import edge, gateway_answers

from .docstrings import table, under
from .source import calls
from .words import ENDS, PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PAGE: Final = """\
# Errors

A refused request is answered with a problem (RFC 9457). `code` is stable, and a client may switch
on it; `detail` is one sentence for people, and `field` and `errors` name what is wrong with the
request. The type is the exception that the [Python client](../client.md) raises.

{problems}
## Why a job failed

`end_reason` of a job that is `FAILED`. Its `message` says more.

{ends}
## Why a job waits

`waiting.reason` of a job that does not run. `waiting.since` says since when, and `expected_start`
until when, where that is known.

{waits}
## What slows a job down

`pace.why` of a running bulk job.

{paces}"""
HEADS: Final = ("code", "status", "type in Python", "meaning", "what to do")
REASON: Final = ("reason", "meaning")


def page() -> str:
    return PAGE.format(
        problems=table(HEADS, [_problem(code) for code in codes()]),
        ends=table(REASON, [(f"`{each.value}`", ends()[each.value]) for each in EndReason]),
        waits=table(REASON, [(f"`{each.value}`", under(Waiting)[each.name]) for each in Waiting]),
        paces=table(REASON, [(f"`{each.value}`", under(PacedBy)[each.name]) for each in PacedBy]),
    )


def codes() -> Sequence[str]:
    """Of the API, of API Gateway and of the web firewall."""
    firewall = get_args(FirewallAnswer.model_fields["code"].annotation)
    return tuple(dict.fromkeys((*get_args(Code), *firewall)))


def statuses() -> Mapping[str, set[HTTPStatus]]:
    """Code -> the statuses that it comes with."""
    found: dict[str, set[HTTPStatus]] = {code: set() for code in codes()}
    for call in calls("handlers"):
        match call.args:
            case [ast.Attribute(value=ast.Name(id="HTTPStatus"), attr=status), code, *_] if (
                isinstance(code, ast.Constant) and code.value in found
            ):
                found[str(code.value)].add(HTTPStatus[status])
    for problem in (*gateway_answers.OF_TOKENS, *gateway_answers.PROBLEMS):
        found[problem.code].add(problem.status)
    for key, refused in edge.STATUS.items():
        found.setdefault(key, set()).add(refused)
    return found


def ends() -> Mapping[str, str]:
    return {**{each.value: text for each in EndReason if (text := _end(each))}, **ENDS}


def _end(reason: EndReason) -> str | None:
    return under(EndReason).get(reason.name)


def _problem(code: str) -> tuple[str, ...]:
    # A code without words is shown, too, and a test asks for them.
    meaning, way_out = PROBLEMS.get(code, ("", ""))
    numbers = ", ".join(str(status.value) for status in sorted(statuses()[code]))
    return f"`{code}`", numbers, f"`{TYPES[code].__name__}`", meaning, way_out
